"""A unit of systemd that fails: one of its own, which does nothing."""

from tools.faults.fault import Fault

UNIT = "readygate-fault.service"
_FILE = f"/run/systemd/system/{UNIT}"
_WORDS = "[Service]\\nExecStart=/bin/sleep infinity\\nRestart=no\\nRestartSec=100ms\\n"
_STARTED = (
    f"[ -e {_FILE} ] || {{ printf '{_WORDS}' > {_FILE}; systemctl daemon-reload; }}; "
    f"systemctl reset-failed {UNIT} 2> /dev/null || true; systemctl start {UNIT}"
)
_CRASHING = f"sed -i s/Restart=no/Restart=always/ {_FILE} && systemctl daemon-reload"
_STEADY = f"sed -i s/Restart=always/Restart=no/ {_FILE} && systemctl daemon-reload"
_CRASH = f"systemctl kill --signal=KILL {UNIT} && sleep 0.5"
_REMOVED = (
    f"systemctl stop {UNIT} 2> /dev/null || true; systemctl reset-failed {UNIT} 2> /dev/null || true; "
    f"rm -f {_FILE} && systemctl daemon-reload"
)

FAULTS = [
    Fault(
        "unit-failed",
        "systemdUnit",
        "a unit of systemd was killed, and systemd does not restart it",
        (_STARTED, f"systemctl kill --signal=KILL {UNIT}"),
        (_STARTED,),
        f"{{units: [{UNIT}], absent: fail}}",
        (_REMOVED,),
    ),
    Fault(
        "unit-crashes",
        "systemdUnit",
        "a unit of systemd crashes four times; it is over ten seconds later",
        (_STARTED, _CRASHING, *[_CRASH] * 4),
        (_STARTED, _STEADY, f"systemctl restart {UNIT}"),
        f"{{units: [{UNIT}], absent: fail, maxRestarts: 3, restartSeconds: 10}}",
        (_REMOVED,),
    ),
]
