"""Makes the kubelet sync a static pod again that it was given while the earlier pod was still ending.

At its first sync it finds the earlier pod and waits 10 to 15 s for the next (pod_workers.go, allowPodStart), although
the earlier pod ends after one or two. A change of the mirror pod, which belongs to the earlier pod until the new one
starts, makes it sync at once.

The extender's role puts it on the host for its static pod too, with dead_man, errors, host_io and jobs.
"""

import json
import time
from typing import Callable, List, Tuple

Run = Callable[[List[str], float], Tuple[int, str]]

ANNOTATION = "readygate.dev/looked-at"
EVERY_S = 1.0
AT_MOST = 15
FAILED = 5  # attempts that a failed one counts for: the API server is away, or the mirror pod is the new pod's
LIMIT_S = 3.0


class Kubelet:
    """The kubelet's mirror pod. An error here never decides a change.

    mirror: kubectl's command line for the mirror pod, its name last; empty for none.
    run: runs a command with a time limit; returns its exit code and output.
    """

    def __init__(self, run: Run, mirror: List[str]) -> None:
        self._command = run
        self._kubectl, self._name = mirror[:-1], mirror[-1:]
        self._uid = ""
        self._left = AT_MOST if mirror else 0
        self._next = 0.0

    def resync(self) -> None:
        """Changes the mirror pod, at most once a second. Call it only while no container of the pod runs."""
        if self._left <= 0 or time.monotonic() < self._next:
            return
        code = 0
        if not self._uid:
            code, output = self._run("get", "--output=jsonpath={.metadata.uid}")
            self._uid = output.strip() if code == 0 else ""
        if self._uid:
            # With its UID, so that the API server refuses to change the mirror pod of the new pod.
            change = {"metadata": {"uid": self._uid, "annotations": {ANNOTATION: str(self._left)}}}
            code, _ = self._run("patch", "--patch=" + json.dumps(change))
        self._left -= 1 if code == 0 else FAILED
        self._next = time.monotonic() + EVERY_S

    def _run(self, verb: str, option: str) -> Tuple[int, str]:
        return self._command([*self._kubectl, verb, "pod", *self._name, option], LIMIT_S)
