"""The pressures of a node, look by look, from thresholds and measurements of the history's making."""

from random import Random

from agent.kubelet.node.facts import PRESSURES
from agent.kubelet.node.pressure import (
    CONDITIONS,
    CONTAINER_SIGNALS,
    PIDS,
    Observation,
    Pressure,
    Seen,
    duration_s,
    looked,
    thresholds_of,
)
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import Json, maybe

AMOUNTS = ("100", "150", "0.25k", "1e2", "10%", "25%", "33.3%", "12.5%")
AMOUNTS += ("1e0002", "100.", ".1k", "+.2Ki", "1e-20", "9999Ei", "1E", "5.Ei", ".5Pi", "1e-10", "00.1Ti")
BAD = (
    "k",
    "-0",
    ".",
    "+",
    "-",
    "e2",
    ".Ei",
    "Pi",
    "Ti",
    "e-9",
    "e-10",
    "1e",
    "-1e-20",
    "0",
    "-1",
    "x",
    "0%",
    "100%",
    "101%",
    "-5%",
    "0.0%",
    "%",
    "x%",
    "10%%",
    "",
    "1Qi",
)
PERIODS = (
    "0",
    "+1s",
    "-0s",
    ".5m",
    "1.s",
    "0.5h",
    "1000000us",
    "3\u00b5s",
    "0s",
    "10s",
    "30s",
    "1m30s",
    "1.5m",
    "1h",
    "20000ms",
)
BAD_PERIODS = ("-1s", "+", "--1s", "1s-1s", ".s", "1\u03bcs", "3000000h", "", "10", "x", "1d", "10 s", "s")
STEPS_S = (0.0, 9.5, 10.0, 10.0, 10.0, 30.0, 300.0)
TRANSITIONS_S = (0.0, 10.0, 20.0, 30.0, 300.0)
# So small that all thresholds are crossed both ways.
CAPACITIES = (300, 1000, 1001)


class EvictionTarget:
    name = "eviction"

    def draw(self, random: Random) -> History:
        wall, steps = worlds.START, []
        signals = [signal for signal in CONDITIONS if maybe(random, 0.6)]
        drawn = {
            "hard": self._amounts(random, 0.7),
            "soft": self._amounts(random, 0.5),
            "reclaim": self._amounts(random, 0.4),
        }
        if maybe(random, 0.02):
            drawn = {"hard": {}, "soft": {}, "reclaim": drawn["reclaim"]}
        grace = {s: random.choice(PERIODS) for s in CONDITIONS if s in drawn["soft"] or maybe(random, 0.2)}
        if maybe(random, 0.05):
            grace = {s: random.choice(BAD_PERIODS) if maybe(random, 0.3) else p for s, p in grace.items()}
        if maybe(random, 0.03):
            grace.popitem() if grace else grace.update({"nodefs.free": "1s"})
        # A soft one without a grace period is a hard one. Of two of these for containerfs one remains as it was given:
        # where it differs from the derived one in its minimum reclaim alone a kubelet takes the two for one, and
        # forgets one of them, by the order of a Go map.
        for signal in CONTAINER_SIGNALS:
            if signal in drawn["hard"] and signal in drawn["soft"] and duration_s(grace.get(signal, "")) == 0:
                grace[signal] = "10s"
        capacity = {signal: random.choice(CAPACITIES) for signal in CONDITIONS}
        for _ in range(random.randint(1, 8)):
            wall += random.choice(STEPS_S)
            seen = {s: (capacity[s], self._left(random, s)) for s in signals if maybe(random, 0.95)}
            apart = random.choice(((False, False), (True, False), (True, True)))
            places = dict(zip(("imagesApart", "containersApart"), apart, strict=True))
            steps.append({"wall": wall, "observed": seen, "away": maybe(random, 0.05), **places})
        return {**drawn, "grace": grace, "transition": random.choice(TRANSITIONS_S), "steps": steps}

    def _amounts(self, random: Random, odds: float) -> Json:
        found = {signal: random.choice(AMOUNTS) for signal in CONDITIONS if maybe(random, odds)}
        if maybe(random, 0.05):
            found = {s: random.choice(BAD) if maybe(random, 0.3) else text for s, text in found.items()}
        if maybe(random, 0.01):
            found["nodefs.free"] = "1"
        return found

    def _left(self, random: Random, signal: str) -> int:
        least = -2 if signal == PIDS else 0
        borders = (least, 30, 74, 75, 76, 99, 100, 101, 110, 125, 150, 200, 249, 250, 251, 300)
        return random.choice(borders)

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is about this
        try:
            thresholds = thresholds_of(*(history[key] for key in ("hard", "soft", "grace", "reclaim")))
        except ValueError:
            return "refused"
        pressure, answers = Pressure(), []
        for step in history["steps"]:
            if step["containersApart"] and not step["imagesApart"]:
                raise ValueError("there are no such disks")  # cut down too far
            if not step["away"]:
                observed = {signal: Observation(*numbers) for signal, numbers in step["observed"].items()}
                seen = Seen(observed, step["imagesApart"], step["containersApart"])
                pressure = looked(pressure, thresholds, seen, history["transition"], step["wall"])
            answers.append([kind in pressure.conditions for kind in PRESSURES])
        return answers

    def told(self, answer: Answers) -> Answers:
        return answer
