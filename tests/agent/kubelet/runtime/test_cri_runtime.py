"""Pods in a container runtime that does as it is told, fails, hangs, vanishes: what is made of them (rows CW)."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from agent.cri.base import CriError
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.connect import connect_runtime
from agent.kubelet.runtime.cri_configs import hostname
from agent.kubelet.runtime.cri_runtime import CriRuntime
from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import ContainerPhase
from agent.wire.model import Container, EnvVar, Pod
from component.lifecycle import StartFailed
from tests.agent.kubelet.runtime.conftest import PATIENT_S, Faked
from tests.agent.kubelet.status.builders import make_pod
from tools.kit.waiting import wait_until

C = Container("c", image="i", image_pull_policy="Never", command=("run", "$(WHO)"), env=(EnvVar("WHO", "me"),))
POD = make_pod(C, uid="u")


def ended(agent: CriRuntime, container_id: str) -> bool:
    found = agent.pod("u").containers
    return all(c.phase is not ContainerPhase.RUNNING for c in found if c.id == container_id)


def test_cw1_the_life_of_a_pod(faked: Faked) -> None:
    agent = faked.agent()
    assert "10.0.0.9" == agent.prepare_pod(POD)
    id_ = agent.start_container(POD, C, 0)
    assert [("c", ContainerPhase.RUNNING, 0)] == [(c.name, c.phase, c.restart_count) for c in agent.pod("u").containers]
    agent.stop_container(id_, 7.0)
    wait_until(lambda: ended(agent, id_), timeout_s=PATIENT_S)
    agent.stop_pod("u")
    agent.remove_pod("u")
    whole = ["RunPodSandbox pod-1", "CreateContainer c", "StartContainer c", "StopContainer c 7"]
    assert [*whole, "StopPodSandbox pod-1", "StopPodSandbox pod-1"] == faked.calls()[:6]
    assert ["RemoveContainer c", "RemovePodSandbox pod-1"] == faked.calls()[6:]
    assert ((0, 0), []) == (faked.left(), list((faked.logs).iterdir()))


def test_cw2_what_the_runtime_is_told_of_a_pod(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(replace(POD, labels={"app": "web"}, annotations={"a": "b"}))
    agent.start_container(POD, C, 3)
    state = faked.fake.store.read()
    sandbox, container = (next(iter(state[kind].values()))["config"] for kind in ("sandboxes", "containers"))
    ours = {
        "io.kubernetes.pod.name": "pod-1",
        "io.kubernetes.pod.namespace": "default",
        "io.kubernetes.pod.uid": "u",
        "readygate.dev/agent/node": "node-1",
    }
    assert ({"app": "web", **ours}, {"a": "b"}) == (sandbox["labels"], sandbox["annotations"])
    assert ("pod-1", "/readygate") == (sandbox["hostname"], sandbox["linux"]["cgroupParent"])
    assert {**ours, "io.kubernetes.container.name": "c"} == container["labels"]
    assert ("3", "c/3.log") == (container["annotations"]["io.kubernetes.container.restartCount"], container["logPath"])
    assert (["run", "me"], "sha256:i", 3) == (
        container["command"],
        container["image"]["image"],
        container["metadata"]["attempt"],
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"name": "n"}, "n", id="its name"),
        pytest.param({"name": "n", "hostname": "h"}, "h", id="its own"),
        pytest.param(
            {"name": "n", "hostname": "h", "hostname_override": "o.example"}, "o.example", id="that overrides"
        ),
        pytest.param({"name": f"{'x' * 62}-y"}, "x" * 62, id="one that is too long for the kernel"),
    ],
)
def test_cw2_the_name_of_its_host(fields: dict[str, str], expected: str) -> None:
    assert expected == hostname(make_pod("c", **fields))


def test_cw2_whether_it_has_a_terminal_is_told(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    agent.start_container(POD, replace(C, stdin=True, stdin_once=True, tty=True), 0)
    (container,) = faked.fake.store.read()["containers"].values()
    assert {"stdin": True, "stdinOnce": True, "tty": True}.items() <= container["config"].items()


def test_cw3_of_what_has_ended_one_instance_stays_and_the_sandboxes_in_use(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    for count in range(4):
        id_ = agent.start_container(POD, C, count)
        agent.stop_container(id_, 2.0)
        wait_until(lambda id_=id_: ended(agent, id_), timeout_s=PATIENT_S)
    assert [3, 2] == [c.restart_count for c in agent.pod("u").instances("c")]
    agent.stop_pod("u")
    agent.prepare_pod(POD)
    assert [1, 0] == [s.attempt for s in agent.pod("u").sandboxes]
    for count in (4, 5, 6):
        agent.stop_container(agent.start_container(POD, C, count), 2.0)
        wait_until(lambda: not agent.pod("u").running, timeout_s=PATIENT_S)
    assert [1] == [s.attempt for s in agent.pod("u").sandboxes]


def test_cw3_a_log_that_cannot_be_removed_keeps_no_container_from_its_start(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    (faked.logs / "u" / "c" / "0.log" / "no file").mkdir(parents=True)
    for count in range(3):
        id_ = agent.start_container(POD, C, count)
        agent.stop_container(id_, 2.0)
        wait_until(lambda id_=id_: ended(agent, id_), timeout_s=PATIENT_S)
    assert [2, 1] == [c.restart_count for c in agent.pod("u").instances("c")]


def test_cw3_attempts_begin_anew_where_their_number_ends(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    state = faked.fake.store.read()
    (known,) = state["sandboxes"].values()
    known["config"]["metadata"]["attempt"] = 2**32 - 1
    faked.fake.store.write(state)
    agent.stop_pod("u")
    agent.prepare_pod(POD)
    assert [(2**32 - 1, False), (0, True)] == [(s.attempt, s.ready) for s in agent.pod("u").sandboxes]


@pytest.mark.parametrize("uid", ["", ".", "..", "../precious", "PRECIOUS", "a/../../precious", "a\0b"])
def test_cw17_a_uid_that_is_a_path_leads_nowhere(faked: Faked, uid: str) -> None:
    """Of a pod that the runtime says is ours, and that nobody knows: its folder is removed."""
    precious = faked.folder / "precious"
    precious.mkdir()
    (faked.logs / "other").mkdir(parents=True)
    faked.agent().remove_pod(uid.replace("PRECIOUS", str(precious)))
    assert (True, True) == (precious.exists(), (faked.logs / "other").exists())


def test_cw4_what_others_have_in_the_runtime_is_neither_seen_nor_touched(faked: Faked) -> None:
    other = connect_runtime(
        faked.fake.socket, owner="node-2", host_ip="", logs=faked.folder / "other", guard=faked.guard, deadline_s=60.0
    )
    # As near as a pod's labels can come.
    other.prepare_pod(replace(POD, labels={"readygate.dev/agent": "node-1", "readygate.dev/node": "node-1"}))
    other.start_container(POD, C, 0)
    agent = faked.agent()
    assert (frozenset(), []) == (agent.known_pods(), list(agent.list_pods()))
    agent.stop_pod("u")
    agent.remove_pod("u")
    other.stop()
    assert ((1, 1), ["RunPodSandbox pod-1", "CreateContainer c", "StartContainer c"]) == (faked.left(), faked.calls())


def test_cw5_where_a_kubelet_answers_nothing_is_written(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    id_ = agent.start_container(POD, C, 0)
    before = faked.calls()

    class There:
        def refusal(self) -> str:
            return "a kubelet answers"

    agent._guard = There()  # type: ignore[assignment]
    for act in (lambda: agent.prepare_pod(POD), lambda: agent.start_container(POD, C, 1)):
        with pytest.raises(StartError, match="a kubelet answers"):
            act()
    for change in (lambda: agent.stop_pod("u"), lambda: agent.remove_pod("u"), lambda: agent.remove_container(id_)):
        with pytest.raises(RuntimeUnavailable, match="a kubelet answers"):
            change()
    with pytest.raises(RuntimeUnavailable, match="a kubelet answers"):
        agent._stop_once(id_, 1.0)
    with pytest.raises(StartFailed, match="a kubelet answers"):
        agent.start()
    assert (before, "a kubelet answers") == (faked.calls(), agent.refusal())


@pytest.mark.parametrize(
    ("pod", "container", "reason", "says"),
    [
        pytest.param(
            replace(POD, beyond=("hostPID",)), C, "CreateContainerConfigError", "hostPID: not supported", id="a pod's"
        ),
        pytest.param(
            POD,
            replace(C, beyond=("securityContext", "volumeMounts")),
            "CreateContainerConfigError",
            "securityContext, volumeMounts: not supported",
            id="a container's",
        ),
        pytest.param(
            POD,
            replace(C, env=(EnvVar("S", unsupported="secretKeyRef"),)),
            "CreateContainerConfigError",
            "secretKeyRef",
            id="a secret",
        ),
        pytest.param(
            POD,
            replace(C, image="none"),
            "ErrImageNeverPull",
            'Container image "none" is not present with pull policy of Never',
            id="an image that is not there, and may not be pulled",
        ),
    ],
)
def test_cw6_what_asks_for_more_than_it_would_get_does_not_run(
    faked: Faked, pod: Pod, container: Container, reason: str, says: str
) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    with pytest.raises(StartError, match=says) as told:
        agent.start_container(pod, container, 0)
    assert (reason, (1, 0)) == (told.value.reason, faked.left())


def test_cw7_an_image_is_pulled_by_its_policy_and_backs_off(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    absent = replace(C, image="new", image_pull_policy="IfNotPresent")
    faked.says(PullImage="UNKNOWN:no such host")
    reasons = []
    for _ in range(2):
        with pytest.raises(StartError) as told:
            agent.start_container(POD, absent, 0)
        reasons.append(told.value.reason)
    assert ["ErrImagePull", "ImagePullBackOff"] == reasons
    agent._images._failed.clear()
    faked.says()
    agent.start_container(POD, absent, 0)
    agent.start_container(POD, replace(C, name="d", image="new", image_pull_policy="Always"), 0)
    agent.start_container(POD, replace(C, name="e", image="new", image_pull_policy="IfNotPresent"), 0)
    assert 2 == faked.calls().count("PullImage new")


def test_cw8_there_is_never_a_second_one_of_what_runs(faked: Faked) -> None:
    agent = faked.agent()
    assert {agent.prepare_pod(POD) for _ in range(3)} == {"10.0.0.9"}
    assert 1 == len({agent.start_container(POD, C, count) for count in range(3)})
    assert (1, 1) == faked.left()


def test_cw9_one_that_was_made_and_never_started_goes_when_it_is_stopped(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    faked.says(StartContainer="UNKNOWN:failed to create shim task: no space left on device")
    with pytest.raises(StartError, match="no space left on device") as told:
        agent.start_container(POD, C, 0)
    assert "RunContainerError" == told.value.reason
    made = agent.pod("u").running
    assert [ContainerPhase.CREATED] == [c.phase for c in made]
    agent.stop_container(made[0].id, 2.0)
    wait_until(lambda: faked.left() == (1, 0), timeout_s=PATIENT_S)


WRITES = (
    "RunPodSandbox",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "StopPodSandbox",
    "RemoveContainer",
    "RemovePodSandbox",
)
FAULTS = {
    "vanish": "it goes away before",
    "do, vanish": "it goes away behind",
    "hang": "it hangs before",
    "do, hang": "it hangs behind",
    "garbage": "its answer is garbage",
    "UNKNOWN:write /var/lib: no space left on device": "its disk is full",
}


@pytest.mark.parametrize(
    ("method", "fault"),
    [pytest.param(m, f, id=f"{m}, {says}") for m, (f, says) in itertools.product(WRITES, FAULTS.items())],
)
def test_cw10_after_any_fault_the_next_agent_goes_on_and_nothing_is_left(faked: Faked, method: str, fault: str) -> None:
    """The agent is killed after the call that failed, whatever came of it."""
    faked.says(**{method: fault})
    told: list[Exception] = []
    most: list[int] = []

    def until_done(act: Callable[[CriRuntime], object]) -> None:
        for _ in range(20):
            agent = faked.agent(2.0 if "hang" in fault else PATIENT_S)
            try:
                act(agent)
            except (StartError, RuntimeUnavailable) as e:
                told.append(e)
                faked.up()
            else:
                return
            finally:
                state = faked.fake.store.read()
                most.append(sum(s["ready"] for s in state["sandboxes"].values()))
                agent.stop()
        pytest.fail(f"{told}")

    def stop(agent: CriRuntime) -> None:
        for container in agent.pod("u").running:
            agent._stop_once(container.id, 2.0)
        assert () == agent.pod("u").running

    until_done(lambda agent: agent.prepare_pod(POD))
    until_done(lambda agent: agent.start_container(POD, C, 0))
    until_done(stop)
    until_done(lambda agent: agent.stop_pod("u"))
    until_done(lambda agent: agent.remove_pod("u"))
    assert ((0, 0), 1) == (faked.left(), max(most))
    # Without its folder, which the socket's name and the library repeat, and is as long as it is.
    texts = [str(e).replace(str(faked.folder), "") for e in told]
    assert [] == [text for text in texts if "\n" in text or len(text) >= 400]
    assert told
    assert not list((faked.logs).iterdir())


def test_cw11_a_stop_that_fails_is_tried_again(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    id_ = agent.start_container(POD, C, 0)
    faked.says(StopContainer="UNKNOWN:no")
    agent.stop_container(id_, 30.0)
    agent.stop_container(id_, 60.0)  # later than asked for: nothing new
    faked.says()
    wait_until(lambda: ended(agent, id_), timeout_s=PATIENT_S)
    assert 1 == len([call for call in faked.calls() if call.startswith("StopContainer")])


def test_cw11_the_longest_grace_that_a_pod_may_have_is_one(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    id_ = agent.start_container(POD, C, 0)
    agent._stop_once(id_, float(2**63 - 1))
    assert (True, "StopContainer c 2147483647") == (ended(agent, id_), faked.calls()[-1])


def test_cw12_a_pod_that_nobody_wants_is_ended_first_and_then_removed(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    agent.start_container(POD, C, 0)
    agent.remove_pod("u")
    assert 1 == faked.left()[0]
    wait_until(lambda: not agent.pod("u").running, timeout_s=PATIENT_S)
    agent.remove_pod("u")
    assert ((0, 0), "StopContainer c 2") == (faked.left(), faked.calls()[3])


def test_cw13_a_disk_that_takes_no_log_folder_is_said(faked: Faked) -> None:
    agent = faked.agent()
    (faked.logs).write_text("no folder")
    with pytest.raises(StartError, match="Failed to create sandbox") as told:
        agent.prepare_pod(POD)
    assert ("FailedCreatePodSandBox", (0, 0)) == (told.value.reason, faked.left())
    with pytest.raises(StartFailed, match=r"kubelet\.rootDir is not usable"):
        agent.start()


def test_cw14_without_its_network_or_without_an_answer_the_node_is_not_ready(faked: Faked) -> None:
    conditions = [{"type": "RuntimeReady", "status": True}]
    network = {"type": "NetworkReady", "status": False, "reason": "NetworkPluginNotReady", "message": "no CNI"}
    agent = faked.agent()

    def causes(later_s: float = 0.0) -> list[str]:
        return [*agent.readiness.runtime_errors(agent._monotonic() + later_s), *agent.readiness.network_errors()]

    said = [causes()]
    faked.says(Status={"status": {"conditions": [*conditions, network]}})
    agent._look()
    said.append(causes())
    faked.says(Status={"status": {"conditions": [*conditions, {**network, "status": True}]}})
    agent._look()
    said += [causes(), causes(31.0)]
    never = ["container runtime status check may not have completed yet", "network state unknown"]
    down = ["container runtime is down"]
    no_network = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:no CNI"
    assert [never, [no_network], [], down] == said
    assert "fake://1.0" == agent.version


def test_cw15_the_end_of_the_agent_leaves_containers_alone(faked: Faked) -> None:
    agent = faked.agent()
    agent.start()
    agent.prepare_pod(POD)
    agent.start_container(POD, C, 0)
    assert not agent.end_all(0.4, wait_s=0.7)
    agent.stop()
    assert [ContainerPhase.RUNNING] == [c.phase for c in faked.agent().pod("u").containers]
    with pytest.raises(CriError):
        agent.pod("u")
