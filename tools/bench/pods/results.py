"""The figures of all rounds: seconds of each arm, and the agent's as a share of the kubelet's."""

from collections.abc import Sequence

from tools.bench.figures import Figure, median, spread
from tools.bench.pods.rounds import Round

AGENT, KUBELET = ARMS = ("agent", "kubelet")


def figures(rounds: Sequence[Round]) -> list[Figure]:
    """Of each number of pods that both arms have played."""
    found: list[Figure] = []
    for pods in sorted({one.pods for one in rounds}):
        for what in ("ready", "gone"):
            arms = {arm: [_of(one, what) for one in rounds if (one.pods, one.arm) == (pods, arm)] for arm in ARMS}
            if all(arms.values()):
                name = f"pods_{pods}_{what}"
                found += [_seconds(f"{name}_{arm}_s", seconds) for arm, seconds in arms.items()]
                ratio = median(arms[AGENT]) / median(arms[KUBELET])
                found.append(Figure(f"{name}_ratio", ratio, "ratio", "of the medians"))
    return found


def _of(one: Round, what: str) -> float:
    return one.ready_s if what == "ready" else one.gone_s


def _seconds(name: str, seconds: Sequence[float]) -> Figure:
    return Figure(name, median(seconds), "s", f"{len(seconds)} rounds, {spread(seconds)}")
