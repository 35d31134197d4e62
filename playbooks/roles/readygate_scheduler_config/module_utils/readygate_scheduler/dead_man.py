"""A timer of systemd that calls `recover` while a change is open. The extender's role uses it for its static pod."""

import os
from typing import List

from .errors import RefusedError
from .host_io import HostIO

RECOVER = "readygate-scheduler-recover"
ENDS = "a change of kube-scheduler by readygate"
AGAIN_S = 15  # how often the timer calls


class DeadMan:
    """Two units of systemd that exist only while a change is open. They call `recover` periodically, and at boot.

    name: of the units. ends: what they end, in words.
    """

    def __init__(self, units: str, command: List[str], io: HostIO, name: str = RECOVER, ends: str = ENDS) -> None:
        self.name = name
        self.ends = ends
        self.service = os.path.join(units, name + ".service")
        self.timer = os.path.join(units, name + ".timer")
        self.command = command
        self.io = io

    def arm(self) -> None:
        """Starts the timer. Raises RefusedError if it cannot: no change begins without the timer."""
        what = "[Unit]\nDescription=Ends %s that was interrupted\n" % self.ends
        start = "[Service]\nType=oneshot\nExecStart=%s\n" % " ".join([*self.command, "recover"])
        when = "[Timer]\nOnBootSec=1s\nOnActiveSec=%ds\nOnUnitInactiveSec=%ds\nAccuracySec=1s\n" % (AGAIN_S, AGAIN_S)
        self.io.write(self.service, (what + start).encode(), 0o644)
        self.io.write(self.timer, (what + when + "[Install]\nWantedBy=timers.target\n").encode(), 0o644)
        for argv in (["daemon-reload"], ["enable", "--now", self.name + ".timer"]):
            code, output = self.io.run(["systemctl", *argv])
            if code != 0:
                raise RefusedError("failed", "the timer for `recover` could not be started: " + output.strip()[-300:])

    def disarm(self) -> None:
        if os.path.exists(self.service) or os.path.exists(self.timer):
            self.io.run(["systemctl", "disable", "--now", self.name + ".timer"])
            self.io.remove(self.timer)
            self.io.remove(self.service)
            self.io.run(["systemctl", "daemon-reload"])
