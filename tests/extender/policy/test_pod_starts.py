"""Which nodes swallow pods: the rules of extender.policy.pod_starts, as short histories."""

import random
from collections.abc import Callable

import pytest

from extender.policy import pod_starts
from extender.policy.pod_starts import Attempt, StartRule, Starts
from tools.kit.cases import cases
from tools.kit.scope import draws

RULE = StartRule(namespaces=3, within_s=300.0, stuck_s=30.0)
OWNERS = ("web", "api", "jobs")


class Told:
    """A history: each step is at `now`, which `passes` moves on. Pods are named after owner and node, or by `pod`.

    Owners are `namespace/name`, or `name` in a namespace of that name. asked: set to what kube-scheduler asks about.
    """

    def __init__(self) -> None:
        self.asked: Callable[[Attempt], bool] = lambda _: True
        self.starts = Starts(RULE, lambda attempt: self.asked(attempt))
        self.now = 1000.0
        self.number = 0

    def attempt(self, owner: str, node: str, **fields: object) -> Attempt:
        self.number += 1
        namespace, _, name = owner.rpartition("/")
        uid = str(fields.pop("pod", f"{owner}-{self.number}"))
        whole = {"namespace": namespace or name, "pod": uid, "owner": f"uid-{name}", **fields}
        return Attempt(uid=uid, node=node, name=f"{namespace or name}/{name}", **whole)  # type: ignore[arg-type]

    def runs(self, owner: str, node: str) -> "Told":
        attempt = self.attempt(owner, node)
        self.starts.bound(attempt, self.now)
        self.starts.ended(attempt.uid, deleted=False, at=self.now)
        return self

    def rejected(self, owner: str, node: str, **fields: object) -> "Told":
        self.starts.rejected(self.attempt(owner, node, broken="UnexpectedAdmissionError", **fields), self.now)
        return self

    def all_rejected(self, node: str) -> "Told":
        for owner in OWNERS:
            self.rejected(owner, node)
        return self

    def all_run(self, node: str) -> "Told":
        for owner in OWNERS:
            self.runs(owner, node)
        return self

    def bound(self, owner: str, node: str, **fields: object) -> "Told":
        self.starts.bound(self.attempt(owner, node, **fields), self.now)
        return self

    def ended(self, pod: str, *, deleted: bool = False) -> "Told":
        self.starts.ended(pod, deleted=deleted, at=self.now)
        return self

    def passes(self, seconds: float) -> "Told":
        self.now += seconds
        return self

    def black(self) -> list[str]:
        return sorted(self.starts.look(self.now, self.now))


def all_owners(*, on: str = "bad", elsewhere: str = "good", owners: tuple[str, ...] = OWNERS) -> Told:
    """Each is rejected on one node, and has started on another."""
    told = Told()
    for owner in owners:
        told.runs(owner, elsewhere).rejected(owner, on)
    return told


def stuck_pods(told: Told, **fields: object) -> Told:
    for owner in OWNERS:
        told.runs(owner, "good").bound(owner, "bad", pod=f"{owner}-stuck", **fields)
    return told


@cases(
    "told, expected",
    ("pods of three namespaces are rejected here and start elsewhere", all_owners(), ["bad"]),
    ("two are not enough", all_owners(owners=("web", "api")), []),
    ("one owner three times is one", all_owners(owners=("web", "web", "web")), []),
    ("three owners of one namespace are one", all_owners(owners=("shop/web", "shop/api", "shop/jobs")), []),
    ("three owners of two namespaces are two", all_owners(owners=("shop/web", "shop/api", "bank/web")), []),
    ("one uid in three namespaces is three owners", all_owners(owners=("shop/web", "bank/web", "farm/web")), ["bad"]),
    ("what started here and then nowhere else accuses nobody", all_owners(elsewhere="bad"), []),
    ("pods that were tried on this node only", Told().all_rejected("bad"), []),
    ("pods that fail on more nodes than they start on", all_owners().all_rejected("n3"), []),
    ("pods fail on two nodes and start on two", all_owners().all_run("n4").rejected("web", "n3"), ["bad"]),
    ("one of the three has started here since", all_owners().runs("web", "bad"), []),
    ("nothing has failed for five minutes", all_owners().passes(301), []),
    ("nothing has failed for nearly five minutes", all_owners().passes(299), ["bad"]),
    ("without a sandbox for 29 s", stuck_pods(Told()).passes(29), []),
    ("without a sandbox for 30 s", stuck_pods(Told()).passes(30), ["bad"]),
    ("with a sandbox: they pull an image", stuck_pods(Told(), able=True).passes(200), []),
    ("they wait for a volume", stuck_pods(Told(), waits=True).passes(200), []),
    ("their containers cannot be made", stuck_pods(Told(), able=True, broken="CreateContainerError"), ["bad"]),
    ("a stuck pod runs after all", stuck_pods(Told()).passes(31).ended("web-stuck", deleted=False), []),
    ("deleted before it was stuck", stuck_pods(Told()).passes(29).ended("web-stuck", deleted=True).passes(2), []),
)
def test_which_nodes_swallow_pods(told: Told, expected: list[str]) -> None:
    assert expected == told.black()


def test_a_tenant_whose_pods_fail_on_all_nodes_now_and_then_hides_no_black_hole() -> None:
    told = all_owners()
    for number in range(20):
        told.runs(f"evil/o{number}", "bad").runs(f"evil/o{number}", "n3").rejected(f"evil/o{number}", f"n{4 + number}")
    assert ["bad"] == told.black()


def looked(told: Told) -> Told:
    assert ["bad"] == told.black()
    return told


@cases(
    "told, expected",
    ("as long as pods are stuck here it stays", looked(stuck_pods(Told()).passes(30)).passes(3600), ["bad"]),
    ("a pod seen stuck runs after all", looked(stuck_pods(Told()).passes(30)).ended("web-stuck", deleted=False), []),
    (
        "a stuck pod was deleted: it failed until then",
        looked(stuck_pods(Told()).passes(30)).ended("web-stuck", deleted=True).passes(299),
        ["bad"],
    ),
    (
        "five minutes after a stuck pod was deleted",
        looked(stuck_pods(Told()).passes(30)).ended("web-stuck", deleted=True).passes(301),
        [],
    ),
    ("one of them starts here: open at once", looked(all_owners()).runs("api", "bad"), []),
    ("only one of them has failed lately", looked(all_owners()).passes(200).rejected("web", "bad").passes(200), []),
    ("all fail again", looked(all_owners()).passes(250).all_rejected("bad"), ["bad"]),
    ("one turns out to fail everywhere", looked(all_owners()).rejected("web", "n3").rejected("web", "n4"), []),
)
def test_how_it_goes_on(told: Told, expected: list[str]) -> None:
    assert expected == told.black()


def test_a_start_elsewhere_long_ago_says_nothing_of_today() -> None:
    told = Told()
    for owner in OWNERS:
        told.runs(owner, "good")
    told.passes(301)
    for owner in OWNERS:
        told.rejected(owner, "bad")
    assert told.black() == []


def test_the_same_rejection_told_again_is_no_second_failure() -> None:
    told = all_owners()
    for owner in OWNERS:
        told.rejected(owner, "bad", pod=f"{owner}-again")
    told.passes(200)
    for owner in OWNERS:
        told.rejected(owner, "bad", pod=f"{owner}-again")
    assert (["bad"], []) == (told.black(), told.passes(150).black())


def test_nothing_is_stuck_before_the_server_was_heard_of_since() -> None:
    """What has not been told may have happened: the pod may run by now."""
    told = stuck_pods(Told())
    silent_since = told.now + 10
    told.passes(60)
    assert {} == told.starts.look(told.now, silent_since)
    assert ["bad"] == told.black()


def test_who_deletes_stuck_pods_by_force_elsewhere_makes_them_accuse_nobody() -> None:
    """They leave the watch as if they ran."""
    told = Told()
    for owner in OWNERS:
        for node in ("bad", "n2", "n3"):
            told.bound(owner, node, pod=f"{owner}-{node}")
    told.passes(31).black()
    for owner in OWNERS:
        told.ended(f"{owner}-n2").ended(f"{owner}-n3")
    assert told.black() == []


def test_the_text_names_an_owner_of_each_namespace_and_what_became_of_its_pods() -> None:
    told = all_owners(owners=("web", "web/other", "api", "jobs", "more"))
    assert {
        "bad": "pods of 4 namespaces fail to start here and start elsewhere: api/api (UnexpectedAdmissionError), "
        "jobs/jobs (UnexpectedAdmissionError), more/more (UnexpectedAdmissionError) and 1 more"
    } == told.starts.look(told.now, told.now)


def test_a_thousand_poison_pods_of_a_thousand_owners_close_nothing() -> None:
    told, chance = Told(), random.Random(7)
    nodes = [f"n{number}" for number in range(50)]
    for number in range(1000):
        told.passes(0.1)
        for _ in range(chance.randint(1, 3)):
            (told.rejected if number % 2 else told.bound)(f"poison-{number}", chance.choice(nodes))
        told.runs(f"good-{number % 20}", chance.choice(nodes))
    assert [] == told.passes(31).black()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("bad", [pytest.param(None, id="nowhere else"), pytest.param("n7", id="beside a black hole")])
def test_a_thousand_pods_that_fail_now_and_then_wherever_they_are_put_hide_no_black_hole_and_make_none(
    share: float, bad: str | None
) -> None:
    """As of a device plugin that has a fault on all nodes. Three of fifty nodes by chance, for a moment, at most."""
    told, chance = Told(), random.Random(7)
    nodes, shown = [f"n{number}" for number in range(50)], list[list[str]]()
    for number in range(1000):
        node = chance.choice(nodes)
        fails = node == bad or chance.random() < share
        (told.rejected if fails else told.runs)(f"owner-{number % 30}", node)
        if number % 10 == 0:
            shown.append(told.black())
        told.passes(0.3)
    assert max(len({*one} - {bad}) for one in shown) <= 3
    assert share > 0.3 or (bad is not None) == ("n7" in shown[-1])


def test_the_sandboxes_of_all_nodes_are_no_fault_of_one() -> None:
    """As where the registry of the pause image, or who gives out addresses, is away for two minutes."""
    told, chance = Told(), random.Random(7)
    nodes, most = [f"n{number}" for number in range(50)], 0
    for number in range(1500):
        (told.bound if number > 1000 else told.runs)(f"owner-{number % 30}", chance.choice(nodes))
        told.passes(0.25)
        most = max(most, len(told.black()))
    assert most <= 5


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"pending": 50, "rejected": 40, "claims": 60, "failing": 30, "started": 20}
    for name, limit in limits.items():
        monkeypatch.setattr(pod_starts, f"{name.upper()}_MAX", limit)
    told, chance = Told(), random.Random(7)
    for number in range(2000):
        owner, node = f"o{number}", f"n{chance.randrange(300)}"
        chance.choice([told.runs, told.rejected, told.bound])(owner, node)
        told.passes(0.5).black()
        assert {} == {name: size for name, size in told.starts.sizes().items() if size > limits[name]}
    for number in range(300):
        told.rejected("everywhere", f"n{number}")
    told.black()
    nodes = told.starts._failing.get(("everywhere", "uid-everywhere"))
    assert nodes is not None
    assert len(nodes) <= pod_starts.NODES_MAX + 1


def test_after_a_quiet_time_nothing_is_left_but_that_pods_were_rejected_which_are_still_there() -> None:
    told = all_owners()
    told.passes(301).black()
    nothing = {"pending": 0, "rejected": 0, "claims": 0, "failing": 0, "started": 0}
    assert nothing | {"rejected": 3} == told.starts.sizes()
    for uid in told.starts.known:
        told.starts.ended(uid, deleted=True, at=told.now)
    assert nothing == told.starts.sizes()


class Oracle:
    """The same rules over the whole history, without any memory of its own but what has happened."""

    def __init__(self) -> None:
        self.failed: dict[tuple[str, str], float] = {}
        self.started: dict[tuple[str, str], float] = {}

    def possible(self, node: str, now: float, stuck: set[tuple[str, str]]) -> set[str]:
        """The namespaces that may accuse the node at most."""
        found = set()
        for owner, at in {*self.failed, *stuck}:
            if at != node:
                continue
            lately = (owner, node) in stuck or now - self.failed.get((owner, node), -1e9) <= RULE.within_s
            elsewhere = any(one == owner and other != node for one, other in self.started)
            if lately and elsewhere:
                found.add(owner.partition("/")[0])
        return found


@pytest.mark.parametrize("part", range(4))
def test_by_chance_only_nodes_that_enough_namespaces_may_accuse_are_black(seed: int, part: int) -> None:
    closed = 0
    for number in range(draws(10, 40)):
        chance = random.Random(f"{seed} starts {part} {number}")
        told, oracle = Told(), Oracle()
        pending: dict[str, tuple[str, str, float]] = {}
        owners, nodes = [f"s{n % 4}/o{n}" for n in range(8)], [f"n{n}" for n in range(4)]
        for _ in range(150):
            owner, node = chance.choice(owners), chance.choice(nodes)
            told.passes(chance.choice([0.0, 1.0, 10.0, 40.0]))
            match chance.randrange(5):
                case 0 | 1:
                    told.runs(owner, node)
                    oracle.started[owner, node] = told.now
                case 2 if node in nodes[:2]:
                    told.rejected(owner, node)
                    oracle.failed[owner, node] = told.now
                case 3 if node in nodes[:2]:
                    told.bound(owner, node, pod=f"p{told.number}")
                    pending[f"p{told.number - 1}"] = (owner, node, told.now)
                case _:
                    if pending:
                        pod = chance.choice(sorted(pending))
                        of, on, since = pending.pop(pod)
                        deleted = chance.random() < 0.5
                        told.ended(pod, deleted=deleted)
                        oracle.failed[of, on] = told.now
                        if not deleted and told.now - since < RULE.stuck_s:
                            oracle.started[of, on] = told.now
            stuck = {(of, on) for of, on, since in pending.values() if told.now - since >= RULE.stuck_s}
            for black in told.black():
                closed += 1
                assert len(oracle.possible(black, told.now, stuck)) >= RULE.namespaces, (number, black)
        # The way back: whatever it was, when all that was stuck is gone and nothing fails any more, all are open.
        for pod in pending:
            told.ended(pod, deleted=True)
        assert [] == told.passes(RULE.within_s + 1).black()
    assert closed > 0
