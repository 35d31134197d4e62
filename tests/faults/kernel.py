"""What the kernel counts and says. Lines for its log are written by a program, so the check has to take those."""

from tests.faults.fault import Fault

_SAY = "printf '%s\\n' {} > /dev/kmsg"
_LOCKUP = "'watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [readygate-fault:1]'"
_KEPT = "/var/tmp/readygate-fault-pids-max"
_GROUP = "/sys/fs/cgroup/kubepods.slice"

FAULTS = [
    Fault(
        "soft-lockup",
        "kernelLog",
        "the kernel's log tells twice of a processor that is stuck; it is over after five minutes",
        (_SAY.format(_LOCKUP), _SAY.format(_LOCKUP)),
        ("true",),
        "{programs: true}",
    ),
    Fault(
        "pod-threads",
        "pressure",
        "the pods may have no more threads than they have",
        (
            f"[ -e {_KEPT} ] || cp {_GROUP}/pids.max {_KEPT}",
            f"cat {_GROUP}/pids.current > {_GROUP}/pids.max",
        ),
        (f"[ ! -e {_KEPT} ] || {{ cat {_KEPT} > {_GROUP}/pids.max && rm -f {_KEPT}; }}",),
        "{look: [podThreads]}",
    ),
]
