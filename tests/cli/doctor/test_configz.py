"""The configuration of a kube-scheduler is parsed from /configz."""

import json

import pytest

from cli.doctor.cluster import flags_of, version_of
from cli.doctor.configz import ConfigzError, loaded, seconds
from cli.doctor.facts import Extender

TOLD = {
    "componentconfig": {
        "kind": "KubeSchedulerConfiguration",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "percentageOfNodesToScore": 0,
        "enableProfiling": False,
        "clientConnection": {
            "qps": 50,
            "burst": 100,
            "contentType": "application/vnd.kubernetes.protobuf",
            "kubeconfig": "/etc/kubernetes/scheduler.conf",
        },
        "profiles": [{"schedulerName": "default-scheduler", "percentageOfNodesToScore": 30}],
        "extenders": [
            {
                "urlPrefix": "https://127.0.0.1:9376/",
                "filterVerb": "filter",
                "preemptVerb": "preempt",
                "httpTimeout": "1s",
                "ignorable": True,
                "nodeCacheCapable": True,
                "managedResources": [{"name": "nvidia.com/gpu"}],
                "tlsConfig": {"keyData": "c2VjcmV0"},
            }
        ],
    }
}


def test_an_extender_entry_is_parsed():
    expected = Extender(
        url_prefix="https://127.0.0.1:9376/",
        filter_verb="filter",
        preempt_verb="preempt",
        timeout_s=1.0,
        ignorable=True,
        node_cache_capable=True,
        managed_resources=("nvidia.com/gpu",),
    )
    assert (expected,) == loaded(json.dumps(TOLD).encode()).extenders


def in_go(told):
    """As up to 1.35: Go's own names, and no kind."""
    names = {"urlPrefix": "URLPrefix", "httpTimeout": "HTTPTimeout", "tlsConfig": "TLSConfig", "qps": "QPS"}
    if isinstance(told, dict):
        keys = {key: names.get(key, key[0].upper() + key[1:]) for key in told if key != "kind"}
        return {key if key == "apiVersion" else name: in_go(told[key]) for key, name in keys.items()}
    return [in_go(each) for each in told] if isinstance(told, list) else told


def test_keys_in_gos_spelling_up_to_1_35_are_parsed():
    told = {"componentconfig": in_go(TOLD["componentconfig"])}
    assert "URLPrefix" in told["componentconfig"]["Extenders"][0]
    assert loaded(json.dumps(TOLD).encode()) == loaded(json.dumps(told).encode())


def test_profiles_and_other_settings_are_parsed():
    told = loaded(json.dumps(TOLD).encode())
    assert ([("default-scheduler", 30)], False, 50.0, 100, "/etc/kubernetes/scheduler.conf") == (
        [(one.scheduler_name, one.percentage_of_nodes_to_score) for one in told.profiles],
        told.profiling,
        told.qps,
        told.burst,
        told.kubeconfig,
    )


def test_secrets_are_dropped():
    assert "c2VjcmV0" not in repr(loaded(json.dumps(TOLD).encode()))


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"componentconfig":{"kind":"KubeletConfiguration"}}', b"\xff", b'{"a":' * 5000],
    ids=["nothing", "a page", "a list", "nothing told", "a kubelet", "no UTF-8", "without an end"],
)
def test_another_answer_than_a_configuration_is_refused(body):
    with pytest.raises(ConfigzError, match="check that it is a kube-scheduler"):
        loaded(body)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1s", 1.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("0s", None),
        ("", None),
        (None, None),
        ("soon", None),
        ("1s x", None),
    ],
)
def test_a_duration_of_go_is_parsed(text, expected):
    assert expected == seconds(text)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["kube-scheduler"], {}),
        (["kube-scheduler", "--config=/a", "--v=2"], {"config": "/a", "v": "2"}),
        (["kube-scheduler", "--config", "/a", "--leader-elect"], {"config": "/a", "leader-elect": "true"}),
    ],
)
def test_flags_of_a_command_line_are_parsed(command, expected):
    assert expected == flags_of(command)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("registry.example/kube-scheduler:v1.36.3", "v1.36.3"),
        ("registry.example:5000/kube-scheduler", ""),
        ("registry.example:5000/kube-scheduler:v1.36.3@sha256:00", "v1.36.3"),
        ("kube-scheduler@sha256:00", ""),
        ("kube-scheduler:latest", ""),
    ],
)
def test_the_version_of_an_image_is_that_of_its_tag(image, expected):
    assert expected == version_of(image)
