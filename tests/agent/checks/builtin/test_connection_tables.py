"""The check `connectionTables`: what is turned away fails, what is nearly full warns, what is unseen is unknown."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.checks.builtin.connection_tables import TABLES, Check, Facts, Fill, Settings, judge, look
from agent.checks.state import CheckState, Finding
from tools.kit.cases import cases

# As a kernel 6.18 shows them, of two processors.
CONNTRACK = (
    "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  "
    "expect_new expect_create expect_delete search_restart\n"
    "{entries:08x}  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 {failed:08x} {drop:08x} "
    "{early:08x} 00000000  00000000 00000000 00000000 00000000\n"
    "{entries:08x}  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000010 "
    "00000002 00000000  00000000 00000000 00000000 00000000\n"
)
NEIGHBOURS = (
    "entries  allocs   destroys hash_grows lookups  hits     res_failed rcv_probes_mcast rcv_probes_ucast "
    "periodic_gc_runs forced_gc_runs unresolved_discards table_fulls\n"
    "{entries:08x} 000003a5 00000384 00000003   00005473 0000057e 000000c1   00000000         00000000         "
    "00001332         {forced:08x}       00000000            {fulls:08x}\n"
    "{entries:08x} 000003b7 000003d6 00000001   000050c6 0000069f 000000ef   00000000         00000000         "
    "00000000         00000000       00000000            00000002\n"
)


class Node:
    """A tree as /proc, and a clock that goes on ten seconds a run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.conntrack()
        self.neighbours("arp")
        self.neighbours("ndisc")
        self._clock: Iterator[int] = iter(range(0, 10_000, 10))
        self.check = Check(Settings(proc=str(root)), 1.0, lambda: float(next(self._clock)))

    def file(self, path: str, text: object) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}")

    def conntrack(
        self, entries: int = 812, limit: int = 262144, drop: int = 0, early: int = 0, failed: int = 0
    ) -> None:
        stat = CONNTRACK.format(entries=entries, drop=drop, early=early, failed=failed)
        self.file("net/stat/nf_conntrack", stat)
        self.file("sys/net/netfilter/nf_conntrack_count", f"{entries}\n")
        self.file("sys/net/netfilter/nf_conntrack_max", f"{limit}\n")

    def neighbours(self, name: str, entries: int = 12, limit: int = 1024, fulls: int = 0, forced: int = 0) -> None:
        self.file(f"net/stat/{name}_cache", NEIGHBOURS.format(entries=entries, fulls=fulls, forced=forced))
        self.file(f"sys/net/{'ipv4' if name == 'arp' else 'ipv6'}/neigh/default/gc_thresh3", f"{limit}\n")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


CALM = Finding(CheckState.PASSED, "conntrack 812 of 262144; arp 12 of 1024; ndisc 12 of 1024")


def test_the_first_run_already_says_that_there_is_room(node: Node) -> None:
    assert CALM == node.check()


def test_what_was_turned_away_before_the_first_run_is_no_failure(node: Node) -> None:
    node.conntrack(drop=5000)
    node.neighbours("arp", fulls=5000)
    assert [CALM, CALM] == [node.check(), node.check()]


def test_drops_fail_and_the_next_run_without_any_passes_again(node: Node) -> None:
    found = [node.check()]
    for drop, entries in ((30, 262144), (60, 262144), (60, 812), (60, 812)):
        node.conntrack(entries, drop=drop)
        found.append(node.check())
    full = "conntrack 262144 of 262144, 100 % full, 3/s turned away; arp 12 of 1024; ndisc 12 of 1024"
    dropping = Finding(CheckState.FAILED, full)
    assert [CALM, dropping, dropping, CALM, CALM] == found


def test_drops_while_there_is_room_close_no_node(node: Node) -> None:
    """Any pod can have the kernel drop an answer that belongs to none of the connections that it knows."""
    node.check()
    node.conntrack(drop=5000)
    told = "conntrack 812 of 262144, 500/s dropped with room left; arp 12 of 1024; ndisc 12 of 1024"
    assert Finding(CheckState.WARNED, told) == node.check()


def test_packets_that_lose_a_race_close_no_node(node: Node) -> None:
    """Any pod can send two packets of one new connection at once: the kernel counts the loser as dropped."""
    found = [node.check()]
    for lost in (30, 60):
        node.conntrack(drop=lost, failed=lost)
        found.append(node.check())
    assert [CALM] * 3 == found


@pytest.mark.parametrize("name", ["arp", "ndisc"])
def test_neighbours_that_are_turned_away_fail(node: Node, name: str) -> None:
    found = [node.check()]
    for fulls in (200, 200):
        node.neighbours(name, fulls=fulls)
        found.append(node.check())
    assert (CALM, CheckState.FAILED, CALM) == (found[0], found[1].state, found[2])
    assert f"{name} 12 of 1024, 20/s turned away" in found[1].output


A = Fill("conntrack", 10, 100, refused=50, missed=50, mixed=True)
RACES = replace(A, missed=550, raced=500)
FULL_AND_RACES = replace(A, entries=95, refused=60, missed=149, raced=99)
FULL = "conntrack 95 of 100, 95 % full"
BOTH = "conntrack 10 of 100, 1/s dropped with room left, 50/s pushed out or lost"
VERDICTS = [
    ("nothing has changed", A, 10, "passed", "conntrack 10 of 100"),
    ("79 %", replace(A, entries=79), 10, "passed", "conntrack 79 of 100"),
    ("80 %", replace(A, entries=80), 10, "warned", "conntrack 80 of 100, 80 % full"),
    ("full, nobody refused", replace(A, entries=100), 10, "warned", "conntrack 100 of 100, 100 % full"),
    ("0.9 a second", replace(A, entries=95, refused=59), 10, "warned", f"{FULL}, 0.9/s turned away"),
    ("1 a second", replace(A, entries=95, refused=60), 10, "failed", f"{FULL}, 1/s turned away"),
    ("a drop now and then", replace(A, refused=59), 10, "passed", "conntrack 10 of 100, 0.9/s dropped with room left"),
    ("1 a second, with room", replace(A, refused=60), 10, "warned", "conntrack 10 of 100, 1/s dropped with room left"),
    ("as of neighbours", replace(A, refused=60, mixed=False), 10, "failed", "conntrack 10 of 100, 1/s turned away"),
    ("counters begin anew", replace(A, refused=0, missed=0), 10, "passed", "conntrack 10 of 100"),
    ("a race now and then", replace(A, missed=149), 10, "passed", "conntrack 10 of 100"),
    ("room had to be made", replace(A, missed=150), 10, "warned", "conntrack 10 of 100, 10/s pushed out or lost"),
    ("races, with room", replace(RACES, refused=550), 10, "warned", "conntrack 10 of 100, 50/s pushed out or lost"),
    ("races and others", replace(RACES, refused=560), 10, "warned", BOTH),
    ("races hide no full table", FULL_AND_RACES, 10, "failed", f"{FULL}, 1/s turned away"),
    ("no time has gone by", replace(A, refused=90), 0, "passed", "conntrack 10 of 100"),
    ("0 is no limit for the kernel", replace(A, limit=0), 10, "passed", "conntrack 10, no limit"),
    ("no limit", replace(A, limit=0, refused=90), 10, "warned", "conntrack 10, no limit, 4/s dropped with room left"),
]


@cases("now, seconds, state, output", *VERDICTS)
def test_verdicts(now: Fill, seconds: float, state: str, output: str) -> None:
    assert Finding(CheckState(state), output) == judge(Facts((now,)), Facts((A,)), seconds, Settings())


HOST = "needs the host's network namespace (hostNetwork); or leave {} out of `tables`"


@pytest.mark.parametrize(
    ("forced", "state", "told"),
    [
        pytest.param(0, "passed", "arp 1102 of 1024", id="permanent ones, one for each node, which do not count"),
        pytest.param(1, "warned", "arp 1102 of 1024, 107 % full", id="so many that the kernel has made room"),
    ],
)
def test_neighbours_count_where_the_kernel_counts_them(node: Node, forced: int, state: str, told: str) -> None:
    """As a kernel 6.18 shows a node of a cluster of 1,100 whose CNI makes permanent neighbours of all nodes."""
    node.neighbours("arp", 1102, forced=forced)
    assert Finding(CheckState(state), f"conntrack 812 of 262144; {told}; ndisc 12 of 1024") == node.check()


def test_a_kernel_that_does_not_tell_how_often_it_has_made_room(node: Node) -> None:
    node.file("net/stat/arp_cache", "entries table_fulls\n0000044e 00000000\n")
    assert CheckState.WARNED is node.check().state


LIMIT = "sys/net/ipv6/neigh/default/gc_thresh3"
UNSEEN = [
    ("neighbours", "net/stat/arp_cache", "net/stat/arp_cache is not there: " + HOST.format("arp")),
    ("their limit", LIMIT, f"{LIMIT} is not there: " + HOST.format("ndisc")),
]


@cases("gone, output", *UNSEEN)
def test_a_table_that_is_not_there_is_unknown_and_says_what_it_takes(node: Node, gone: str, output: str) -> None:
    (node.root / gone).unlink()
    found = node.check()
    assert (CheckState.UNKNOWN, True) == (found.state, found.output.endswith(output)), found


@pytest.mark.parametrize("optional", [False, True], ids=["named by an operator", "in a ready-made list"])
def test_a_node_that_is_itself_a_container_fails_no_ready_made_list(node: Node, *, optional: bool) -> None:
    """The kernel shows the neighbours in its first network namespace alone: kind's nodes have none of them."""
    for gone in ("net/stat/arp_cache", "net/stat/ndisc_cache"):
        (node.root / gone).unlink()
    check = Check(Settings(proc=str(node.root), optional=optional), 1.0)
    found = check()
    assert (CheckState.PASSED if optional else CheckState.UNKNOWN) is found.state, found
    (node.root / "sys/net/netfilter/nf_conntrack_max").unlink()
    found = check()
    assert (CheckState.NOT_APPLICABLE if optional else CheckState.UNKNOWN) is found.state, found


def test_a_kernel_without_connection_tracking_has_one_table_less(node: Node) -> None:
    (node.root / "sys/net/netfilter/nf_conntrack_max").unlink()
    found = node.check()
    left_out = "nf_conntrack_max is not there: needs connection tracking in the kernel (nf_conntrack), and "
    assert (CheckState.PASSED, True) == (found.state, left_out in found.output), found


@pytest.mark.parametrize(
    ("entries", "state", "told"),
    [
        pytest.param(812, "passed", "conntrack 812 of 262144, drop counters are not available", id="there is room"),
        pytest.param(
            209716, "warned", "conntrack 209716 of 262144, 80 % full, drop counters are not available", id="80 %"
        ),
        pytest.param(
            262144, "warned", "conntrack 262144 of 262144, 100 % full, drop counters are not available", id="full"
        ),
    ],
)
def test_a_kernel_that_does_not_tell_of_drops_tells_how_full_the_table_is(
    node: Node, entries: int, state: str, told: str
) -> None:
    """Without NF_CONNTRACK_PROCFS, as Ubuntu's."""
    node.conntrack(entries)
    (node.root / "net/stat/nf_conntrack").unlink()
    found = [node.check(), node.check()]
    assert [Finding(CheckState(state), f"{told}; arp 12 of 1024; ndisc 12 of 1024")] * 2 == found


def test_a_kernel_without_ipv6_has_one_table_less(node: Node) -> None:
    shutil.rmtree(node.root / "sys/net/ipv6")
    (node.root / "net/stat/ndisc_cache").unlink()
    found = node.check()
    assert (CheckState.PASSED, True) == (found.state, "; ndisc left out: " in found.output), found


def test_a_kernel_that_has_none_of_the_wanted_tables_is_unknown(node: Node) -> None:
    (node.root / "sys/net/netfilter/nf_conntrack_max").unlink()
    assert CheckState.UNKNOWN is Check(Settings(tables=("conntrack",), proc=str(node.root)), 1.0)().state


@pytest.mark.parametrize(
    "text",
    ["", "entries drop\n0 1\n", "drop early_drop insert_failed\nxyz 1 1\n", "drop early_drop insert_failed\n0 1\n"],
    ids=["nothing", "not the counters", "no numbers", "half a line"],
)
def test_a_table_that_is_none(node: Node, text: str) -> None:
    node.file("net/stat/nf_conntrack", text)
    found = node.check()
    assert (CheckState.UNKNOWN, True) == (found.state, "has no counters of drop, early_drop" in found.output), found


def test_a_limit_that_is_no_number(node: Node) -> None:
    node.file("sys/net/netfilter/nf_conntrack_max", "many")
    found = node.check()
    assert (CheckState.UNKNOWN, True) == (found.state, "holds no number" in found.output)


def test_what_fails_fails_beside_what_is_not_seen(node: Node) -> None:
    (node.root / "net/stat/ndisc_cache").unlink()
    assert CheckState.UNKNOWN is node.check().state
    node.conntrack(262144, drop=500)
    assert CheckState.FAILED is node.check().state


def test_only_the_tables_of_the_settings_are_looked_at(node: Node) -> None:
    (node.root / "net/stat/ndisc_cache").unlink()
    settings = Settings(tables=("arp",), proc=str(node.root))
    assert Finding(CheckState.PASSED, "arp 12 of 1024") == Check(settings, 1.0)()


def test_the_kernel_of_this_machine_is_understood() -> None:
    facts = look(Settings())
    assert len(TABLES) == len(facts.tables) + len(facts.unseen) + len(facts.absent)
    assert [table for table in facts.tables if table.limit <= 0 or not 0 <= table.entries <= 2 * table.limit] == []
    assert [line for line in facts.unseen if "is not there: needs" not in line] == []
