"""Gives up the Lease of a kube-scheduler that has ended without doing so.

By it the kube-schedulers of a cluster agree on who leads. One that ends gives it up, but up to Kubernetes 1.36 not
where a renewal was under way: the API server refuses that as a conflict, and client-go's release() tries once (1.37:
again). One that is killed does not either. The next one leads when it has seen the Lease unchanged for
leaseDurationSeconds (15), and looks every 2 to 4.4 s (leaderelection.go): up to 19.4 s in which nothing is scheduled,
though everything answers.

Who holds it is called after the host and a UUID that each process makes anew (kube-scheduler's options.go): where the
process said at /metrics that it leads, and has ended, nobody has that name any more.
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
BEFORE_LIMIT_S = 10.0  # while the earlier one still leads nobody waits for us
_LEADS = re.compile(r'^leader_election_master_status\{name="kube-scheduler"\} 1$', re.MULTILINE)
_UUID = "_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class Lease:
    """`asked`: commands that read /metrics of this host's scheduler (`leads`) and the Lease (`read`), and one that
    changes it, to which the change is added (`change`); empty for none. `run`: a command with a time limit, to its code
    and what it said. Nothing depends on it: whatever goes wrong here, the change is confirmed or put back."""

    def __init__(self, run: Run, asked: Dict[str, List[str]], holder: str = "") -> None:
        self._run, self._asked = run, asked
        self._holder = holder
        self._left = TRIES if asked and holder else 0
        self._next = 0.0
        self.given_up = "no" if self._left else ""  # "by itself", "for it"; empty where it did not lead

    def ours(self) -> str:
        """Who the scheduler of this host is as the one that leads; empty where it does not, or nobody says."""
        with contextlib.suppress(Exception):
            if self._asked and _LEADS.search(self._said("leads", BEFORE_LIMIT_S)):
                holder = self._named(BEFORE_LIMIT_S)
                return holder if re.fullmatch(re.escape(os.uname().nodename) + _UUID, holder) else ""
        return ""

    def give_up(self) -> None:
        """At most once a second, until it has answered. Only where the holder has ended: see `ours`."""
        if self._left <= 0 or time.monotonic() < self._next:
            return
        self._left -= 1
        self._next = time.monotonic() + EVERY_S
        with contextlib.suppress(Exception):
            named = self._named(LIMIT_S)
            if named == self._holder:
                # Refused where the name has changed since: it is the new scheduler's, or another host's.
                path = "/spec/holderIdentity"
                change = [{"op": "test", "path": path, "value": named}, {"op": "remove", "path": path}]
                argv = [*self._asked["change"], "--patch=" + json.dumps(change)]
                self._told("for it", done=self._run(argv, LIMIT_S)[0] == 0)
            else:
                self._told("by itself", done=True)

    def _told(self, how: str, *, done: bool) -> None:
        if done:
            self.given_up, self._left = how, 0

    def _named(self, limit_s: float) -> str:
        """Raises for an answer that is none."""
        read: Any = json.loads(self._said("read", limit_s))
        return str(read["spec"].get("holderIdentity") or "nobody")

    def _said(self, what: str, limit_s: float) -> str:
        code, said = self._run(self._asked[what], limit_s)
        return said if code == 0 else ""
