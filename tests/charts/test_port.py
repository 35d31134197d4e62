"""Where the chart has kube-scheduler ask: no ordinary user of the host takes that port, unless a value says so."""

import re
from typing import Any

import pytest
import yaml

from extender.config import settings as extender_settings
from kube import contract
from tests.charts.rendering import ROOT, SUPPORTED, Objects, Refused, objects, rendered
from tests.playbooks.rendering import extender_yaml
from tools.kit.cases import cases

IMAGE = 'image={"repository":"localhost/readygate","tag":"dev"}'
UNPRIVILEGED = f'extender={{"port":{contract.PORT_UNPRIVILEGED}}}'
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
USER = 69376
AS_ROOT = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsUser": 0,
    "runAsGroup": 0,
    "runAsNonRoot": False,
    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "SETGID", "SETUID"]},
}
AS_ITS_USER = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


def pod(sent: Objects) -> dict[str, Any]:
    return dict(sent["DaemonSet", contract.NAMESPACE, contract.NAME_EXTENDER]["spec"]["template"]["spec"])


def listen(sent: Objects) -> extender_settings.Listen:
    text = extender_yaml(sent)
    return extender_settings.parse(text).listen


def said_by_a_value(form: str) -> int | None:
    return (yaml.safe_load(SUPPORTED[form].read_text()).get("extender") or {}).get("port")


@pytest.mark.parametrize("form", SUPPORTED)
def test_in_every_form_no_user_of_the_host_takes_the_port_unless_a_value_says_so(form):
    port = listen(objects(SUPPORTED[form])).port
    assert port == (said_by_a_value(form) or contract.PORT_DAEMON_SET)
    assert port < 1024 or said_by_a_value(form) == port


@cases(
    "given, port, security, user",
    ("below 1024 it starts as root and becomes its user", [], contract.PORT_DAEMON_SET, AS_ROOT, USER),
    ("up to the last such port", ['extender={"port":1023}'], 1023, AS_ROOT, USER),
    ("from 1024 on it is no root at any time", ['extender={"port":1024}'], 1024, AS_ITS_USER, None),
    ("as before", [UNPRIVILEGED], contract.PORT_UNPRIVILEGED, AS_ITS_USER, None),
    ("none, as in an earlier chart", ['extender={"port":null}'], contract.PORT_DAEMON_SET, AS_ROOT, USER),
)
def test_what_it_starts_as_follows_from_the_port(given, port, security, user):
    sent = objects(given=[IMAGE, *given], hooks=True)
    extender, status_api = pod(sent)["containers"]
    assert (security, AS_ITS_USER) == (extender["securityContext"], status_api["securityContext"])
    assert (USER, USER, True) == tuple(
        pod(sent)["securityContext"][f"runAs{what}"] for what in ("User", "Group", "NonRoot")
    )
    assert (port, user) == (listen(sent).port, listen(sent).user)
    assert {("127.0.0.1", port)} == {
        (extender[probe]["httpGet"]["host"], extender[probe]["httpGet"]["port"]) for probe in PROBES
    }
    ((test,),) = [one["spec"]["containers"] for (kind, _, _), one in sent.items() if kind == "Pod"]
    assert f"http://127.0.0.1:{port}/readyz" in test["command"]


def test_the_rest_of_the_pod_is_the_same_whatever_the_port():
    """So the other container keeps the socket, mounts without a token, and its user."""
    ours, before = (pod(objects(given=[IMAGE, *given])) for given in ([], [UNPRIVILEGED]))
    for spec in (ours, before):
        for key in ("securityContext", *PROBES):
            spec["containers"][0].pop(key)
        spec["volumes"].pop(0)  # the configuration, named by its content, which says the port
    assert ours == before


def test_nobody_of_the_group_may_write_where_the_feeds_socket_is():
    """With an fsGroup the kubelet lets it, and the extender refuses such a folder."""
    for form in SUPPORTED:
        assert "fsGroup" not in pod(objects(SUPPORTED[form]))["securityContext"]


@cases(
    "given, said",
    ("none", 'extender={"port":0}', "/extender/port"),
    ("beyond the last", 'extender={"port":65536}', "/extender/port"),
    ("a text", 'extender={"port":"338"}', "/extender/port"),
    ("said elsewhere", 'extender={"configuration":{"listen":{"port":9376}}}', "follow from extender.port"),
    ("root for good", 'extender={"configuration":{"listen":{"user":null}}}', "follow from extender.port"),
)
def test_a_port_that_is_none_or_is_said_elsewhere_is_refused(given, said):
    with pytest.raises(Refused) as refused:
        rendered(given=[IMAGE, given])
    assert said in str(refused.value)


def test_what_is_to_be_registered_by_hand_names_the_port():
    named = re.findall(r"urlPrefix: http://127\.0\.0\.1:(\d+)", (ROOT / "docs" / "registration.md").read_text())
    assert {str(contract.PORT_DAEMON_SET)} == set(named)
