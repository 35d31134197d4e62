"""The status API of 5,000 nodes, attacked by clients of every kind: it keeps its memory, and answers the probe."""

from tests.scripted.status_api_attack import KERNEL_MIB, attack
from tools.soak.rows import Trial

MINUTES = 2.0
MEMORY_LIMIT_MIB = 128.0  # of its container
LIVEZ_LIMIT_S = 1.0


def hold(trial: Trial) -> None:
    seen = attack(trial.folder, trial.seconds)
    trial.at_most(MEMORY_LIMIT_MIB - KERNEL_MIB, "peak memory", seen.peak_mib, "MiB")
    trial.tell("memory before", seen.idle_mib, "MiB")
    trial.at_least(trial.seconds, "probes", len(seen.probes), "")
    trial.at_most(LIVEZ_LIMIT_S, "slowest /livez", max(took_s for took_s, _ in seen.probes), "s")
    trial.at_most(0, "/livez that was not 200", sum(status != 200 for _, status in seen.probes), "")
