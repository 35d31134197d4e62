"""Full tables of the kernel, played on a copy: the real ones are the whole machine's, not of a host of ring 3."""

from tools.faults.fault import Fault

PROC = "/run/readygate-fault-proc"
_STAT, _SYS = f"{PROC}/net/stat/nf_conntrack", f"{PROC}/sys/net/netfilter"
_COUNTS = (
    f"mkdir -p {PROC}/net/stat {_SYS}; echo 262144 > {_SYS}/nf_conntrack_max; echo 900 > {_SYS}/nf_conntrack_count; "
    f"[ -s {_STAT} ] || printf 'entries drop early_drop insert_failed\\n%08x %08x 00000000 00000000\\n' 9 0 > {_STAT}"
)
_FULL_TABLE = f"cat {_SYS}/nf_conntrack_max > {_SYS}/nf_conntrack_count"
# Written whole and renamed would be another file than the one that a check reads; so it is written in one call.
_DROPS = (
    f"n=0; while [ $n -lt 2400 ] && [ ! -e {PROC}/end ]; do n=$((n + 1)); "
    f"printf 'entries drop early_drop insert_failed\\n%08x %08x 00000000 00000000\\n' 9 $((n * 50)) > {_STAT}; "
    "sleep 0.25; done"
)

_CACHES = f"{PROC}/net/stat"
_FILLER = f"{PROC}/filler.pid"


def _caches(entries: int, fulls: str) -> str:
    """Both tables with these entries, and so many that found no room."""
    line = f"printf 'entries table_fulls\\n%08x %08x\\n' {entries} {fulls}"
    return "; ".join(f"{line} > {_CACHES}/{name}_cache" for name in ("arp", "ndisc"))


# Healed, the counters are those of a kernel that has just started.
_ROOM = (
    f"for f in ipv4 ipv6; do d={PROC}/sys/net/$f/neigh/default; mkdir -p $d {_CACHES}; "
    f"echo 1024 > $d/gc_thresh3; done; {_caches(500, '0')}"
)
_FULL = f"n=0; while [ $n -lt 120000 ]; do n=$((n + 50)); {_caches(1024, '$n')}; sleep 0.25; done".replace("'", '"')
_FILLS = (
    f"kill -0 $(cat {_FILLER} 2> /dev/null) 2> /dev/null || "
    f"{{ setsid sh -c '{_FULL}' > /dev/null 2>&1 < /dev/null & echo $! > {_FILLER}; }}"
)

FAULTS = [
    Fault(
        "conntrack-drops",
        "connectionTables",
        "the table of connections is full, and 200 a second are turned away, in a copy of /proc",
        (
            _COUNTS,
            _FULL_TABLE,
            f"rm -f {PROC}/end",
            f"setsid sh -c '{_DROPS.replace(chr(39), chr(34))}' > /dev/null 2>&1 < /dev/null &",
        ),
        (f"mkdir -p {PROC}; touch {PROC}/end", "sleep 0.3", _COUNTS),
        f"{{tables: [conntrack], proc: {PROC}}}",
        (f"rm -rf {PROC}",),
    ),
    Fault(
        "neighbours-full",
        "connectionTables",
        "the tables of neighbours are full, and 200 a second find no room, in a copy of /proc",
        (f"[ -e {_FILLER} ] || {{ {_ROOM}; }}", _FILLS, "sleep 1"),
        (f"kill $(cat {_FILLER} 2> /dev/null) 2> /dev/null; rm -f {_FILLER}", "sleep 0.3", _ROOM),
        f"{{tables: [arp, ndisc], proc: {PROC}}}",
        (f"rm -rf {PROC}",),
    ),
]
