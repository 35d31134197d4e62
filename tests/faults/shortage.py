"""No thread and no open file is left. How many threads may be is each host's. Open files are played on a copy: the
kernel counts those of the whole machine, not of a host of ring 3."""

from tests.faults.fault import Fault
from tests.faults.tables import PROC

_FILES = f"{PROC}/sys/fs/file-nr"
_THERE = f"mkdir -p {PROC}/sys/fs"
_PID_MAX, _KEPT = "/proc/sys/kernel/pid_max", "/var/tmp/readygate-fault-pid-max"


_ENOUGH = f"{_THERE}; echo '3000 0 100000' > {_FILES}"
# Older kernels have one limit for the whole machine, which is left alone.
_OF_ITS_OWN = "test $(printf '6.14\n%s\n' $(uname -r | cut -d- -f1) | sort -V | head -n 1) = 6.14"
# Those of the machine are counted; the host's own, fewer by far, find room below that.
_FEW = f"t=$(cut -d/ -f2 /proc/loadavg | cut -d' ' -f1); t=$((t * 3 / 4)); echo $((t < 320 ? 320 : t)) > {_PID_MAX}"
_CLEAR = (f"rm -rf {PROC}",)

FAULTS = [
    Fault(
        "threads-out",
        "pressure",
        "the node may have no more threads than there are",
        (_OF_ITS_OWN, f"[ -e {_KEPT} ] || cat {_PID_MAX} > {_KEPT}", _FEW),
        (f"[ ! -e {_KEPT} ] || {{ cat {_KEPT} > {_PID_MAX} && rm -f {_KEPT}; }}",),
        "{look: [threads]}",
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
