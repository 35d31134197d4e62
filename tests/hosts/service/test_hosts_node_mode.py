"""The agent in mode node beside real kubelets: they stop, die, come back; a runtime stands still; faults by chance."""

import json
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence

import pytest

from tests.hosts.conftest import ARTEFACTS
from tests.hosts.service.node_mode import BUDGET_S, NAME, Node, Said, Verdicts, Word, same
from tests.hosts.waiting import wait_until
from tools.kit.programs import Program
from tools.kit.scope import draws

FAULTS = draws(gate=10, whole=100)
QUIET_S = 1.5  # what both say stands for so long before it counts as settled


def told(figures: dict[str, object]) -> None:
    """Prints them, and keeps them beside those of the other tests."""
    print(json.dumps(figures))
    folder = ARTEFACTS / "node-mode"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "figures.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**before, **figures}, indent=1) + "\n")


@pytest.mark.parametrize(
    ("ends", "begins", "stays_away"),
    [
        pytest.param("kill --signal=STOP kubelet", "kill --signal=CONT kubelet", True, id="it stands still"),
        pytest.param("stop kubelet", "start kubelet", True, id="it is gone"),
        # systemd starts it again ten seconds after its death, as kubeadm's unit says: perhaps before the node closes.
        pytest.param("kill --signal=KILL kubelet", "start kubelet", False, id="it is killed"),
    ],
)
def test_beside_a_kubelet_that_has_stopped_a_failing_pod_closes_and_nothing_flaps_when_it_is_back(
    nodes: list[Node], extender: Program, ends: str, begins: str, stays_away: bool
) -> None:
    node = nodes[0]
    with Verdicts(extender, node.name).asked() as verdicts, node.read():
        node.ssh(f"systemctl {ends}")
        try:
            failed = time.monotonic()
            node.mode("failing")
            wait_until(verdicts.is_last("closed"), lambda: f"it closes: {verdicts.seen}")
            closed_s = verdicts.seen[-1][0] - failed
            theirs = node.theirs[-1].containers_ready
        finally:
            node.ssh(f"systemctl {begins}")
        wait_until(lambda: node.theirs[-1].containers_ready is False, "both agree")
        node.mode("ok")
        wait_until(lambda: node.theirs[-1].ready, "they agree again")
        wait_until(verdicts.is_last("open"), lambda: f"it opens: {verdicts.seen}")
        time.sleep(QUIET_S)
    told({f"closed_s beside a kubelet: {ends}": round(closed_s, 2), "budget_s": BUDGET_S})
    assert ["open", "closed", "open"] == verdicts.words
    assert theirs or not stays_away, "its kubelet still reported the pod ready"


T, F = True, False


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param([(0, T), (4, F), (6, T)], [(0, T), (4.1, F), (6.3, T)], True, id="the same, a little later"),
        pytest.param([(0, T), (4, F), (5, None), (6, T)], [(0, T), (4, F), (6, T)], True, id="what is not known"),
        pytest.param(
            [(0, T), (4.37, F), (6.49, T)],
            [(0, T), (4.39, F), (4.4, T), (5.38, F), (6.41, T)],
            True,
            id="a word on a container that had died, until the relist",
        ),
        pytest.param([(0, T), (4, F), (9, T)], [(0, T), (4, F), (6, T), (8, F), (10, T)], False, id="one that stood"),
        pytest.param([(0, T)], [(0, T), (4, F)], False, id="the last word is another one"),
        pytest.param([(0, T), (4, F), (4.5, T)], [(0, T), (9, F)], False, id="as many words, others"),
        pytest.param([(0, T)], [(0, F)], False, id="never the same"),
    ],
)
def test_what_both_say_is_the_same_but_for_words_taken_back_within_a_relist(ours, theirs, expected):
    assert expected == same(ours, theirs) == same(theirs, ours)


def killed(node: Node) -> None:
    node.ssh(f"kill -KILL $(pgrep -f '[{NAME[0]}]{NAME[1:]}-app')")


# Name -> what is done, and what takes it back; None: it heals by itself, with another container.
DONE: dict[str, tuple[Callable[[Node], None], Callable[[Node], None] | None]] = {
    "process killed": (killed, None),
    "container restarted": (lambda node: node.mode("dead"), None),
    "probe slow": (lambda node: node.mode("slow"), lambda node: node.mode("ok")),
    "probe failing": (lambda node: node.mode("failing"), lambda node: node.mode("ok")),
    "gate flipped": (lambda node: node.flip("False"), lambda node: node.flip("True")),
}


def settled(node: Node, word: tuple[bool, bool], since: float) -> bool:
    """Whether both say this, and have for a while, after that moment."""
    for said in (node.theirs, node.ours()):
        last = said[-1] if said else Said(0.0, None, None)
        if (last.containers_ready, last.ready) != word or time.time() - max(last.at, since) < QUIET_S:
            return False
    return True


def alike(ours: Sequence[Said], theirs: Sequence[Said], since: float) -> bool:
    """Whether both have said the same since a moment, beginning with what stood then."""

    def words(said: Sequence[Said], name: str) -> list[Word]:
        before = [one for one in said if one.at < since][-1:]
        return [(one.at, getattr(one, name)) for one in [*before, *(one for one in said if one.at >= since)]]

    return all(same(words(ours, name), words(theirs, name)) for name in ("containers_ready", "ready"))


def when(said: Sequence[Said], since: float) -> list[tuple[float, bool | None, bool | None]]:
    """Seconds after a moment: ContainersReady, Ready."""
    return [(round(one.at - since, 2), one.containers_ready, one.ready) for one in said if one.at >= since]


def first_unready(said: Sequence[Said], since: float) -> float | None:
    return next((one.at for one in said if one.at >= since and one.ready is False), None)


@pytest.mark.timeout(600 + 40 * FAULTS)
@pytest.mark.usefixtures("extender")
def test_through_faults_by_chance_the_agent_says_what_the_kubelet_says(nodes: list[Node], seed: int) -> None:
    node = nodes[0]
    drawn = random.Random(seed).choices(sorted(DONE), k=FAULTS)
    differ: list[object] = []
    earlier_s: list[float] = []
    began = time.monotonic()
    with node.read():
        for number, name in enumerate(drawn):
            wait_until(
                lambda: settled(node, (True, True), 0.0),
                lambda: f"both say ready: {node.theirs[-1:]}, {node.ours()[-1:]}",
            )
            act, heal = DONE[name]
            container, since = node.container, time.time()
            act(node)
            if heal is not None:
                word = (name == "gate flipped", False)
                wait_until(
                    lambda word=word, since=since: settled(node, word, since),
                    lambda name=name: f"both see {name}: {node.theirs[-1:]}, {node.ours()[-1:]}",
                )
                heal(node)
            else:
                wait_until(lambda container=container: node.container != container, name)
            over = time.time()  # what both say by then may be of before: a container takes seconds to end
            wait_until(
                lambda over=over: settled(node, (True, True), over),
                lambda name=name: f"both are over {name}: {node.theirs[-1:]}, {node.ours()[-1:]}",
            )
            if not alike(node.ours(), node.theirs, since):
                differ.append((number, name, {"ours": when(node.ours(), since), "theirs": when(node.theirs, since)}))
            at, kubelets = first_unready(node.ours(), since), first_unready(node.theirs, since)
            if at is not None and kubelets is not None:
                earlier_s.append(kubelets - at)
    told(
        {
            "faults": len(drawn),
            "differ": len(differ),
            "seconds": round(time.monotonic() - began),
            "earlier than the kubelet, seconds, median": round(statistics.median(earlier_s), 2),
            "earlier, least": round(min(earlier_s), 2),
            "earlier, most": round(max(earlier_s), 2),
        }
    )
    assert [] == differ


def test_a_container_runtime_that_stands_still_is_said_once_and_closes_nothing(
    nodes: list[Node], extender: Program
) -> None:
    node = nodes[0]

    def said() -> list[str]:
        """That it is found, and that it no longer is."""
        found = re.findall(r'judge (found|found no longer) finding="RuntimeSilent"', node.log.read_text())
        return found[before:]

    before = 0
    with Verdicts(extender, node.name).asked() as verdicts, node.read():
        time.sleep(QUIET_S)
        before = len(said())
        node.ssh("systemctl kill --signal=STOP containerd")
        try:
            wait_until(said, "it is said")
            time.sleep(3 * QUIET_S)
        finally:
            node.ssh("systemctl kill --signal=CONT containerd")
        wait_until(lambda: len(said()) > 1, "it is over")
        time.sleep(QUIET_S)
    assert (["open"], ["found", "found no longer"]) == (verdicts.words, said())
