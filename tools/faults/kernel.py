"""What the kernel counts and says. Lines for its log are written by a program, so the check has to take those."""

from tools.faults.fault import Fault
from tools.faults.filesystem import DISK, MOUNT, UNMOUNT

_SAY = "printf '%s\\n' {} > /dev/kmsg"
_LOCKUP = "'watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [readygate-fault:1]'"
_SHUT = (
    "'XFS (readygate-fault): Log I/O Error (0x2) detected at xlog_ioend_work+0x4c/0x80 [xfs] "
    "(fs/xfs/xfs_log.c:1378).  Shutting down filesystem.'"
)
_MOUNTED = "'XFS (readygate-fault): Mounting V5 Filesystem'"
_FALLEN = "'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.'"
_RESET = "'readygate: over gpuXid 0000:3b:00'"
_KEPT, _FILLERS = "/var/tmp/readygate-fault-pids-max", "/var/tmp/readygate-fault-threads"
_FIND = (
    "g=; for d in /sys/fs/cgroup/kubepods.slice /sys/fs/cgroup/kubepods /sys/fs/cgroup/pids/kubepods.slice "
    "/sys/fs/cgroup/pids/kubepods; do [ ! -e $d/pids.max ] || g=${g:-$d}; done"
)
# Where the kubelet makes no group of the pods (cgroupsPerQOS: false) there is one with the same name, of ours.
_MADE = f'{_FIND}; [ -n "$g" ] || {{ g=/sys/fs/cgroup/pids/kubepods; [ -d /sys/fs/cgroup/pids ] && mkdir -p $g; }}'
_FILL = (
    f"{_MADE}; n=$(cat $g/pids.current); while [ $n -lt 20 ]; do sh -c 'echo $$ > $0/cgroup.procs; echo $$ >> "
    f"{_FILLERS}; exec sleep 3600' $g > /dev/null 2>&1 < /dev/null & n=$((n + 1)); done; sleep 0.3"
)

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
        "log-shutdown",
        "kernelLog",
        "the kernel's log tells that a file system was shut down; it is over when it tells of its mount",
        (MOUNT, _SAY.format(_SHUT)),
        (MOUNT, _SAY.format(_MOUNTED)),
        f"{{programs: true, gatePaths: [{DISK}]}}",
        (UNMOUNT,),
    ),
    Fault(
        "gpu-xid",
        "kernelLog",
        "the kernel's log tells that a GPU has fallen off the bus (Xid 79); it is over when root calls it over there",
        (_SAY.format(_FALLEN),),
        (_SAY.format(_RESET),),
        "{programs: true, gate: [gpuXid], warn: []}",
    ),
    Fault(
        "own-line",
        "kernelLog",
        "the kernel's log has a line that a pattern of the settings is for; it is over when its end line comes",
        (_SAY.format("'readygate-fault nic0: health compromised'"),),
        (_SAY.format("'readygate-fault nic0: recovered'"),),
        "{programs: true, patterns: [{class: nicHealth, line: '.*fault (?P<device>.+): .*health compromised', "
        "endLine: '.*fault (?P<device>.+): recovered', severity: gate}]}",
    ),
    Fault(
        "nfs-silent",
        "kernelLog",
        "the kernel's log reports an NFS server that does not answer; it is over when the log reports its answer",
        (_SAY.format("'nfs: server readygate-fault not responding, still trying'"),),
        (_SAY.format("'nfs: server readygate-fault OK'"),),
        "{programs: true, gate: [nfsNotResponding], warn: []}",
    ),
    Fault(
        "pod-threads",
        "pressure",
        "the pods may have no more threads than they have",
        (
            _FILL,
            f"{_FIND}; [ -e {_KEPT} ] || cp $g/pids.max {_KEPT}",
            f"{_FIND}; cat $g/pids.current > $g/pids.max",
        ),
        (
            _MADE,
            f"{_FIND}; [ ! -e {_KEPT} ] || {{ cat {_KEPT} > $g/pids.max && rm -f {_KEPT}; }}",
            f"[ ! -e {_FILLERS} ] || {{ xargs kill < {_FILLERS} 2>/dev/null; rm -f {_FILLERS}; }}",
        ),
        "{look: [podThreads]}",
        ("rmdir /sys/fs/cgroup/pids/kubepods 2> /dev/null || true",),  # where it is not ours it has others below it
    ),
]
