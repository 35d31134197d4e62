"""Whether kube-scheduler asks, seen by a pod that is refused everywhere: what is made, concluded, and left."""

import json
from types import ModuleType
from typing import Any

import pytest
from readygate_objects.canary import (
    LABEL,
    LABELS,
    NAME,
    OTHERS,
    OTHERS_LAST_S,
    PLACED,
    REASON,
    REFUSED,
    WAITS,
    canary,
    judged,
    outcome,
    priority_class,
)

from extender.config.settings import parse
from extender.policy.exempt import is_canary, rules_of
from kube import contract
from tests.playbooks import modules
from tests.playbooks.rendering import plain, render
from tools.kit.clock import Clock

IMAGE = "registry.example/readygate:1.1"
DEFAULT = "default-scheduler"
MADE = canary(0, contract.NAMESPACE, DEFAULT, IMAGE, [])
REFUSAL = f"0/3 nodes are available: 3 {REASON}. preemption: 0/3 nodes are available: 3 Preemption is not helpful."
FULL = "0/3 nodes are available: 3 Too many pods. preemption: 0/3 nodes are available: 3 No preemption victims found."


def said(message: str, reason: str = "Unschedulable") -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {"spec": {"schedulerName": DEFAULT}, "status": {"conditions": [condition]}}


def test_extender_and_playbooks_spell_it_alike():
    assert (contract.LABEL_CANARY, contract.CANARY_REFUSED) == (LABEL, REASON)
    assert contract.NAMESPACE == plain(
        render("readygate_scheduler_config", {})("__readygate_scheduler_config_namespace")
    )
    metadata = MADE["metadata"]
    rules = rules_of(parse(""))
    assert is_canary(rules, namespace=metadata["namespace"], labels=metadata["labels"], owners=None)


def test_the_pod_fits_everywhere_and_can_do_no_harm_if_it_is_placed():
    spec = MADE["spec"]
    (container,) = spec["containers"]
    assert [{"operator": "Exists"}] == spec["tolerations"]
    assert {"nodeName", "nodeSelector", "affinity", "serviceAccountName", "volumes"}.isdisjoint(spec)
    assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(spec)
    assert ("Never", ["true"], IMAGE) == (container["imagePullPolicy"], container["command"], container["image"])
    assert ("Never", 0, False) == (
        spec["restartPolicy"],
        spec["terminationGracePeriodSeconds"],
        spec["automountServiceAccountToken"],
    )
    assert {"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "0", "memory": "0"}} == container["resources"]
    assert (NAME, "Never") == (spec["priorityClassName"], priority_class()["preemptionPolicy"])


def test_the_pod_is_of_the_restricted_standard():
    spec = MADE["spec"]
    (container,) = spec["containers"]
    assert (True, {"type": "RuntimeDefault"}) == (
        spec["securityContext"]["runAsNonRoot"],
        spec["securityContext"]["seccompProfile"],
    )
    assert (False, {"drop": ["ALL"]}) == (
        container["securityContext"]["allowPrivilegeEscalation"],
        container["securityContext"]["capabilities"],
    )


def test_a_scheduler_that_asks_for_some_resources_only_is_given_a_pod_with_each_of_them():
    """IsInterested looks at the names (pkg/scheduler/extender.go), the filters of the nodes at quantities."""
    (container,) = canary(0, "n", DEFAULT, IMAGE, ["nvidia.com/gpu"])["spec"]["containers"]
    assert ["0", "0"] == [container["resources"][part]["nvidia.com/gpu"] for part in ("requests", "limits")]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param({}, (WAITS, ""), id="it is not there"),
        pytest.param({"spec": {}, "status": {}}, (WAITS, ""), id="nobody has looked at it"),
        pytest.param(said(REFUSAL), (REFUSED, ""), id="refused everywhere, by us"),
        pytest.param(
            said("0/3 nodes are available: 1 Too many pods, 2 " + REASON + "."), (REFUSED, ""), id="by us, where asked"
        ),
        pytest.param({"spec": {"nodeName": "worker-1"}}, (PLACED, "worker-1"), id="placed"),
        pytest.param(said(FULL), (OTHERS, FULL), id="refused by others"),
        pytest.param(
            said("Post http://127.0.0.1:338/filter: connection refused", "SchedulerError"),
            (WAITS, "Post http://127.0.0.1:338/filter: connection refused"),
            id="the extender did not answer a scheduler that insists",
        ),
        pytest.param(
            {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}},
            (OTHERS, "it has the scheduling gate kueue.x-k8s.io/admission"),
            id="held by a scheduling gate",
        ),
        pytest.param(
            {"spec": {"schedulerName": "volcano"}},
            (OTHERS, "it was assigned to the scheduler volcano"),
            id="given to another scheduler",
        ),
    ],
)
def test_what_became_of_the_pod(pod, expected):
    assert expected == outcome(pod, DEFAULT)


@pytest.mark.parametrize(
    ("outcomes", "lasted_s", "state", "words"),
    [
        pytest.param(
            {DEFAULT: (REFUSED, "")}, 1, REFUSED, "asks readygate and follows its answer: default-", id="well"
        ),
        pytest.param(
            {"b": (REFUSED, ""), "a": (REFUSED, "")}, 1, REFUSED, "follows its answer: a, b", id="several, all well"
        ),
        pytest.param(
            {"a": (REFUSED, ""), "b": (PLACED, "worker-1"), "c": (WAITS, "")},
            1,
            PLACED,
            "kube-scheduler (b) placed a pod on node worker-1 that readygate refuses on every node: it does not ask",
            id="one of several does not ask",
        ),
        pytest.param(
            {"a": (REFUSED, ""), "b": (WAITS, "")},
            99,
            WAITS,
            "kube-scheduler (b) has not refused a pod within 60 s that readygate refuses on every node, and reports",
            id="one of several is not there",
        ),
        pytest.param(
            {DEFAULT: (WAITS, "connection refused")},
            99,
            WAITS,
            "reports: connection refused. Check",
            id="it cannot ask",
        ),
        pytest.param({DEFAULT: (OTHERS, FULL)}, 1, WAITS, "not proven", id="others may let it pass in a moment"),
        pytest.param({DEFAULT: (OTHERS, FULL)}, OTHERS_LAST_S, OTHERS, "Too many pods", id="others go on refusing it"),
    ],
)
def test_what_is_concluded(outcomes, lasted_s, state, words):
    concluded, text = judged(outcomes, lasted_s, 60.0)
    assert state == concluded
    assert words in text
    assert "\n" not in text


class FakeKubectl:
    """One cluster: what was made and not deleted; `answers` tells what became of a pod, by its try. `failing`: what an
    API server says of a command that begins so, as often as is said."""

    def __init__(self, *answers: dict[str, Any], failing: dict[str, list[str]] | None = None) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        self._answers = list(answers)
        self._failing = failing or {}

    def run(self, *arguments: str, stdin: str = "") -> str:
        made = json.loads(stdin) if stdin else {}
        about = " ".join([arguments[0], made.get("kind", "")]).strip()
        if self._failing.get(about):
            error = self._failing[about].pop(0)
            if error:
                raise OSError(error)
        if arguments[0] == "create":
            assert made["metadata"]["name"] not in self.there, "AlreadyExists"
            self.there[made["metadata"]["name"]] = made
            if made["kind"] == "Pod" and self._answers:
                made.update(self._answers.pop(0))
        elif arguments[0] == "delete":
            assert f"--selector=app.kubernetes.io/name={NAME}" in arguments
            self.there = {name: one for name, one in self.there.items() if one["metadata"]["labels"] != LABELS}
        return "control-2_4d5f" if "lease" in arguments else ""

    def get(self, kind: str, _selector: str) -> dict[str, Any]:
        self.run("get")
        return {"items": [one for one in self.there.values() if kind == "pods" and one["kind"] == "Pod"]}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Its time is a clock's that its sleep moves."""
    made = modules.module("readygate_objects", "readygate_canary")
    clock = Clock()

    class Time:
        monotonic = staticmethod(clock)

        @staticmethod
        def sleep(seconds: float) -> None:
            clock.time += seconds

    monkeypatch.setattr(made, "time", Time)
    return made


def prove(module: ModuleType, kubectl: FakeKubectl, *, schedulers: tuple[str, ...] = (DEFAULT,)) -> tuple[str, str]:
    canaries = module.Canaries(kubectl, contract.NAMESPACE, list(schedulers), IMAGE, [])
    state, text = module.prove(canaries, 60.0)
    return str(state), str(text)


BOUND = {"spec": {"nodeName": "worker-1"}}
UNKNOWN_CLASS = 'pods "readygate-canary-0" is forbidden: no PriorityClass with name readygate-canary was found'


@pytest.mark.parametrize(
    ("kubectl", "state"),
    [
        pytest.param(FakeKubectl(said(REFUSAL)), REFUSED, id="refused"),
        pytest.param(FakeKubectl(BOUND, said(REFUSAL)), REFUSED, id="one answer missed in mode protect"),
        pytest.param(FakeKubectl(BOUND, BOUND, BOUND), PLACED, id="never asked"),
        pytest.param(FakeKubectl(said(FULL)), OTHERS, id="all nodes are full"),
        pytest.param(FakeKubectl(), WAITS, id="nobody schedules"),
        pytest.param(
            FakeKubectl(said(REFUSAL), failing={"create Pod": [UNKNOWN_CLASS] * 3}),
            REFUSED,
            id="the class is not known at once",
        ),
        pytest.param(
            FakeKubectl(said(REFUSAL), failing={"get": ["connection refused"] * 20}),
            REFUSED,
            id="the API server is away",
        ),
        pytest.param(
            FakeKubectl(said(REFUSAL), failing={"get": ["connection refused"] * 200}),
            WAITS,
            id="and does not come back",
        ),
        pytest.param(
            FakeKubectl(said(REFUSAL), failing={"delete": ["", "connection refused", "connection refused"]}),
            REFUSED,
            id="the API server is away when all is over",
        ),
    ],
)
def test_whatever_becomes_of_it_nothing_stays(module, kubectl, state):
    assert state == prove(module, kubectl)[0]
    assert {} == kubectl.there


def test_what_a_killed_run_has_left_is_removed_first(module):
    kubectl = FakeKubectl(said(REFUSAL))
    kubectl.there = {"readygate-canary-0": MADE, "readygate-canary-1": MADE, NAME: priority_class()}
    assert REFUSED == prove(module, kubectl)[0]
    assert {} == kubectl.there


def test_each_scheduler_has_a_pod_of_its_own(module):
    kubectl = FakeKubectl(said(REFUSAL), BOUND, said(REFUSAL), BOUND, said(REFUSAL), BOUND)
    state, text = prove(module, kubectl, schedulers=("a", "b"))
    assert (PLACED, True) == (state, "kube-scheduler (b) placed a pod on node worker-1" in text)
    assert text.endswith(". The leading scheduler is on control-2")


@pytest.mark.parametrize(
    "failing",
    [
        pytest.param({"create Pod": ["exceeded quota: none"]}, id="a quota"),
        pytest.param({"create Pod": ["denied the request: image not signed"]}, id="an admission policy"),
        pytest.param({"create PriorityClass": ["is forbidden: User cannot create"]}, id="missing rights"),
        pytest.param({"create Pod": [UNKNOWN_CLASS] * 99}, id="a class that never comes to be known"),
    ],
)
def test_who_forbids_the_pod_is_told_and_nothing_stays(module, failing):
    kubectl = FakeKubectl(failing={key: list(value) for key, value in failing.items()})
    with pytest.raises(OSError, match=r"quota|signed|cannot create|no PriorityClass"):
        prove(module, kubectl)
    assert {} == kubectl.there


@pytest.mark.parametrize("stopped", [SystemExit("stopped"), KeyboardInterrupt()])
def test_nothing_stays_of_a_module_that_is_stopped(module, monkeypatch, stopped):
    kubectl = FakeKubectl()

    def stop(*_: object) -> None:
        raise stopped

    monkeypatch.setattr(module, "_watch", stop)
    with pytest.raises(type(stopped)):
        prove(module, kubectl)
    assert {} == kubectl.there


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        pytest.param({}, [DEFAULT], id="not looked at"),
        pytest.param({"seen": {"configz": {"error": "refused"}}}, [DEFAULT], id="not read"),
        pytest.param({"seen": {"configz": {"profiles": []}}}, [DEFAULT], id="no profile"),
        pytest.param(
            {"seen": {"configz": {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}}},
            ["a", "b"],
            id="each of its profiles",
        ),
    ],
)
def test_by_which_names_the_scheduler_is_asked_for(look, expected):
    value = render("readygate_scheduler_config", {"__readygate_scheduler_config_look": look})
    assert expected == plain(value("__readygate_scheduler_config_schedulers"))
