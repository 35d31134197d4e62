"""Nobody gets on for want of a disk; no thread and no open file is left. Stalls and files are played on a copy: what
the kernel counts of these is the whole machine's, not of a host of ring 3. How many threads may be is each host's."""

from tests.faults.fault import Fault
from tests.faults.tables import PROC

_STALLS, _STALLER = f"{PROC}/pressure/io", f"{PROC}/staller.pid"
_FILES = f"{PROC}/sys/fs/file-nr"
_THERE = f"mkdir -p {PROC}/pressure {PROC}/sys/fs"
_PID_MAX, _KEPT = "/proc/sys/kernel/pid_max", "/var/tmp/readygate-fault-pid-max"


def _stalls(percent: str, total: str) -> str:
    """Both lines in one call: it is read at any moment."""
    line = f"avg10={percent} avg60={percent} avg300={percent} total=%d"
    return f"printf 'some {line}\\nfull {line}\\n' {total} {total} > {_STALLS}"


_WELL = f"{_THERE}; {_stalls('0.00', '0')}"
# It is written a few times a second only, so it counts four times as fast as time goes.
_STAND_STILL = (
    f"n=0; while [ $n -lt 14400 ]; do n=$((n + 1)); {_stalls('99.00', '$(($(date +%s%N) / 250))')}; sleep 0.25; done"
)
_RUN = f"setsid sh -c '{_STAND_STILL.replace(chr(39), chr(34))}' > /dev/null 2>&1 < /dev/null"
_BEGIN = f"kill -0 $(cat {_STALLER} 2> /dev/null) 2> /dev/null || {{ {_RUN} & echo $! > {_STALLER}; }}"
_ENOUGH = f"{_THERE}; echo '3000 0 100000' > {_FILES}"
# Older kernels have one limit for the whole machine, which is left alone.
_OF_ITS_OWN = "test $(printf '6.14\n%s\n' $(uname -r | cut -d- -f1) | sort -V | head -n 1) = 6.14"
# Those of the machine are counted; the host's own, fewer by far, find room below that.
_FEW = f"t=$(cut -d/ -f2 /proc/loadavg | cut -d' ' -f1); t=$((t * 3 / 4)); echo $((t < 320 ? 320 : t)) > {_PID_MAX}"
_CLEAR = (f"rm -rf {PROC}",)

FAULTS = [
    Fault(
        "stalls",
        "pressure",
        "everybody has waited for a disk for a minute, and does so still, in a copy of /proc",
        (_THERE, _BEGIN, "sleep 0.6"),
        (f"kill $(cat {_STALLER} 2> /dev/null) 2> /dev/null; rm -f {_STALLER}", "sleep 0.3", _WELL),
        f"{{look: [io], proc: {PROC}}}",
        _CLEAR,
    ),
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
