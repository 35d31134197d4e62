"""One fault on one host: injected, closed at the extender, a pod refused, healed, the same pod bound."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from agent.processes.rate_limit import RateLimit
from agent.report.condition import CHANGE_S, CHANGES
from extender.policy.reasons import REASONS
from tests.hosts.deployment.probing import PODS, pod
from tools.bench.faults.watch import Watch
from tools.bench.faults.words import Word, Words, around, stood_unready
from tools.faults.fault import Fault, alone
from tools.kit.waiting import wait_for
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.images import PAUSE
from tools.testbed.shared.api import Api, ApiError, condition

OPEN_LIMIT_S, BOUND_LIMIT_S, REFUSED_LIMIT_S = 60.0, 60.0, 20.0
_EVERY_S = 0.05


@dataclass(frozen=True)
class Round:
    """Seconds; None: not seen within the time. `closed_s`, `refused_s`: since the first command of the fault, until the
    extender refuses the node and until a pod that was made then says so. `opened_s`, `bound_s`: since the last command
    that healed. `landed`: that pod was placed on the node although it was closed. `words`: what each has said by
    then, by seconds since it was healed."""

    fault: str
    check: str
    profile: str
    node: str
    closed_s: float | None = None
    reason: str = ""
    refused_s: float | None = None
    landed: bool = False
    opened_s: float | None = None
    bound_s: float | None = None
    trouble: str = ""
    words: tuple[Word, ...] = ()

    @property
    def by_kubelet(self) -> bool:
        """Kubernetes itself kept pods off the node still when it was healed."""
        return stood_unready(self.words)

    @property
    def whole(self) -> bool:
        return None not in (self.closed_s, self.refused_s, self.opened_s, self.bound_s) and not self.landed


def script(lines: tuple[str, ...]) -> str:
    """Says when the first line begins and when the last has ended."""
    told = " && ".join(f"{{ {line.rstrip('&')}{' & ' if line.endswith('&') else ''}\n}}" for line in lines)
    return f"date +%s.%N; {told}; code=$?; date +%s.%N; exit $code"


class Together:
    """What several nodes have in common is done once, when all of them are there: a line of the one kernel's log."""

    def __init__(self, nodes: int, limit_s: float) -> None:
        self._barrier = threading.Barrier(nodes)
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, float]] = {}

    def once(self, what: str, call: Callable[[], tuple[float, float]]) -> tuple[float, float]:
        """What the one call has told; without those that have left, or do not come within the limit."""
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait(self._limit_s)
        with self._lock:
            if what not in self._told:
                self._told[what] = call()
            return self._told[what]

    def leave(self) -> None:
        self._barrier.abort()


class Player:
    """Plays faults on hosts; `heal_all` takes back all of them, come what may. An agent writes five changes of its
    condition at once, then one in ten seconds: a fault waits until those of the last one are forgotten.
    """

    def __init__(
        self, hosts: Hosts, api: Api, watch: Watch, faults: dict[str, Fault], words: Words | None = None
    ) -> None:
        self._hosts, self._api, self._watch, self._faults, self._words = hosts, api, watch, faults, words
        self._number = 0
        self._writes = {name: RateLimit(CHANGES, CHANGE_S) for name in hosts.names}
        self.told_all()  # a start is told, too
        self._lock = threading.Lock()
        self._over = False
        self._hands = {name: threading.Lock() for name in hosts.names}

    def told_all(self) -> None:
        """Agents may have told as much as they may at once just now."""
        for writes in self._writes.values():
            for _ in range(CHANGES):
                writes.spend(time.monotonic())

    def run(self, node: str, lines: tuple[str, ...], timeout_s: float = 60.0) -> tuple[float, float]:
        """(began, ended), of the shared clock."""
        began, ended = self._hosts.ssh(node, alone(script(lines)), timeout_s=timeout_s).stdout.split()[:2]
        return float(began), float(ended)

    def inject(self, node: str, fault: Fault) -> tuple[float, float]:
        """When it began and ended. Raises HostsError, also once all is being taken back: nothing comes after that."""
        with self._hands[node]:
            if self._over:
                raise HostsError(f"{fault.name} is not injected: this is the end")
            return self.run(node, fault.inject)

    def play(self, turn: Mapping[str, Fault], profile: str, limit_s: float, shared: bool) -> list[Round]:
        """Faults by node, all at once; a round by node. shared: it is one fault, which one of them has for all."""
        results: dict[str, Round] = {}
        both = Together(len(turn), OPEN_LIMIT_S + REFUSED_LIMIT_S)

        def one(node: str, fault: Fault, together: Together) -> None:
            try:
                results[node] = self._one(fault, node, profile, limit_s, together)
            except (HostsError, ApiError) as e:
                together.leave()
                results[node] = Round(fault.name, fault.check, profile, node, trouble=str(e)[:200])
                self.heal(fault, node)

        threads = [
            threading.Thread(
                target=one, args=(node, fault, both if shared else Together(1, 0)), name=f"round-{node}", daemon=True
            )
            for node, fault in turn.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():  # a signal is seen between two of these
                thread.join(0.5)
        return [results[node] for node in turn if node in results]

    def heal(self, fault: Fault, node: str) -> None:
        self._hosts.ssh(node, alone(script(fault.heal)), check=False)

    def heal_all(self, nodes: list[str], say: Callable[[str], None]) -> None:
        """Each fault on its own: one that cannot be taken back keeps none of the others from it. None is injected after
        that, by whatever thread."""
        self._over = True
        lines = alone(self.healing())
        for node in nodes:
            try:
                with self._hands[node]:
                    self._hosts.ssh(node, lines, timeout_s=120)
            except HostsError as e:
                say(f"not all is healed: {e}")

    def healing(self) -> str:
        return "\n".join(f"( {line} ) || true" for fault in self._faults.values() for line in fault.heal)

    def _one(self, fault: Fault, node: str, profile: str, limit_s: float, together: Together) -> Round:
        found: dict[str, object] = {}
        writes = self._writes[node]
        time.sleep(writes.wait_s(time.monotonic(), left=CHANGES - 1))
        writes.spend(time.monotonic())
        if self._watch.wait(node, closed=False, timeout_s=OPEN_LIMIT_S) is None:
            together.leave()
            return Round(fault.name, fault.check, profile, node, trouble=f"closed before: {self._watch.reason(node)}")
        began, _ = together.once("inject", lambda: self.inject(node, fault))
        name = ""
        try:
            closed = self._watch.wait(node, closed=True, timeout_s=limit_s)
            if closed is not None:
                writes.spend(time.monotonic())
                found = {"closed_s": closed - began, "reason": self._watch.reason(node)}
                name = self._pod(node)
                told = wait_for(lambda: self._became(name), timeout_s=REFUSED_LIMIT_S, every_s=_EVERY_S)
                found |= {"refused_s": time.time() - began if told == "refused" else None, "landed": told == "bound"}
        finally:
            _, healed = together.once("heal", lambda: self.run(node, fault.heal))
        if closed is not None:
            opened = self._watch.wait(node, closed=False, timeout_s=OPEN_LIMIT_S)
            writes.spend(time.monotonic())
            found["opened_s"] = opened - healed if opened is not None else None
            bound = wait_for(lambda: self._became(name) == "bound", timeout_s=BOUND_LIMIT_S, every_s=_EVERY_S)
            found["bound_s"] = time.time() - healed if bound else None
            found["words"] = around(self._words.of(node), began, healed) if self._words else ()
        if name:
            self._api.delete(f"{PODS}/{name}", grace_s=0)
        return Round(fault.name, fault.check, profile, node, **found)  # type: ignore[arg-type]

    def _pod(self, node: str) -> str:
        with self._lock:
            self._number += 1
            name = f"probing-{self._number}-{int(time.time() * 1000) % 1_000_000}"
        self._api.create(PODS, pod(name, node, PAUSE))
        return name

    def _became(self, name: str) -> str:
        """`bound`, `refused` by the extender, or nothing yet."""
        seen = self._api.get(f"{PODS}/{name}")
        if seen["spec"].get("nodeName"):
            return "bound"
        message = condition(seen, "PodScheduled").get("message", "")
        return "refused" if any(reason in message for reason in REASONS) else ""
