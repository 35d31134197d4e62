"""R40: the agent is killed again and again beside busy loops, and no check ever fails as often as it must."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self

from tools.bench.agent.checks import busy
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.kit.waiting import wait_until
from tools.soak.rows import Progress, Trial

MINUTES = 5.0
KILLS = 100  # in that time
CHECKS = 20
LIVES_S = (0.2, 4.0)  # from one start to the kill: before its first answer, and some runs of each check later
LOOK_EVERY_S = 0.05
START_LIMIT_S = 60.0
# Fails by chance, at most twice one after the other, and then passes for twenty seconds at least. Of a check's runs the
# agent has not seen the one in which it was killed, so a pass or two may be none to it; of lives of four seconds it
# sees one in that time. What a check has done is in a file beside it, of which no kill leaves a half.
SCRIPT = """#!/bin/sh
read -r failed passed at 2>/dev/null < "$0.done" || { failed=0 passed=1 at=0; }
dice=$(od -An -N1 -tu1 /dev/urandom)
now=$(date +%s)
code=0
if [ "$passed" -eq 0 ] && [ "$failed" -lt 2 ] && [ "$dice" -lt 128 ]; then
    failed=2 code=1
elif [ "$((now - at))" -ge 20 ] && [ "$dice" -lt 128 ]; then
    failed=1 passed=0 at=$now code=1
else
    passed=1
fi
echo "$failed $passed $at" > "$0.new.$$"
mv "$0.new.$$" "$0.done"
exit $code
"""


def hold(trial: Trial) -> None:
    """As many kills as there is time for, a hundred in five minutes at least. Each answer to the kubelet's question is
    to be that the agent is ready."""
    agent = Program("agent", _settings(trial.folder), trial.folder)
    (trial.folder / "states").mkdir()
    kills, progress = 0, Progress(trial.say)
    with busy(trial.seconds + 2 * START_LIMIT_S):
        try:
            agent.start()
            agent.wait_page("/readyz", 200, timeout_s=START_LIMIT_S)
            states = trial.folder / "states" / "checks.json"
            wait_until(lambda: states.exists() and states.read_text().count('"passed"') == CHECKS, "all are kept")
            with Asker(agent) as asker:
                ends = time.monotonic() + trial.seconds
                while time.monotonic() < ends or not kills:
                    time.sleep(trial.chance.uniform(*LIVES_S))
                    agent.process.kill()
                    kills += 1
                    agent.start()
                    progress(f"{kills} kills, answers {dict(asker.seen)}")
                before = asker.seen[200]
                wait_until(lambda: asker.seen[200] > before, "the last start answers", timeout_s=START_LIMIT_S)
        finally:
            agent.process.kill()
    judge_kills(trial, kills)
    trial.tell("answers: ready", asker.seen[200], "")
    trial.at_most(0, "answers: not ready", len(asker.bad), "")
    for text in asker.bad[:3]:
        trial.say(text)


def judge_kills(trial: Trial, kills: int) -> None:
    """Whether there were as many as the row is about."""
    trial.played(KILLS, MINUTES, "kills", kills, "")


class Asker:
    """Asks /readyz as a kubelet does, more often. seen: answers by status, 0 for none; bad: what those said that are
    neither."""

    def __init__(self, agent: Program) -> None:
        self.seen: Counter[int] = Counter()
        self.bad: list[str] = []
        self._agent = agent
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            status, text = self._agent.get("/readyz")
            self.seen[status] += 1
            if status not in (0, 200):
                self.bad.append(text)


def _settings(folder: Path) -> dict[str, object]:
    checks = []
    for number in range(CHECKS):
        script = folder / f"check-{number}"
        script.write_text(SCRIPT)
        script.chmod(0o755)
        check = {"name": script.name, "exec": {"command": [str(script)]}, "periodSeconds": 1, "timeoutSeconds": 30}
        checks.append({**check, "failureThreshold": 3})
    return {
        "mode": "pod",
        "listen": {"address": "127.0.0.1", "port": free_port()},
        "stateFile": str(folder / "states" / "checks.json"),
        "checks": checks,
    }
