"""Releases the Lease of a kube-scheduler that has ended without releasing it.

The kube-schedulers of a cluster elect their leader with this Lease. A leader that exits releases it, except up to
Kubernetes 1.36 while a renewal is under way: the API server refuses the release as a conflict, and client-go's
release() tries once (1.37: again). A leader that is killed does not release it either. The next scheduler leads when
it has seen the Lease unchanged for leaseDurationSeconds (15), and reads it every 2 to 4.4 s (leaderelection.go).
Until then, for up to 19.4 s, nothing is scheduled although everything answers.

The holder's name has the host's name and a UUID that each process generates (kube-scheduler's options.go). If the
process reported at /metrics that it leads, and has ended, no process has that name any more.
"""

import contextlib
import json
import os
import re
import time
from typing import Any, Callable, Dict, List, Tuple

Run = Callable[[List[str], float], Tuple[int, str]]

EVERY_S = 1.0
TRIES = 2
LIMIT_S = 3.0
BEFORE_LIMIT_S = 10.0  # while the earlier scheduler still leads, nothing waits for this
_LEADS = re.compile(r'^leader_election_master_status\{name="kube-scheduler"\} 1$', re.MULTILINE)
_UUID = "_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class Lease:
    """The Lease of the leader. An error here never decides whether a change is confirmed or undone.

    asked: commands that read /metrics of this host's scheduler (`leads`) and the Lease (`read`), and one that changes
    it (`change`), to which the change is appended; empty for none.
    run: runs a command with a time limit; returns its exit code and output.
    """

    def __init__(self, run: Run, asked: Dict[str, List[str]], holder: str = "") -> None:
        self._run, self._asked = run, asked
        self._holder = holder
        self._left = TRIES if asked and holder else 0
        self._next = 0.0
        self.given_up = "no" if self._left else ""  # "by itself", "for it"; empty where it did not lead

    def holder(self) -> str:
        """The holder's name if the scheduler of this host leads; empty if it does not, or this is unknown."""
        with contextlib.suppress(Exception):
            if self._asked and _LEADS.search(self._output_of("leads", BEFORE_LIMIT_S)):
                holder = self._named(BEFORE_LIMIT_S)
                return holder if re.fullmatch(re.escape(os.uname().nodename) + _UUID, holder) else ""
        return ""

    def give_up(self) -> None:
        """Releases the Lease, at most one attempt a second. Call it only after the holder has ended: see `holder`."""
        if self._left <= 0 or time.monotonic() < self._next:
            return
        self._left -= 1
        self._next = time.monotonic() + EVERY_S
        with contextlib.suppress(Exception):
            named = self._named(LIMIT_S)
            if named == self._holder:
                # The API server refuses it if the name has changed: the new scheduler holds it, or another host.
                path = "/spec/holderIdentity"
                change = [{"op": "test", "path": path, "value": named}, {"op": "remove", "path": path}]
                argv = [*self._asked["change"], "--patch=" + json.dumps(change)]
                self._finish("for it", done=self._run(argv, LIMIT_S)[0] == 0)
            else:
                self._finish("by itself", done=True)

    def _finish(self, how: str, *, done: bool) -> None:
        if done:
            self.given_up, self._left = how, 0

    def _named(self, limit_s: float) -> str:
        """The holder in the Lease. Raises if the answer is no Lease."""
        read: Any = json.loads(self._output_of("read", limit_s))
        return str(read["spec"].get("holderIdentity") or "-")

    def _output_of(self, what: str, limit_s: float) -> str:
        code, output = self._run(self._asked[what], limit_s)
        return output if code == 0 else ""
