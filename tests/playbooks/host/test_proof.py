"""When what /configz shows is what a scheduler was given."""

import json

import pytest
from readygate_scheduler.proof import configuration_of, differences
from readygate_scheduler.scheduler import address_of

ENDLESS = "extenders: 1 expected, 0 loaded"


@pytest.mark.parametrize(
    ("expected", "loaded", "told"),
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, [], id="more may be loaded"),
        pytest.param({"a": {"b": False}}, {"a": {"b": True}}, ["a.b: false expected, true loaded"], id="another value"),
        pytest.param({"ignorable": False, "verb": ""}, {}, [], id="what is empty may be left out"),
        pytest.param({"t": "60s"}, {"t": "1m0s"}, [], id="a minute in other words"),
        pytest.param({"t": "1400ms"}, {"t": "1.4s"}, [], id="a part of a second in other words"),
        pytest.param({"t": "1s"}, {"t": "2s"}, ['t: "1s" expected, "2s" loaded'], id="another time"),
        pytest.param({"extenders": [{}]}, {}, [ENDLESS], id="no extender at all"),
        pytest.param({"l": [{"u": 1}, {"u": 2}]}, {"l": [{"u": 2}, {"u": 1}]}, None, id="another order"),
        pytest.param({"qps": 50.0}, {"qps": 50}, [], id="numbers are numbers"),
    ],
)
def test_differences(expected, loaded, told):
    found = differences(expected, loaded)
    assert len(found) == 2 if told is None else found == told


def test_what_is_no_schedulers_configz_is_an_error():
    assert configuration_of(json.dumps({"componentconfig": {"kind": "KubeSchedulerConfiguration"}}))
    with pytest.raises(ValueError, match="no KubeSchedulerConfiguration"):
        configuration_of(json.dumps({"kubeletconfig": {"kind": "KubeletConfiguration"}}))


def test_up_to_1_35_it_has_no_kind_and_the_keys_are_gos():
    """As kube-scheduler 1.35.4 says it."""
    entry = {
        "URLPrefix": "http://127.0.0.1:338",
        "HTTPTimeout": "1s",
        "EnableHTTPS": True,
        "TLSConfig": {"CAFile": "/ca"},
    }
    more = {"ManagedResources": [{"Name": "a.b/c", "IgnoredByScheduler": False}], "BindVerb": "", "Weight": 3}
    told = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "ClientConnection": {"QPS": 50, "ContentType": "application/json"},
        "PercentageOfNodesToScore": 0,
        "Extenders": [entry | more],
    }
    assert {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "clientConnection": {"qps": 50, "contentType": "application/json"},
        "percentageOfNodesToScore": 0,
        "extenders": [
            {
                "urlPrefix": "http://127.0.0.1:338",
                "httpTimeout": "1s",
                "enableHTTPS": True,
                "tlsConfig": {"caFile": "/ca"},
                "managedResources": [{"name": "a.b/c", "ignoredByScheduler": False}],
                "bindVerb": "",
                "weight": 3,
            }
        ],
    } == configuration_of(json.dumps({"componentconfig": told}))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param([], "https://127.0.0.1:10259", id="as kubeadm has it"),
        pytest.param(["--bind-address=0.0.0.0", "--secure-port=11259"], "https://127.0.0.1:11259", id="everywhere"),
        pytest.param(["--bind-address=::"], "https://127.0.0.1:10259", id="everywhere, IPv6"),
        pytest.param(["--bind-address", "192.0.2.1", "--secure-port", "1"], "https://192.0.2.1:1", id="in two words"),
        pytest.param(["--secure_port=1"], "https://127.0.0.1:1", id="with underscores, as dashes"),
        pytest.param(["--bind-address=192.0.2.1"], "https://192.0.2.1:10259", id="at one address"),
    ],
)
def test_where_a_scheduler_is_asked_follows_its_arguments(arguments, expected):
    assert address_of(["kube-scheduler", *arguments]) == expected
