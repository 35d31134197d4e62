"""No thread and no open file is left. Both are played on a copy of /proc: the kernel counts those of the whole machine,
not of a host of ring 3, and a quiet machine runs fewer threads than the least limit that the kernel accepts."""

from tools.faults.fault import Fault
from tools.faults.tables import PROC

_FILES = f"{PROC}/sys/fs/file-nr"
_THERE = f"mkdir -p {PROC}/sys/fs"
_ENOUGH = f"{_THERE}; echo '3000 0 100000' > {_FILES}"
_LIMITS = f"mkdir -p {PROC}/sys/kernel; for l in pid_max threads-max; do echo 4000 > {PROC}/sys/kernel/$l; done"
_THREADS = f"{PROC}/loadavg"
_FEW = f"{_LIMITS}; echo '0.1 0.1 0.1 1/300 1' > {_THREADS}"
_CLEAR = (f"rm -rf {PROC}",)

FAULTS = [
    Fault(
        "threads-out",
        "pressure",
        "the node runs 3,960 of 4,000 threads, in a copy of /proc",
        (f"{_LIMITS}; echo '0.1 0.1 0.1 1/3960 1' > {_THREADS}",),
        (_FEW,),
        f"{{look: [threads], proc: {PROC}}}",
        _CLEAR,
    ),
    Fault(
        "files-out",
        "pressure",
        "of the node's open files 4 in 100 are left, in a copy of /proc",
        (_ENOUGH, f"echo '96000 0 100000' > {_FILES}"),
        (_ENOUGH,),
        f"{{look: [files], proc: {PROC}}}",
        _CLEAR,
    ),
]
