"""A million random histories of each kind, played to the agent and to the kubelet's own packages."""

import re
import subprocess
import sys

from tests.kit.endings import end_with_parent
from tests.soak.rows import ROOT, Trial

HISTORIES = 1_000_000
MINUTES = 90.0
LATE_S = 600.0  # to build the driver, and to make the smallest history of one that differs
_TARGET = re.compile(r"^(\w+) +([\d,]+) histories .* (equal|DIFFERS)$")


def hold(trial: Trial) -> None:
    """As many as the minutes allow: each run draws others, so what one run leaves out another one plays."""
    argv = [sys.executable, "-m", "tests.differential", "--histories", str(HISTORIES), "--minutes", str(trial.minutes)]
    argv += ["--seed", str(trial.chance.randrange(2**32))]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent) as playing:
        try:
            told = [_said(line, trial) for line in playing.stdout or ()]
            code = playing.wait(LATE_S)
        finally:
            playing.kill()
    played = [line for line in told if _TARGET.match(line)]
    for name, histories, _ in (match.groups() for line in played if (match := _TARGET.match(line))):
        trial.tell(f"histories of {name}", float(histories.replace(",", "")), "")
    trial.at_least(1, "targets", len(played), "")
    trial.at_most(0, "targets that differ", sum(line.endswith("DIFFERS") for line in played), "")
    if code != 0:
        raise RuntimeError(f"ended with code {code}: {told[-1] if told else 'it said nothing'}")


def _said(line: str, trial: Trial) -> str:
    trial.say(line.rstrip())
    return line.rstrip()
