"""systemd calls `recover` while a change is open. The extender's role uses it too, for its static pod."""

import os
from typing import List

from .errors import RefusedError
from .hands import Hands

RECOVER = "readygate-scheduler-recover"
ENDS = "a change of kube-scheduler by readygate"
AGAIN_S = 15  # how often the timer calls


class DeadMan:
    """Two units of systemd, there only while a change is open: they call `recover` again and again, and at boot.
    `name` is that of the units, `ends` what they end, in words."""

    def __init__(self, units: str, command: List[str], hands: Hands, name: str = RECOVER, ends: str = ENDS) -> None:
        self.name = name
        self.ends = ends
        self.service = os.path.join(units, name + ".service")
        self.timer = os.path.join(units, name + ".timer")
        self.command = command
        self.hands = hands

    def arm(self) -> None:
        """Raises RefusedError where it cannot: no change without it."""
        what = "[Unit]\nDescription=Ends %s that was interrupted\n" % self.ends
        start = "[Service]\nType=oneshot\nExecStart=%s\n" % " ".join([*self.command, "recover"])
        when = "[Timer]\nOnBootSec=1s\nOnActiveSec=%ds\nOnUnitInactiveSec=%ds\nAccuracySec=1s\n" % (AGAIN_S, AGAIN_S)
        self.hands.write(self.service, (what + start).encode(), 0o644)
        self.hands.write(self.timer, (what + when + "[Install]\nWantedBy=timers.target\n").encode(), 0o644)
        for argv in (["daemon-reload"], ["enable", "--now", self.name + ".timer"]):
            code, said = self.hands.run(["systemctl", *argv])
            if code != 0:
                raise RefusedError("failed", "the dead man's timer could not be set: " + said.strip()[-300:])

    def disarm(self) -> None:
        if os.path.exists(self.service) or os.path.exists(self.timer):
            self.hands.run(["systemctl", "disable", "--now", self.name + ".timer"])
            self.hands.remove(self.timer)
            self.hands.remove(self.service)
            self.hands.run(["systemctl", "daemon-reload"])
