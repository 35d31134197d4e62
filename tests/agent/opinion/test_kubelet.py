"""How the kubelet is looked after: what is asked of whom, and what of its own node is a finding."""

import json
from collections.abc import Mapping

import pytest

from agent.kernel.clocks import Clocks
from agent.opinion.kubelet import KubeletWatch, PortAnswer, pleg_finding
from kube import errors
from tools.kit.clock import Clock

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"


class Scene:
    """A kubelet and an API server that are as the test says."""

    def __init__(self, url: str | None = "http://127.0.0.1:1/healthz", not_before: float = 0.0) -> None:
        self.clock = Clock(100.0)
        self.port_well = self.lease_moves = self.api_there = True
        self.renewed = 0
        self.reads = self.changes = 0
        self.from_memory = 0  # readings that may be a little old
        self.refusal: Exception | None = None
        self.watch = KubeletWatch(
            self,
            "n",
            health_url=url,
            lease_limit_s=24.0,
            not_before=not_before,
            on_change=self.changed,
            ask=lambda _: PortAnswer(self.port_well, "connection refused"),
            clocks=Clocks(monotonic=self.clock, random=lambda: 0.5),
        )

    def get(self, path: str, *, deadline_s: float | None = None, query: Mapping[str, str]) -> bytes:
        assert (path, deadline_s is not None) == (LEASE, True)
        self.reads += 1
        self.from_memory += query == {"resourceVersion": "0"}
        if self.refusal is not None:
            raise self.refusal
        if not self.api_there:
            raise errors.Unreachable(path=path, message="connection refused")
        if self.lease_moves:
            self.renewed = int(self.clock() // 10)
        return json.dumps({"spec": {"renewTime": f"r{self.renewed}"}}).encode()

    def close(self) -> None: ...

    def changed(self) -> None:
        self.changes += 1

    def run(self, seconds: int) -> bool:
        """Whether it is called silent afterwards."""
        end = self.clock() + seconds
        while self.clock() < end:
            self.clock.time += self.watch.turn()
        return self.watch.silent() is not None


def test_while_its_port_answers_its_lease_is_read_seldom_and_out_of_memory() -> None:
    scene = Scene()
    found = scene.run(3600)
    assert (False, 225, 225, 0) == (found, scene.reads, scene.from_memory, scene.changes)


def test_a_lease_that_is_silent_beside_a_port_that_answers_is_a_finding_of_its_own() -> None:
    """Another program may answer at that port, when the kubelet is dead."""
    scene = Scene()
    scene.run(60)
    scene.lease_moves = False
    found = scene.run(80)
    reason = None if (finding := scene.watch.silent()) is None else finding.reason
    scene.lease_moves = True
    assert (True, "KubeletLeaseSilent", False, 2) == (found, reason, scene.run(10), scene.changes)


def test_once_its_port_is_silent_too_it_is_the_kubelet_that_is() -> None:
    scene = Scene()
    scene.run(60)
    scene.lease_moves = False
    scene.run(80)
    scene.port_well = False
    scene.run(20)
    reason = None if (finding := scene.watch.silent()) is None else finding.reason
    assert ("KubeletSilent", True) == (reason, scene.watch.known())


def test_found_silent_it_stays_so_while_the_api_server_is_away() -> None:
    scene = Scene()
    scene.run(60)
    scene.port_well = scene.lease_moves = False
    scene.run(20)
    scene.api_there = False
    away = scene.run(600)
    scene.port_well = True
    assert (True, True, False, 2) == (away, scene.watch.known(), scene.run(2), scene.changes)


def test_after_a_start_nothing_is_known_of_a_silent_kubelet_while_the_api_server_is_away() -> None:
    """Else what closed the node would be taken back by an agent that was started in between."""
    scene = Scene()
    scene.port_well = scene.lease_moves = scene.api_there = False
    scene.run(600)
    away, scene.api_there = scene.watch.known(), True
    assert (False, True, True) == (away, scene.run(34), scene.watch.known())


@pytest.mark.parametrize(
    "well", [True, False], ids=["its port answers", "its port is silent, as before it has started"]
)
def test_after_a_boot_its_lease_is_not_read_before_the_moment_that_is_drawn(well: bool) -> None:
    scene = Scene(not_before=103.0)
    scene.port_well = well
    scene.run(3)
    early = scene.reads
    scene.run(2)
    assert (0, 1) == (early, scene.reads)


@pytest.mark.parametrize("refusal", [errors.Forbidden(path=LEASE), errors.NotFound(path=LEASE)])
def test_where_its_lease_is_refused_to_us_it_is_waited_for_no_longer_than_it_could_take(refusal: Exception) -> None:
    scene = Scene()
    scene.port_well, scene.refusal = False, refusal
    scene.run(10)
    early = scene.watch.known()
    scene.run(30)
    assert (False, True) == (early, scene.watch.known())


def test_a_dead_one_is_silent_within_twenty_seconds_and_heard_at_once() -> None:
    scene = Scene()
    scene.run(60)
    scene.port_well = scene.lease_moves = False
    dead = scene.run(20)
    scene.port_well = True
    assert (True, False, 2) == (dead, scene.run(2), scene.changes)


def test_a_restart_of_the_kubelet_is_no_silence() -> None:
    scene = Scene()
    scene.run(60)
    scene.port_well = False
    down = scene.run(8)
    scene.port_well = True
    assert (False, False, 0) == (down, scene.run(60), scene.changes)


def test_with_the_api_server_away_nothing_is_said_of_its_lease() -> None:
    scene = Scene()
    scene.run(2)
    scene.port_well = scene.lease_moves = scene.api_there = False
    away = scene.run(600)
    scene.api_there = True
    assert (False, True) == (away, scene.run(20))


def test_without_a_port_its_lease_is_read_all_the_time() -> None:
    scene = Scene(url=None)
    alive = scene.run(80)
    reads, scene.lease_moves = scene.reads, False
    assert (False, True, 10) == (alive, scene.run(40), reads)


def test_a_kubelet_that_answers_is_known_at_once_a_silent_one_when_it_could_have_been_found() -> None:
    fresh, alive, dead = Scene(), Scene(), Scene()
    alive.run(1)
    dead.port_well = dead.lease_moves = False
    dead.run(10)
    early = dead.watch.known()
    silent = dead.run(20)
    assert (False, True, False, True, True) == (
        fresh.watch.known(),
        alive.watch.known(),
        early,
        dead.watch.known(),
        silent,
    )


def test_without_a_port_it_is_known_when_its_lease_could_have_stood_still() -> None:
    scene = Scene(url=None)
    scene.lease_moves = False
    scene.run(16)
    early = scene.watch.known()
    silent = scene.run(24)
    assert (False, True, True) == (early, scene.watch.known(), silent)


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        pytest.param(("True", ""), None, id="ready"),
        pytest.param(("", ""), None, id="no Node, or none that says"),
        pytest.param(("False", "container runtime is down"), None, id="not ready for another cause"),
        pytest.param(
            ("False", "[container runtime is down, PLEG is not healthy: pleg was last seen active 4m ago]"),
            "PlegUnhealthy",
            id="it does not hear of its containers",
        ),
    ],
)
def test_what_the_kubelet_says_of_its_own_node(ready: tuple[str, str], expected: str | None) -> None:
    found = pleg_finding(ready)
    assert expected == (None if found is None else found.reason)
