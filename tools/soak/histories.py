"""A million random histories of each kind, played to the agent and to the kubelet's own packages."""

import re
import subprocess
import sys
from collections.abc import Sequence

from tools.differential.targets import TARGETS
from tools.kit.endings import end_with_parent
from tools.soak.rows import ROOT, Trial

HISTORIES = 1_000_000
MINUTES = 180.0  # in which they are to be played, on two processors; a shorter row has to play its part of them
LATE_S = 600.0  # to build the driver, and to make the smallest history of one that differs
_TARGET = re.compile(r"^([\w.-]+) +([\d,]+) histories .* (equal|DIFFERS)$")


def hold(trial: Trial) -> None:
    """As many as the minutes allow: each run draws others, so what one run leaves out another one plays."""
    argv = [sys.executable, "-m", "tools.differential", "--histories", str(HISTORIES), "--minutes", str(trial.minutes)]
    argv += ["--seed", str(trial.chance.randrange(2**32))]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent) as playing:
        try:
            told = [_said(line, trial) for line in playing.stdout or ()]
            code = playing.wait(LATE_S)
        finally:
            playing.kill()
    judge(trial, told)
    if code != 0:
        raise RuntimeError(f"ended with code {code}: {told[-1] if told else 'it said nothing'}")


def judge(trial: Trial, told: Sequence[str]) -> None:
    """told: the lines of a run. Each target has to be there, with its histories, and equal."""
    played = {match[1]: match for line in told if (match := _TARGET.match(line))}
    part = min(1.0, trial.minutes / MINUTES)
    for target in TARGETS:
        match, floor = played.get(target.name), part * HISTORIES
        trial.at_least(floor, f"histories of {target.name}", float(match[2].replace(",", "")) if match else 0.0, "")
    trial.at_most(0, "targets that differ", sum(match[3] == "DIFFERS" for match in played.values()), "")


def _said(line: str, trial: Trial) -> str:
    trial.say(line.rstrip())
    return line.rstrip()
