"""Full tables of the kernel, played on a copy: the real ones are the whole machine's, not of a host of ring 3."""

from tests.faults.fault import Fault

PROC = "/run/readygate-fault-proc"
_STAT, _SYS = f"{PROC}/net/stat/nf_conntrack", f"{PROC}/sys/net/netfilter"
_COUNTS = (
    f"mkdir -p {PROC}/net/stat {_SYS}; echo 262144 > {_SYS}/nf_conntrack_max; echo 900 > {_SYS}/nf_conntrack_count; "
    f"[ -s {_STAT} ] || printf 'entries drop early_drop insert_failed\\n%08x %08x 00000000 00000000\\n' 9 0 > {_STAT}"
)
# Written whole and renamed would be another file than the one that a check reads; so it is written in one call.
_DROPS = (
    f"n=0; while [ $n -lt 2400 ] && [ ! -e {PROC}/end ]; do n=$((n + 1)); "
    f"printf 'entries drop early_drop insert_failed\\n%08x %08x 00000000 00000000\\n' 9 $((n * 50)) > {_STAT}; "
    "sleep 0.25; done"
)

FAULTS = [
    Fault(
        "conntrack-drops",
        "connectionTables",
        "the kernel's counter of connections that were turned away grows by 200 a second, in a copy of /proc",
        (
            _COUNTS,
            f"rm -f {PROC}/end",
            f"setsid sh -c '{_DROPS.replace(chr(39), chr(34))}' > /dev/null 2>&1 < /dev/null &",
        ),
        (f"mkdir -p {PROC}; touch {PROC}/end", "sleep 0.3", _COUNTS),
        f"{{tables: [conntrack], proc: {PROC}}}",
    ),
]
