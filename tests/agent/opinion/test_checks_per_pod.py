"""Which checks count for which health pods: by the file, after it was read again, and in what is written of each."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from agent.checks.state import CheckState, CheckStatus, Severity
from agent.opinion.checks_per_pod import ChecksPerPod, Entry, counting_of
from agent.opinion.judge import MOST_PODS
from agent.opinion.selection import Chosen, HealthPods, joined, limited
from agent.opinion.verdict import condition_of
from agent.report.condition import Condition
from agent.wire.condition import REASON_CHECK_FAILED
from agent.wire.model import Result
from tests.agent.kubelet.status.builders import make_pod
from tests.agent.opinion.test_judge import CLOSED, SILENT, Scene, health_pod, told_before
from tools.kit.cases import cases

CHECKS = ("disk", "gpu", "rdma")
Named = Mapping[str, Collection[str]]  # an entry by the label of its pods, with the checks that it names
ONE: Named = {"base": ()}
SPLIT: Named = {"base": (), "gpu": ("gpu",)}


def pods_of(label: str) -> HealthPods:
    return HealthPods("ns", f"app={label}", label)


def by(*labels: str) -> frozenset[HealthPods]:
    return frozenset(pods_of(label) for label in labels)


def entries_of(named: Named) -> list[Entry]:
    return [Entry(pods_of(label), frozenset(checks)) for label, checks in named.items()]


def counting(named: Named, checks: Collection[str] = CHECKS, before: ChecksPerPod | None = None) -> ChecksPerPod:
    return counting_of(entries_of(named), checks, before)


def status(name: str, state: CheckState, severity: Severity = Severity.GATE, output: str = "") -> CheckStatus:
    return CheckStatus(name, severity, 0.0, state, output)


def statuses(*failing: str, checks: Collection[str] = CHECKS) -> list[CheckStatus]:
    return [status(name, CheckState.FAILED if name in failing else CheckState.PASSED) for name in checks]


def closed(
    counted: ChecksPerPod, failing: Sequence[str], labels: Collection[str], checks: Collection[str] = CHECKS
) -> str:
    """The entries whose pods say that the node is bad; "a+b" is a pod of both."""
    found = []
    for label in labels:
        health = counted.health(statuses(*failing, checks=checks), by(*label.split("+")))
        if health is not None and health.reason == REASON_CHECK_FAILED:
            found.append(label)
    return " ".join(found)


@pytest.mark.parametrize(
    ("named", "failing", "expected"),
    [
        pytest.param(SPLIT, ["gpu"], "gpu", id="the named check fails: the pod of its entry alone says so"),
        pytest.param(SPLIT, ["disk"], "base", id="another check fails: only the other pod says so"),
        pytest.param(SPLIT, ["disk", "gpu"], "base gpu", id="both fail: each says its own"),
        pytest.param(SPLIT, [], "", id="none fails"),
        pytest.param(ONE, ["gpu"], "base", id="one entry and nothing named: every check counts"),
        pytest.param({"a": (), "b": ()}, ["gpu"], "a b", id="two entries and nothing named: for both, as ever"),
        pytest.param({**SPLIT, "also": ("gpu",)}, ["gpu"], "gpu also", id="two entries name the same check: for both"),
        pytest.param({**SPLIT, "net": ("rdma",)}, ["rdma"], "net", id="a third entry with a check of its own"),
        pytest.param({"base": (), "two": ("gpu", "rdma")}, ["rdma"], "two", id="the second of two that it names"),
        pytest.param({"gpu": ("gpu",)}, ["disk"], "", id="each entry names some: the others count for no pod"),
        pytest.param({"a": ("disk",), "b": ("disk", "gpu")}, ["disk"], "a b", id="named here and there"),
    ],
)
def test_a_named_check_counts_for_those_that_name_it_and_any_other_for_those_that_name_none(
    named: Named, failing: list[str], expected: str
) -> None:
    assert expected == closed(counting(named), failing, named)


@pytest.mark.parametrize("named", [SPLIT, dict(reversed(SPLIT.items()))], ids=["in this order", "in the other order"])
@pytest.mark.parametrize("failing", ["disk", "gpu"])
def test_for_a_pod_that_two_entries_choose_the_checks_of_both_count_whatever_their_order(
    named: Named, failing: str
) -> None:
    assert "base+gpu" == closed(counting(named), [failing], ["base+gpu"])


def test_two_entries_of_the_same_words_are_one_that_names_what_both_name() -> None:
    twice = [Entry(pods_of("base")), Entry(pods_of("base"), frozenset({"gpu"}))]
    assert ["base", "base"] == [closed(counting_of(twice, CHECKS), [name], ["base"]) for name in ("disk", "gpu")]


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param(ONE, [], id="nothing is named"),
        pytest.param(SPLIT, [], id="some entry names none"),
        pytest.param({"gpu": ("gpu",)}, ["disk", "rdma"], id="each names some"),
        pytest.param({"a": ("disk", "gpu"), "b": ("rdma",)}, [], id="all are named"),
    ],
)
def test_checks_that_count_for_nobody_are_known(named: Named, expected: list[str]) -> None:
    assert expected == counting(named).for_nobody()


B = {"b": ("gpu",)}


@cases(
    "before, after, checks, failing, expected",
    ("moved", {"a": ("gpu",), "b": ("rdma",)}, {"a": ("rdma",), "b": ("gpu",)}, CHECKS, "gpu", "b"),
    ("named no more: for all", SPLIT, {"base": (), "gpu": ()}, CHECKS, "gpu", "base gpu"),
    ("named now: for that entry alone", ONE | {"gpu": ()}, SPLIT, CHECKS, "gpu", "gpu"),
    ("removed from the file", SPLIT, {"base": (), "gpu": ("rdma",)}, ("disk", "rdma"), "gpu", "gpu"),
    ("named by an entry that is new: for its pods alone", ONE, SPLIT, CHECKS, "gpu", "gpu"),
    ("an entry gone: for the rest, as nobody names it", SPLIT, ONE, CHECKS, "gpu", "base"),
    ("removed with its entry", {"old": (), **B}, {"new": (), **B}, ("rdma", "gpu"), "disk", "new"),
)
def test_when_the_file_is_read_again(
    before: Named, after: Named, checks: Sequence[str], failing: str, expected: str
) -> None:
    assert expected == closed(counting(after, checks, counting(before)), [failing], {**before, **after})


def condition(found: list[CheckStatus], label: str, *, silent: bool = False) -> Condition | None:
    return condition_of(counting(SPLIT).health(found, by(label)), [SILENT] if silent else [])


KEPT = CheckStatus("gpu", Severity.GATE, 0.0, CheckState.UNKNOWN, kept=True)
ALL_PASS = "True: all checks passed (1)"
ONLY_WARNS = "True: no gate check fails; gpu: failed (warn) since 1970-01-01T00:00:00Z: lost"
NEVER_PASSED = "False: gpu: unknown since 1970-01-01T00:00:00Z"
KEPT_OPEN = "True: no gate check fails; gpu: unknown, passed before and kept open, since 1970-01-01T00:00:00Z"


@cases(
    "gpu, of_base, of_gpu",
    ("a check that only warns", status("gpu", CheckState.FAILED, Severity.WARN, "lost"), ALL_PASS, ONLY_WARNS),
    ("one not yet run keeps its pod back", status("gpu", CheckState.STARTING), "True: all checks passed (1)", ""),
    ("a check that cannot be run and never passed", status("gpu", CheckState.UNKNOWN), ALL_PASS, NEVER_PASSED),
    ("a check that cannot be run and passed before", KEPT, ALL_PASS, KEPT_OPEN),
)
def test_each_pod_tells_of_its_own_checks_alone(gpu: CheckStatus, of_base: str, of_gpu: str) -> None:
    found = [status("disk", CheckState.PASSED), gpu]
    told = [condition(found, label) for label in ("base", "gpu")]
    assert [of_base, of_gpu] == ["" if one is None else f"{one.status}: {one.message}" for one in told]


def test_what_is_found_of_the_kubelet_counts_for_all() -> None:
    told = [condition(statuses(), label, silent=True) for label in ("base", "gpu")]
    assert [("False", "KubeletSilent")] * 2 == [(one.status, one.reason) for one in told if one is not None]


def test_a_pod_for_which_no_check_counts_is_good_by_them() -> None:
    found = condition_of(counting({"base": (), "all": CHECKS}).health(statuses("disk"), by("base")), [])
    assert ("True", "no check counts for this pod") == (found and (found.status, found.message))


# What is written.


def scene_of(named: Named, labels: Sequence[str]) -> Scene:
    """A pod of each of these; "a+b" is one of both."""
    scene = Scene()
    scene.found = [health_pod(uid=label, name=label) for label in labels]
    scene.chosen_by = {label: by(*label.split("+")) for label in labels}
    scene.counting, scene.checks = counting(named), statuses()
    scene.results["test://web"] = Result.SUCCESS
    return scene


def last_said(scene: Scene) -> dict[str, str]:
    """The status that was said of each pod last."""
    return {pod: status for pod, status, _ in scene.said}


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        pytest.param("gpu", {"base": "True", "gpu": "False"}, id="the GPU check closes the GPU health pod"),
        pytest.param("disk", {"base": "False", "gpu": "True"}, id="another check closes the other one"),
    ],
)
def test_only_the_condition_of_the_pods_it_counts_for_turns(failing: str, expected: dict[str, str]) -> None:
    scene = scene_of(SPLIT, ["base", "gpu"])
    scene.turns()
    scene.checks = statuses(failing)
    scene.turns()
    assert expected == last_said(scene)


NEW_CHECK: Named = {"base": (), "gpu": ("gpu", "new")}


@pytest.mark.parametrize(
    ("before", "there", "found", "expected"),
    [
        pytest.param([], ["disk"], None, [], id="a pod of which nothing was said yet: not that it is good"),
        pytest.param(["gpu"], ["disk"], None, ["False"], id="one that was closed: it stays so"),
        pytest.param(None, ["disk"], None, ["True"], id="one that was open: it stays so"),
        pytest.param(None, ["disk"], CheckState.PASSED, ["True"], id="the first run passes"),
        pytest.param(["gpu"], ["disk"], CheckState.PASSED, ["False", "True"], id="and opens what was closed"),
        pytest.param(None, ["disk"], CheckState.FAILED, ["True", "False"], id="the first run fails"),
        pytest.param(None, ["disk", "gpu"], None, ["True"], id="beside one that was there: that speaks"),
    ],
)
def test_a_pod_whose_checks_are_all_new_keeps_its_word_until_the_first_has_run(
    before: list[str] | None, there: list[str], found: CheckState | None, expected: list[str]
) -> None:
    """before: which failed, None: none did, empty: nothing was said yet. A check that is new is not among those that
    count before its first verdict (agent.checks.engine)."""
    scene = scene_of(SPLIT, ["gpu"])
    if before != []:
        scene.checks = statuses(*(before or ()))
        scene.turns()
    after: Named = NEW_CHECK if "gpu" in there else {"base": ("gpu",), "gpu": ("new",)}
    scene.counting = counting(after, [*CHECKS, "new"], scene.counting)
    scene.checks = statuses(checks=there)
    scene.turns(60)
    if found is not None:
        scene.checks = [*scene.checks, status("new", found)]
        scene.turns()
    assert expected == [told for _, told, _ in scene.said]


def test_a_finding_beside_a_check_that_has_not_run_is_said_alone() -> None:
    counted = counting({"gpu": ("new",)}, ["new"])
    found = condition_of(counted.health([], by("gpu")), [SILENT])
    assert ("False", "KubeletSilent", SILENT.text) == (found and (found.status, found.reason, found.message))


@pytest.mark.parametrize("silent", [pytest.param(False, id="and all is well"), pytest.param(True, id="but a finding")])
def test_of_a_pod_whose_entries_the_file_has_no_more_nothing_good_is_said(*, silent: bool) -> None:
    """For a moment it is looked at yet."""
    found = condition_of(counting(ONE).health(statuses(), by("gone")), [SILENT] if silent else [])
    assert ("False" if silent else None) == (found and found.status)


def test_a_reload_between_two_looks_opens_no_pod_that_its_new_entry_is_about_to_choose() -> None:
    """The pod is closed by the check that is the new entry's alone from now on, which is about to choose it too."""
    scene = scene_of(ONE, ["base"])
    scene.checks = statuses("gpu")
    scene.turns()
    after = counting(SPLIT, CHECKS, scene.counting)

    def reloaded() -> ChecksPerPod:
        """The watches first, then what counts."""
        scene.synced = False
        return after

    scene.judge = scene.made(counting=reloaded)
    scene.turns(60)
    scene.chosen_by, scene.synced = {"base": by("base", "gpu")}, True
    scene.turns()
    assert ["False"] == [told for _, told, _ in scene.said]


def test_without_a_pod_of_the_entry_on_this_node_nothing_is_written_of_its_check() -> None:
    scene = scene_of(SPLIT, ["base"])
    scene.turns()
    scene.checks = statuses("gpu")
    scene.turns(60)
    assert ([("base", "True", "ChecksPassed")], {"base"}) == (scene.said, scene.kept)


def test_a_check_that_moves_while_it_fails_opens_the_pod_it_leaves_at_the_next_look() -> None:
    scene = scene_of({"a": ("gpu",), "b": ("rdma",)}, ["a", "b"])
    scene.checks = statuses("gpu")
    scene.turns()
    before = last_said(scene)
    scene.counting = counting({"a": ("rdma",), "b": ("gpu",)}, CHECKS, scene.counting)
    scene.turns()
    assert ({"a": "False", "b": "True"}, {"a": "True", "b": "False"}) == (before, last_said(scene))


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param(SPLIT, [], id="another entry may be about to choose it, whose check fails"),
        pytest.param({"base": (), "gpu": ()}, ["True"], id="whoever chooses it, the same checks count"),
    ],
)
def test_a_start_opens_no_pod_before_all_that_choose_it_are_known(named: Named, expected: list[str]) -> None:
    """One of the two lists has been read: the pod, closed before by the check of the other entry, is in it."""
    scene = scene_of(named, ["base"])
    told = told_before(CLOSED)
    scene.found, scene.chosen_by = [told], {told.uid: by("base")}
    scene.checks, scene.synced = statuses("gpu") if named is SPLIT else statuses(), False
    scene.turns(60)
    before = [status for _, status, _ in scene.said]
    scene.chosen_by, scene.synced = {told.uid: by("base", "gpu")}, True
    scene.turns(60)
    after = ["False"] if named is SPLIT else ["True"]
    assert (expected, after) == (before, [status for _, status, _ in scene.said])


def test_of_twenty_daemon_sets_each_with_its_check_one_fails_and_one_pod_says_so() -> None:
    names = [f"set-{n:02}" for n in range(20)]
    scene = scene_of({name: (name,) for name in names}, names)
    scene.counting = counting({name: (name,) for name in names}, names)
    scene.checks = statuses("set-19", checks=names)
    scene.turns()
    assert {name: "False" if name == "set-19" else "True" for name in names} == last_said(scene)


# Of more pods than a node has.


def test_a_selector_that_matches_everything_costs_no_thread_a_pod() -> None:
    scene = scene_of(ONE, [])
    scene.found = [health_pod(uid=f"uid-{n}", name=f"pod-{n:03}") for n in range(110)]
    scene.turns()
    assert (MOST_PODS, MOST_PODS) == (len(scene.probed), len(scene.kept))


def test_an_entry_that_matches_everything_leaves_the_others_their_pods() -> None:
    everything = [make_pod(uid=f"uid-{n:03}", name=f"a-{n:03}") for n in range(5)]
    mine = make_pod(uid="mine", name="z")
    found = limited(joined([(pods_of("all"), [*everything, mine]), (pods_of("gpu"), [mine])]), 3)
    expected = [Chosen(pod, by("all")) for pod in everything[:3]] + [Chosen(mine, by("all", "gpu"))]
    assert expected == found
