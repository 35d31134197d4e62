"""Nobody gets on for want of a disk; no thread and no open file is left. Played on a copy: what the kernel counts of
these is the whole machine's, not of a host of ring 3. Threads of pods are counted by control groups, so `pod-threads`,
in kernel.py, is real."""

from tests.faults.fault import Fault
from tests.faults.tables import PROC

_STALLS, _STALLER = f"{PROC}/pressure/io", f"{PROC}/staller.pid"
_LOAD, _PIDS, _THREADS = f"{PROC}/loadavg", f"{PROC}/sys/kernel/pid_max", f"{PROC}/sys/kernel/threads-max"
_FILES = f"{PROC}/sys/fs/file-nr"
_THERE = f"mkdir -p {PROC}/pressure {PROC}/sys/kernel {PROC}/sys/fs"


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
_ENOUGH = (
    f"{_THERE}; echo '0.00 0.00 0.00 1/300 9' > {_LOAD}; echo 32768 > {_PIDS}; echo 30000 > {_THREADS}; "
    f"echo '3000 0 100000' > {_FILES}"
)
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
        "of the node's threads 4 in 100 are left, in a copy of /proc",
        (_ENOUGH, f"echo '0.00 0.00 0.00 1/28800 9' > {_LOAD}"),
        (_ENOUGH,),
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
