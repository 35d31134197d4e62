"""Messages of the CRI and what the agent makes of them, by the kubelet's rules (rows CR1-CR19)."""

import json

import pytest

from agent.cri import api_pb2 as cri
from agent.cri.base import RuntimeCondition, RuntimeStatus, Version
from agent.cri.convert import (
    Garbled,
    bare_id,
    container_of,
    listed_pods,
    network_namespace_of,
    sandbox_of,
    status_of,
    version_of,
)
from agent.wire.containers import ContainerPhase, RuntimeContainer, RuntimePod, Sandbox
from agent.wire.model import NodeRuntimeHandler
from tools.kit.cases import cases

S = 1_000_000_000
COUNT = "io.kubernetes.container.restartCount"


def labels(uid="u", name="c"):
    return {
        "io.kubernetes.pod.uid": uid,
        "io.kubernetes.pod.name": f"pod-{uid}",
        "io.kubernetes.pod.namespace": "ns",
        "io.kubernetes.container.name": name,
    }


def status(state, **more):
    fields = {"created_at": 10 * S, "started_at": 11 * S, "finished_at": 12 * S, "labels": labels(), **more}
    return cri.ContainerStatus(id="c1", state=state, image={"image": "nginx:1"}, image_ref="nginx@sha256:1", **fields)


def container(phase, **fields):
    return RuntimeContainer(
        "rt://c1", "c", phase, 10.0, image="nginx:1", image_id="nginx@sha256:1", sandbox_id="rt://s1", **fields
    )


ODD = status(cri.CONTAINER_RUNNING, reason="Odd", exit_code=3)


@cases(
    "message, expected",
    ("CR1: created", status(cri.CONTAINER_CREATED, started_at=0, finished_at=0), container(ContainerPhase.CREATED)),
    ("CR2: running has no end, exit code or reason", ODD, container(ContainerPhase.RUNNING, started_at=11.0)),
    (
        "CR3: an exited one has its end, exit code and reason",
        status(cri.CONTAINER_EXITED, exit_code=137, reason="OOMKilled", message="too much"),
        container(
            ContainerPhase.EXITED,
            started_at=11.0,
            finished_at=12.0,
            exit_code=137,
            reason="OOMKilled",
            message="too much",
        ),
    ),
    (
        "CR4: one that could not be started began in 1970, as in the kubelet",
        status(cri.CONTAINER_EXITED, started_at=0, exit_code=128, reason="StartError"),
        container(ContainerPhase.EXITED, started_at=0.0, finished_at=12.0, exit_code=128, reason="StartError"),
    ),
    ("CR5: unknown is not ended", status(cri.CONTAINER_UNKNOWN), container(ContainerPhase.UNKNOWN, started_at=11.0)),
    ("CR6: a state that is newer than we are", status(77), container(ContainerPhase.UNKNOWN, started_at=11.0)),
)
def test_a_container(message, expected):
    assert expected == container_of(message, "rt", "rt://s1")


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({COUNT: "4"}, 4, id="CR7: the restart count is an annotation"),
        pytest.param({}, 0, id="CR8: none is 0"),
        pytest.param({COUNT: "many"}, 0, id="CR8: no number is 0"),
        pytest.param({COUNT: " 4"}, 0, id="CR8: a space before it makes it none, as in Go"),
        pytest.param({COUNT: "9" * 30}, 0, id="CR8: more than a number holds is 0"),
        pytest.param({COUNT: "2147483646"}, 2**31 - 2, id="CR7: the most that one more may be added to"),
        pytest.param({COUNT: "2147483647"}, 0, id="CR8: more than the API takes is 0"),
        pytest.param({COUNT: "-5"}, 0, id="CR8: less than none is 0"),
    ],
)
def test_how_often_it_was_restarted(annotations, expected):
    assert expected == container_of(status(cri.CONTAINER_RUNNING, annotations=annotations), "rt").restart_count


def sandbox(ip="10.0.0.1", more=(), state=cri.SANDBOX_READY, network=True, mode=cri.POD):
    made = cri.PodSandboxStatus(id="s1", metadata={"uid": "u", "attempt": 2}, state=state, created_at=5 * S)
    made.linux.namespaces.options.network = mode
    if network:
        made.network.ip = ip
        made.network.additional_ips.extend(cri.PodIP(ip=one) for one in more)
    return cri.PodSandboxStatusResponse(status=made)


@cases(
    "message, expected",
    ("CR9: its address", sandbox(), (True, "10.0.0.1", False)),
    ("CR9: the first of two", sandbox(more=["fd00::1"]), (True, "10.0.0.1", False)),
    ("CR9: the second, where the first is empty", sandbox("", ["fd00::1"]), (True, "fd00::1", False)),
    ("CR10: none that can be read is none", sandbox("ten"), (True, "", False)),
    ("CR10: all or none can be read", sandbox(more=["ten"]), (True, "", False)),
    ("CR10: one that is empty cannot be read", sandbox(more=[""]), (True, "", False)),
    ("CR10: the API reads none with an interface", sandbox("fe80::1%eth0"), (True, "", False)),
    ("CR11: not ready: no address", sandbox(state=cri.SANDBOX_NOTREADY), (False, "", False)),
    ("CR12: no network told", sandbox(network=False), (True, None, False)),
    ("CR13: the host's network", sandbox("", mode=cri.NODE), (True, "", True)),
)
def test_a_sandbox(message, expected):
    found = sandbox_of(message, "rt")
    assert ("rt://s1", 2, 5.0) == (found.id, found.attempt, found.created_at)
    assert expected == (found.ready, found.ip, found.host_network)


def listed_sandbox(id_, uid, attempt=0, created=1, state=cri.SANDBOX_READY):
    metadata = {"name": f"pod-{uid}", "namespace": "ns", "uid": uid, "attempt": attempt}
    return cri.PodSandbox(id=id_, metadata=metadata, state=state, created_at=created * S)


def listed_container(id_, uid="u", sandbox_id="s1", created=1, state=cri.CONTAINER_RUNNING, **more):
    fields = {"metadata": {"name": "c"}, "image": {"image": "i"}, "labels": labels(uid), **more}
    return cri.Container(id=id_, pod_sandbox_id=sandbox_id, state=state, created_at=created * S, **fields)


def shown(pods):
    """uid: its sandboxes / its containers."""
    return {
        pod.uid: f"{' '.join(bare_id(s.id) for s in pod.sandboxes)} / {' '.join(bare_id(c.id) for c in pod.containers)}"
        for pod in pods
    }


TWO_SANDBOXES = [listed_sandbox("s1", "u"), listed_sandbox("s2", "v", created=2)]
LATE_AND_SECOND = [listed_sandbox("s0", "u", created=9), listed_sandbox("s1", "u", attempt=1)]
TWO_CONTAINERS = [listed_container("c1"), listed_container("c2", "v", "s2")]
THREE_CONTAINERS = [listed_container("b"), listed_container("a"), listed_container("c", created=2)]
INCOMPLETE = [
    listed_container(""),
    listed_container("c1", labels={}),
    listed_container("c2", metadata=None),
    listed_container("c3", image=None),
]


@cases(
    "sandboxes, containers, expected",
    ("CR14: nothing", [], [], {}),
    ("CR14: the pod with the newest sandbox is first", TWO_SANDBOXES, TWO_CONTAINERS, {"v": "s2 / c2", "u": "s1 / c1"}),
    ("CR15: attempts, not the clock, show the newest", LATE_AND_SECOND, [], {"u": "s1 s0 / "}),
    ("CR16: newest containers first, then by id; no sandbox", [], THREE_CONTAINERS, {"u": " / c a b"}),
    ("CR17: no pod's, or no id, name or image", [listed_sandbox("", "u"), listed_sandbox("s1", "")], INCOMPLETE, {}),
)
def test_lists(sandboxes, containers, expected):
    assert list(expected.items()) == list(shown(listed_pods(sandboxes, containers, "rt")).items())


def test_cr18_what_a_list_tells_of_a_pod():
    count = {COUNT: "3"}
    containers = [
        listed_container("c1", state=cri.CONTAINER_EXITED, annotations=count, image_ref="i@1", image_id="sha256:1")
    ]
    ended = RuntimeContainer(
        "rt://c1", "c", ContainerPhase.EXITED, 1.0, restart_count=3, image="i", image_id="i@1", sandbox_id="rt://s1"
    )
    ready = Sandbox(ready=True, ip=None, id="rt://s1", attempt=2, created_at=1.0)
    assert [RuntimePod("u", (ready,), (ended,), name="pod-u", namespace="ns")] == listed_pods(
        [listed_sandbox("s1", "u", attempt=2)], containers, "rt"
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(lambda: version_of(cri.VersionResponse(runtime_name="x")), "no name or no version", id="version"),
        pytest.param(lambda: status_of(cri.StatusResponse()), "no status", id="status"),
        pytest.param(lambda: sandbox_of(cri.PodSandboxStatusResponse(), "rt"), "no sandbox", id="sandbox"),
        pytest.param(lambda: container_of(cri.ContainerStatus(), "rt"), "no container", id="container"),
    ],
)
def test_cr19_an_answer_without_what_each_has_is_none(make, says):
    with pytest.raises(Garbled, match=says):
        make()


def test_version_and_status():
    version = cri.VersionResponse(version="0.1.0", runtime_name="rt", runtime_version="2.1", runtime_api_version="v1")
    assert Version("rt", "2.1", "v1") == version_of(version)
    network = {"type": "NetworkReady", "status": False, "reason": "NoCNI", "message": "none loaded"}
    found = status_of(cri.StatusResponse(status={"conditions": [network]}, info={"cniconfig": "{}"}))
    bad = RuntimeCondition("NetworkReady", status=False, reason="NoCNI", message="none loaded")
    assert RuntimeStatus((bad,), {"cniconfig": "{}"}) == found
    assert (bad, None) == (found.condition("NetworkReady"), found.condition("RuntimeReady"))


def test_handlers_and_features():
    handlers = [{"name": "", "features": {"user_namespaces": True}}, {"name": "old"}]
    told = cri.StatusResponse(status={}, runtime_handlers=handlers, features={"supplemental_groups_policy": True})
    found, silent = status_of(told), status_of(cri.StatusResponse(status={}))
    assert (NodeRuntimeHandler("", user_namespaces=True), NodeRuntimeHandler("old")) == found.handlers
    assert (True, None) == (found.supplemental_groups_policy, silent.supplemental_groups_policy)


NAMESPACES = [{"type": "pid"}, {"type": "network", "path": "/run/netns/cni-1"}]
INFO = json.dumps({"pid": 7, "runtimeSpec": {"linux": {"namespaces": NAMESPACES}}})


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        pytest.param({"info": INFO}, "/run/netns/cni-1", id="as containerd and CRI-O have it"),
        pytest.param({"info": '{"runtimeSpec": {"linux": {"namespaces": [{"type": "pid"}]}}}'}, "", id="the host's"),
        pytest.param({"info": "no JSON"}, "", id="nonsense"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_the_network_of_a_sandbox(info: dict[str, str], expected: str) -> None:
    assert network_namespace_of(cri.PodSandboxStatusResponse(info=info)) == expected
