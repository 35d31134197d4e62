"""The agent as a service: what it is told of the container runtime, and of heartbeats."""

from pathlib import Path

import pytest

from agent import settings as agent_settings
from tests.playbooks.rendering import ADMIN_SERVER, plain, render
from tests.playbooks.test_node_plugin import HOST, ROLE, WITHOUT_LIST, configuration, host, settings_of

SOCKET = "/run/containerd/containerd.sock"
CRIO = "/run/crio/crio.sock"
BOTH = {"readygate_agent_form": "both"}
BEATS, PERIOD = "readygate_node_heartbeat", "readygate_node_heartbeat_period_seconds"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, (SOCKET, False, True, True), id="that of its kubelet"),
        pytest.param(
            {"readygate_node_cri_socket": "/run/crio/crio.sock"},
            ("/run/crio/crio.sock", False, True, True),
            id="another",
        ),
        pytest.param({"readygate_node_cri_socket": ""}, (None, False, False, False), id="none"),
        pytest.param({"readygate_node_exec_probes": True}, (SOCKET, True, True, True), id="commands are run by it"),
    ],
)
def test_of_the_container_runtime_it_has_the_folder_of_its_socket(given, expected):
    seen = host(runtime=SOCKET) | WITHOUT_LIST | given
    value = render(ROLE, HOST | seen)
    section = agent_settings.parse(value("__readygate_node_configuration").encode()).node
    assert section is not None
    lines = value("lookup('ansible.builtin.template', 'readygate-node.service.j2')").splitlines()
    folder = str(Path(expected[0]).parent) if expected[0] else "/run/containerd"
    bound = f"{folder}:{folder}" in settings_of(lines, "BindReadOnlyPaths")
    starts_after = "containerd.service" in settings_of(lines, "After")[0]
    assert expected == (section.cri_socket, section.exec_probes, bound, starts_after)


USUAL = "http://127.0.0.1:10248/healthz"


@pytest.mark.parametrize("unit", ["containerd", "crio", "k3s", "k3s-agent", "rke2-server", "rke2-agent"])
def test_it_starts_after_whoever_makes_the_folder_of_the_socket(unit):
    """It would be without the folder until its next start: after each boot of a k3s."""
    value = render(ROLE, HOST | host() | {"readygate_node_check_profile": "default"})
    lines = value("lookup('ansible.builtin.template', 'readygate-node.service.j2')").splitlines()
    assert f"{unit}.service" in settings_of(lines, "After")[0].split()


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param({}, (USUAL, False), id="a host that does not tell"),
        pytest.param({"health": USUAL}, (USUAL, False), id="where all kubelets do, and that is not written"),
        pytest.param(
            {"health": "http://[::1]:10348/healthz"}, ("http://[::1]:10348/healthz", True), id="at another port"
        ),
        pytest.param({"health": "none"}, (None, True), id="nowhere: its Lease is read instead"),
    ],
)
def test_it_asks_the_kubelet_whether_it_is_well_where_that_one_tells_it(seen, expected):
    text = render(ROLE, HOST | host(**seen))("__readygate_node_configuration")
    section = agent_settings.parse(text.encode()).node
    assert section is not None
    assert expected == (section.kubelet_healthz, "kubeletHealthz" in text)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, None, id="none where nothing speaks for pods of site.yml"),
        pytest.param(BOTH, 3, id="beside those pods"),
        pytest.param({"readygate_agent_form": "node"}, None, id="beside pods of others, which may not write it"),
        pytest.param(BOTH | {"readygate_agent_publish_condition": False}, None, id="nothing is published"),
        pytest.param(BOTH | {"readygate_agent_admission_policy": False}, None, id="nothing confines it"),
        pytest.param(BOTH | {BEATS: False}, None, id="off"),
        pytest.param({BEATS: True}, 3, id="every three seconds"),
        pytest.param(
            {BEATS: True, PERIOD: 10},
            10,
            id="in a large cluster",
        ),
    ],
)
def test_a_heartbeat_is_written_where_it_is_wanted(given, expected):
    section = configuration(**given).node
    assert section is not None
    assert expected == (None if section.heartbeat is None else section.heartbeat.period_seconds)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, None, id="it is not looked at unless it is written"),
        pytest.param(BOTH, 9, id="beside the pods of site.yml"),
        pytest.param({"readygate_agent_form": "node"}, None, id="beside pods of others"),
        pytest.param(BOTH | {"readygate_agent_publish_condition": False}, None, id="nothing is published"),
        pytest.param(BOTH | {"readygate_agent_admission_policy": False}, None, id="nothing confines it"),
        pytest.param(BOTH | {BEATS: False}, None, id="off"),
        pytest.param({BEATS: True}, 9, id="three beats"),
        pytest.param({BEATS: True, PERIOD: 10}, 30, id="three slow beats"),
        pytest.param(
            {BEATS: True, PERIOD: 1},
            9,
            id="at least nine seconds",
        ),
    ],
)
def test_the_extender_looks_at_heartbeats_that_are_written(given, expected):
    settings = plain(render("readygate_extender", ADMIN_SERVER | given)("__readygate_extender_given"))
    assert expected == settings.get("heartbeat", {}).get("agents", {}).get("limitSeconds")


NODES = [f"node-{number}" for number in range(400)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"groups": {"kube_node": NODES[:300]}}, (3, 9), id="300 nodes"),
        pytest.param({"groups": {"kube_node": NODES[:301]}}, (10, 30), id="one more"),
        pytest.param({"groups": {"workers": NODES[:299], "nodes": NODES[:300]}}, (3, 9), id="each counts once"),
        pytest.param({"groups": {"workers": NODES[:300], "control_plane": NODES[300:301]}}, (10, 30), id="all groups"),
        pytest.param({"groups": {"web": NODES}}, (3, 9), id="other hosts do not count"),
        pytest.param(
            {"groups": {"fleet": NODES}, "readygate_node_groups": ["fleet"]}, (10, 30), id="a group of one's own"
        ),
        pytest.param({"groups": {"nodes": NODES}, PERIOD: 3}, (3, 9), id="what the inventory says holds"),
    ],
)
def test_in_a_large_cluster_beats_are_slower_and_the_extender_knows_it(given, expected):
    node = configuration(**{BEATS: True}, **given).node
    assert node is not None
    assert node.heartbeat is not None
    settings = plain(render("readygate_extender", ADMIN_SERVER | {BEATS: True} | given)("__readygate_extender_given"))
    assert expected == (node.heartbeat.period_seconds, settings["heartbeat"]["agents"]["limitSeconds"])
