"""The check `kernelLog` where the kernel says that a table of its network is full, as people have reported it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent.checks.builtin.kernel_log import Check, Settings
from agent.checks.state import CheckState, Finding
from tools.fakes.kmsg import line
from tools.kit.cases import cases

FULL = "nf_conntrack: table full, dropping packet"
ARP, NDISC = (f"neighbour: {name}_cache: neighbor table overflow!" for name in ("arp", "ndisc"))
WELL = Finding(CheckState.PASSED, "nothing that still holds")


class Host:
    """A log that is a pipe, a /proc, and a clock."""

    def __init__(self, root: Path) -> None:
        self.proc, self.now_s, self.sequence = root / "proc", 1000.0, 0
        for process in ("1", "self"):
            (self.proc / process / "net").mkdir(parents=True)
        (self.proc / "1/net/dev").touch()
        (self.proc / "self/net/dev").hardlink_to(self.proc / "1/net/dev")
        (self.proc / "1/mountinfo").write_text("")
        (self.proc / "boot_id").write_text("5f1b\n")
        os.mkfifo(root / "kmsg")
        self.writer = os.open(root / "kmsg", os.O_RDWR | os.O_NONBLOCK)
        files = {"mountinfo": str(self.proc / "1/mountinfo"), "boot_id": str(self.proc / "boot_id")}
        self.check = Check(Settings(path=str(root / "kmsg"), sys=str(root), **files), 2.0, lambda: self.now_s)

    def connections(self, entries: int, limit: int = 262144) -> None:
        folder = self.proc / "sys/net/netfilter"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "nf_conntrack_count").write_text(f"{entries}\n")
        (folder / "nf_conntrack_max").write_text(f"{limit}\n")

    def say(self, text: str, ago_s: Sequence[float]) -> None:
        for each in ago_s:
            os.write(self.writer, line(self.sequence, self.now_s - each, text).encode())
            self.sequence += 1


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    os.close(made.writer)


CONTINUOUS = [13.3, 13.3, 11.5, 11.4, 9.6, 9.6, 7.8, 7.7, 6.5, 6.4, 5.0, 5.0, 3.6, 3.6]
BURSTS = [10.9] * 10 + [5.8] * 10 + [0.7] * 10


@cases(
    "text, ago_s, expected",
    ("Azure/ARO-HCP#6190: every five seconds", FULL, range(45, -1, -5), "conntrackFull: 10 lines, the last 0 s"),
    ("kubernetes/kubernetes#18604: all the time", FULL, CONTINUOUS, "conntrackFull: 14 lines, the last 4 s"),
    ("kubernetes/kubernetes#71261: in bursts", FULL, BURSTS, "conntrackFull: 30 lines, the last 1 s"),
    ("coolsnowwolf/lede#6427: ARP", ARP, BURSTS, "neighbourOverflow arp: 30 lines, the last 1 s"),
    ("e2b-dev/infra#3508: IPv6", NDISC, BURSTS, "neighbourOverflow ndisc: 30 lines, the last 1 s"),
    ("Requiem4Eternity/Appstream#102: ARP", ARP, [4, 3, 2, 1, 0], "neighbourOverflow arp: 5 lines, the last 0 s"),
)
def test_a_kernel_that_goes_on_dropping_closes_the_node(
    host: Host, text: str, ago_s: list[float], expected: str
) -> None:
    """Also without any counters."""
    host.say(text, ago_s)
    assert Finding(CheckState.FAILED, f"{expected} ago") == host.check()


@cases(
    "text, ago_s",
    ("kubernetes-retired/kube-aws#476: now and then", FULL, [391.7, 358.2, 135.9, 0.2]),
    ("one burst: a moment of one client", FULL, [0.5] * 10),
    ("two bursts", ARP, [5.5] * 10 + [0.5] * 10),
    ("over for a minute", FULL, [80, 75, 70, 65, 60]),
)
def test_what_is_dropped_now_and_then_closes_no_node(host: Host, text: str, ago_s: list[float]) -> None:
    host.say(text, ago_s)
    assert WELL == host.check()


def test_a_table_that_has_room_again_is_well_a_minute_after_the_last_line(host: Host) -> None:
    host.say(FULL, [8, 5, 2])
    assert CheckState.FAILED is host.check().state
    host.now_s += 57.9
    assert CheckState.FAILED is host.check().state
    host.now_s += 0.1
    assert WELL == host.check()


FAILED = Finding(CheckState.FAILED, "conntrackFull: 3 lines, the last 2 s ago")
WARNED = Finding(CheckState.WARNED, f"{FAILED.output}, but the host's table has room")


@cases(
    "entries, limit, expected",
    ("the host's table is full", 262144, 262144, FAILED),
    ("nearly", 249037, 262144, FAILED),
    ("it has room: a pod's own table may be meant", 249036, 262144, WARNED),
    ("it has no limit any more", 262144, 0, WARNED),
)
def test_an_older_kernel_says_the_same_of_a_pods_own_table(
    host: Host, entries: int, limit: int, expected: Finding
) -> None:
    host.connections(entries, limit)
    host.say(FULL, [8, 5, 2])
    assert expected == host.check()


def test_the_table_of_another_network_namespace_says_nothing(host: Host) -> None:
    (host.proc / "self/net/dev").unlink()
    (host.proc / "self/net/dev").touch()
    host.connections(12)
    host.say(FULL, [8, 5, 2])
    assert FAILED == host.check()


def test_all_pods_share_the_tables_of_neighbours(host: Host) -> None:
    host.connections(12)
    host.say(ARP, [8, 5, 2])
    assert CheckState.FAILED is host.check().state
