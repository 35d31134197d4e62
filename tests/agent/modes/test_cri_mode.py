"""Mode kubelet over the CRI, put together and not started."""

import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from agent import settings
from agent.cri import rpc
from agent.cri.convert import LABEL_OWNER
from agent.kubelet.node.observed import Observed
from agent.kubelet.pleg.events import EventType, PodEvent
from agent.kubelet.pods.work_queue import WorkQueue
from agent.modes.kubelet import in_runtime
from agent.modes.node_facts import node_facts, pressure_watch
from agent.processes.command import RuntimeUnavailable
from agent.wire.model import Image, NodeRuntimeHandler
from agent.wire.placement_model import Taint
from agent.wire.semantics import V1_16, Semantics, chosen
from component.lifecycle import StartFailed
from tools.fakes.cri import Runtime
from tools.kit.waiting import wait_until


def section(folder: Path, more: str = "", socket: str = "/none.sock") -> settings.Kubelet:
    cri = f"{{address: 192.0.2.7, socket: {socket}}}"
    text = f"mode: kubelet\nkubelet: {{nodeName: n, rootDir: {folder}, cri: {cri}{more}}}"
    found = settings.parse(text.encode(), {}).kubelet
    assert found is not None
    return found


def test_the_runtime_of_the_settings(tmp_path: Path) -> None:
    node = section(tmp_path)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, WorkQueue(), Semantics())
    causes = ran.readiness(0.0).runtime_errors(0.0)
    ran.runtime.stop()
    assert ("192.0.2.7", False, "") == (ran.runtime.host_ip, ran.events.evented, ran.found().runtime_version)
    assert ["container runtime status check may not have completed yet"] == causes


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param("{}", "", id="off: a kubelet looks at its lists alone"),
        pytest.param(
            "{EventedPLEG: true}", "EventedPLEG: pleg event channel capacity is full with 1000 events", id="on"
        ),
    ],
)
def test_pl54_a_full_channel_counts_with_the_gate_evented_pleg(gates: str, expected: str, tmp_path: Path) -> None:
    node, inbox = section(tmp_path, f", featureGates: {gates}"), WorkQueue()
    assert node.cri is not None
    ran = in_runtime(node, node.cri, inbox, chosen("current", node.feature_gates.items()))
    before = ran.events_full()
    while inbox.deliver(PodEvent("p", EventType.DIED)):
        pass
    full = ran.events_full()
    ran.runtime.stop()
    assert ("", expected) == (before, full)


def test_without_grpc_it_does_not_start_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    rpc._load.cache_clear()
    node = section(tmp_path)
    assert node.cri is not None
    with pytest.raises(StartFailed, match=r"install readygate\[grpc\]"):
        in_runtime(node, node.cri, WorkQueue(), Semantics())
    rpc._load.cache_clear()


def test_ep10_a_full_file_system_of_images_is_pressure_on_disks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runtime = Runtime(tmp_path)
    node = section(tmp_path, ", evictionHard: {imagefs.available: 99.999%}", runtime.socket)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, WorkQueue(), Semantics())
    watch = pressure_watch(node, ran.folders)
    watch.turn()
    before = watch.conditions
    (refused,) = [record.error for record in caplog.records]
    runtime.start()
    try:
        runtime.says(ImageFsInfo={"imageFilesystems": [{"fsId": {"mountpoint": str(tmp_path)}}]})
        # The library connects again a moment later.
        wait_until(
            lambda: watch.turn() and {"DiskPressure"} == watch.conditions, lambda: watch.conditions, timeout_s=60
        )
        assert set() == before
        assert f"ImageFsInfo on {runtime.socket}: no such socket: start the container runtime" in refused
    finally:
        ran.runtime.stop()
        runtime.process.kill()


def test_what_the_runtime_has_is_told_in_the_nodes_status(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runtime = Runtime(tmp_path)
    runtime.says(
        Status={
            "status": {"conditions": [{"type": kind, "status": True} for kind in ("RuntimeReady", "NetworkReady")]},
            "runtimeHandlers": [{"name": "runsc", "features": {"userNamespaces": True}}],
            "features": {"supplementalGroupsPolicy": True},
        },
        ListImages={"images": [{"id": "sha256:a", "repoTags": ["i:1"], "size": "7"}]},
    )
    runtime.start()
    node = section(tmp_path, socket=runtime.socket)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, WorkQueue(), Semantics())
    try:
        ran.runtime._look()
        runtime.says(ListImages="garbage", Status="hang")
        for _ in range(3):
            ran.runtime._list_images()
        handler = NodeRuntimeHandler("runsc", user_namespaces=True)
        image = Image("sha256:a", 7, tags=("i:1",))
        assert Observed((image,), (handler,), (), frozenset(), "fake://1.0", True) == ran.found()
        assert [("images not listed", "garbage")] == [(r.message, r.cause) for r in caplog.records]
    finally:
        ran.runtime.stop()
        runtime.process.kill()


def test_n100_the_runtime_is_told_the_addresses_of_pods(tmp_path: Path) -> None:
    runtime = Runtime(tmp_path)
    runtime.says(UpdateRuntimeConfig={})
    runtime.start()
    node = section(tmp_path, socket=runtime.socket)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, WorkQueue(), Semantics())
    try:
        ran.use_pod_cidr("10.0.0.0/24")
        runtime.says(UpdateRuntimeConfig="UNKNOWN:no")
        with pytest.raises(RuntimeUnavailable, match="UpdateRuntimeConfig on "):
            ran.use_pod_cidr("10.0.1.0/24")
    finally:
        ran.runtime.stop()
        runtime.process.kill()


def test_n97_more_than_the_machine_has_cannot_be_reserved(tmp_path: Path) -> None:
    node = section(tmp_path, ", kubeReserved: {cpu: 100k}")
    with pytest.raises(StartFailed, match=r"Expected capacity >= reservation\. Reserve less \(kubelet\.systemReserved"):
        node_facts(node, "192.0.2.7", Semantics())


def test_n102_settings_override_what_is_read_of_the_machine(tmp_path: Path) -> None:
    more = ", capacity: {memory: 64Gi}, systemReserved: {cpu: 10m}, registerWithTaints: [{key: a, effect: NoExecute}]"
    facts = node_facts(section(tmp_path, more), "192.0.2.7", Semantics())
    read = node_facts(section(tmp_path), "192.0.2.7", Semantics())
    assert read.capacity.keys() >= {"cpu", "memory", "pods", "ephemeral-storage"}
    assert {**read.capacity, "memory": "64Gi"} == facts.capacity
    assert (facts.reserved, facts.taints) == ({"cpu": Fraction(1, 100)}, (Taint("a", "", "NoExecute"),))
    assert (read.reserved, read.taints, read.pod_cidr) == ({}, (), "")


def test_a_list_of_images_that_hangs_does_not_make_the_runtime_look_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.kubelet.runtime.cri_writer.IMAGES_S", 0.2)
    runtime = Runtime(tmp_path)
    ready = [{"type": kind, "status": True} for kind in ("RuntimeReady", "NetworkReady")]
    runtime.says(Status={"status": {"conditions": ready}}, ListImages="hang")
    runtime.start()
    node = section(tmp_path, socket=runtime.socket)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, WorkQueue(), Semantics())
    try:
        ran.runtime._look()
        now = time.monotonic()
        assert ([], ()) == (ran.readiness(now).runtime_errors(now), ran.found().images)
        runtime.says(ListImages={"images": [{"id": "a", "size": str(2**64 - 1)}]})
        ran.runtime._list_images()
        assert [2**63 - 1] == [image.size_bytes for image in ran.found().images]
    finally:
        ran.runtime.stop()
        runtime.process.kill()


@pytest.mark.parametrize(
    ("semantics", "expected"),
    [
        pytest.param(Semantics(), ("RestartAllContainersOnContainerExits",), id="as it comes"),
        pytest.param(Semantics(restart_all_containers_on_container_exits=False), (), id="with that gate off"),
        pytest.param(
            Semantics(restart_all_containers_on_container_exits=False, node_declared_features=False),
            None,
            id="with declarations off",
        ),
        pytest.param(V1_16, None, id="one of old"),
    ],
)
def test_n93_which_features_the_node_declares(semantics: Semantics, expected: object, tmp_path: Path) -> None:
    assert expected == node_facts(section(tmp_path), "192.0.2.7", semantics).declared_features


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(["STARTED", "STOPPED"], (True, ["ours"]), id="PL35 its events, of ours alone"),
        pytest.param("UNIMPLEMENTED:unknown method", (False, []), id="PL38 a runtime of old: lists"),
    ],
)
def test_with_the_gate_evented_pleg(answers: list[str] | str, expected: object, tmp_path: Path) -> None:
    runtime, inbox = Runtime(tmp_path), WorkQueue()
    pods = [
        {"id": uid, "metadata": {"name": uid, "namespace": "ns", "uid": uid}, "labels": {LABEL_OWNER: owner}}
        for uid, owner in (("ours", "n"), ("theirs", "m"))
    ]
    runtime.says(ListPodSandbox={"items": pods}, ListContainers={}, PodSandboxStatus={"status": pods[0]})
    told = [
        {"containerId": "c", "containerEventType": f"CONTAINER_{kind}_EVENT", "podSandboxStatus": pod}
        for kind, pod in zip(answers, reversed(pods), strict=False)
    ]
    runtime.says(GetContainerEvents=told if isinstance(answers, list) else answers)
    runtime.start()
    node = section(tmp_path, ", featureGates: {EventedPLEG: true}", runtime.socket)
    assert node.cri is not None
    ran = in_runtime(node, node.cri, inbox, chosen("current", node.feature_gates.items()))
    assert ran.events.evented
    try:
        ran.events.turn()
        inbox.take(0.0)  # what was there when we came
        (reads,) = ran.told
        reads.start()
        seen: list[str] = []
        if expected == (True, ["ours"]):
            wait_until(lambda: seen.extend(inbox.take(0.1)) or seen, lambda: seen, timeout_s=60)
        else:
            wait_until(lambda: ran.events.turn() >= 0 and not ran.events.evented, "it is given up", timeout_s=60)
        assert expected == (ran.events.evented, seen)
        assert frozenset({"ours"}) == ran.events.cache.uids()
    finally:
        for reading in ran.told:
            reading.stop()
        ran.runtime.stop()
        runtime.process.kill()
