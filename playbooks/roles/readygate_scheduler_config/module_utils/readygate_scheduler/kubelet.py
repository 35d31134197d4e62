"""Has the kubelet look again at a static pod that it was given while the earlier one was still ending.

At its first look it finds the earlier one there and waits 10 to 15 s for the next (pod_workers.go, allowPodStart); the
earlier one is gone after one or two. A change of the mirror pod, which is the earlier one's until the new one starts,
makes it look at once.

The extender's role puts it on the host for its static pod too, with dead_man, errors, hands and jobs.
"""

import json
import time
from typing import Callable, List, Tuple

Run = Callable[[List[str], float], Tuple[int, str]]

ANNOTATION = "readygate.dev/looked-at"
EVERY_S = 1.0
AT_MOST = 15
FAILED = 5  # of those: an API server that is away, or a mirror pod that is the new one's, is not asked for long
LIMIT_S = 3.0


class Kubelet:
    """`mirror`: how kubectl is asked about the mirror pod, and its name; empty for none. `run`: a command with a time
    limit, to its code and what it said. Nothing depends on it."""

    def __init__(self, run: Run, mirror: List[str]) -> None:
        self._command = run
        self._kubectl, self._name = mirror[:-1], mirror[-1:]
        self._uid = ""
        self._left = AT_MOST if mirror else 0
        self._next = 0.0

    def look(self) -> None:
        """Asks it to, at most once a second. Only while no container of the pod runs."""
        if self._left <= 0 or time.monotonic() < self._next:
            return
        code = 0
        if not self._uid:
            code, said = self._run("get", "--output=jsonpath={.metadata.uid}")
            self._uid = said.strip() if code == 0 else ""
        if self._uid:
            # With its UID: the mirror pod of the new one keeps no trace of us, the change is refused there.
            change = {"metadata": {"uid": self._uid, "annotations": {ANNOTATION: str(self._left)}}}
            code, _ = self._run("patch", "--patch=" + json.dumps(change))
        self._left -= 1 if code == 0 else FAILED
        self._next = time.monotonic() + EVERY_S

    def _run(self, verb: str, option: str) -> Tuple[int, str]:
        return self._command([*self._kubectl, verb, "pod", *self._name, option], LIMIT_S)
