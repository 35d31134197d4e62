"""Which kernel lines become the Event SystemOOM, and the thread that reads them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.kubelet.events.event import Event
from agent.kubelet.node import oom_watcher
from agent.kubelet.node.oom import Kills, event_of
from agent.kubelet.node.oom_watcher import OPEN_AGAIN_S, OomWatcher
from tools.fakes.kmsg import line
from tools.kit.cases import cases

STARTS = "hog invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0"
KILLED = "Out of memory: Killed process 1532 (hog) total-vm:1641388kB, anon-rss:1595164kB, file-rss:76kB, UID:0"
KILLED_BEFORE_LINUX_5 = "Killed process 1532 (hog) total-vm:1641388kB, anon-rss:1595164kB, file-rss:76kB"
GLOBAL = (
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=kubelet,mems_allowed=0,global_oom,"
    "task_memcg=/kubepods/burstable/pod1/c1,task=hog,pid=1532,uid=0"
)
OF_A_POD = (
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,oom_memcg={group},"
    "task_memcg=/kubepods/burstable/pod1/c1,task=hog,pid={pid},uid=0"
)
OTHERS = ["hog cpuset=/ mems_allowed=0", "CPU: 0 PID: 1532 Comm: hog Not tainted", "Mem-Info:", "1403 pages reserved"]
MESSAGE = "System OOM encountered, victim process: hog, pid: 1532"


def kill_of(group: str, pid: str = "1532") -> str:
    return OF_A_POD.format(group=group, pid=pid)


@cases(
    "lines, expected",
    ("OM1 the machine is out of memory", [STARTS, *OTHERS, GLOBAL, KILLED], [MESSAGE]),
    ("OM1 in the words of Linux 3 and 4", [STARTS, *OTHERS, KILLED_BEFORE_LINUX_5], [MESSAGE]),
    ("OM2 the group of a pod is at its limit", [STARTS, *OTHERS, kill_of("/kubepods/burstable/pod1"), KILLED], []),
    (
        "OM2 in the words of Linux 4",
        [STARTS, "Task in /c1 killed as a result of limit of /c1", KILLED],
        [],
    ),
    ("OM3 the root group is the machine", [STARTS, kill_of("/"), KILLED], [MESSAGE]),
    ("OM3 in the words of Linux 4", [STARTS, "Task in /a killed as a result of limit of /", KILLED], [MESSAGE]),
    ("OM3 however it is written", [STARTS, "Task in /a killed as a result of limit of //../", KILLED], [MESSAGE]),
    ("OM4 two kills are two Events", [STARTS, GLOBAL, KILLED, STARTS, GLOBAL, KILLED], [MESSAGE, MESSAGE]),
    (
        "OM4 a pod's kill between them is none",
        [STARTS, KILLED, STARTS, kill_of("/p"), STARTS, KILLED],
        [MESSAGE, MESSAGE],
    ),
    ("OM5 lines without a start", [GLOBAL, KILLED], []),
    ("OM5 a start without an end", [STARTS, *OTHERS], []),
    ("OM5 a second start before the end", [STARTS, STARTS, KILLED], [MESSAGE]),
    ("OM5 a pid that is no number leaves the kill open", [STARTS, kill_of("/p", "x"), KILLED], []),
    ("OM5 a pid beyond Go's numbers", [STARTS, f"Killed process {2**63} (hog)", KILLED], [MESSAGE]),
    ("OM5 a pid of 0 is not shown", [STARTS, "Killed process 0 (hog)"], ["System OOM encountered"]),
    (
        "OM5 a name with brackets",
        [STARTS, "Killed process 7 ((sd-pam)) total-vm:4kB (x)"],
        ["System OOM encountered, victim process: (sd-pam)) total-vm:4kB (x, pid: 7"],
    ),
)
def test_lines_become_events(lines: list[str], expected: list[str]) -> None:
    kills = Kills()
    ended = [kill for text in lines if (kill := kills.take(text)) is not None]
    assert expected == [event.message for kill in ended if (event := event_of(kill, "node-1")) is not None]


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def watcher(tmp_path: Path, events: list[Event]) -> Iterator[OomWatcher]:
    made = OomWatcher("node-1", events.append, str(tmp_path / "kmsg"))
    yield made
    made._close()


def write(folder: Path, *lines: str) -> None:
    with (folder / "kmsg").open("a") as log:
        log.writelines(line(number, 1.0, text) for number, text in enumerate(lines))


def test_om1_an_event_is_a_warning_of_the_node(watcher: OomWatcher, events: list[Event], tmp_path: Path) -> None:
    write(tmp_path)
    assert 0.0 == watcher.turn()
    write(tmp_path, STARTS, *OTHERS, GLOBAL)
    watcher.turn()
    write(tmp_path, KILLED)
    watcher.turn()
    told = [(e.about.kind, e.about.name, e.type, e.reason, e.message) for e in events]
    assert [("Node", "node-1", "Warning", "SystemOOM", MESSAGE)] == told


def test_om6_what_the_log_held_before_the_start_is_left_out(
    watcher: OomWatcher, events: list[Event], tmp_path: Path
) -> None:
    write(tmp_path, STARTS, KILLED)
    watcher.turn()
    assert [] == events
    write(tmp_path, STARTS, KILLED)
    watcher.turn()
    assert [MESSAGE] == [event.message for event in events]


def test_om7_a_log_that_cannot_be_read_is_reported_once_and_tried_again(
    watcher: OomWatcher, events: list[Event], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert [OPEN_AGAIN_S] * 2 == [watcher.turn(), watcher.turn()]
    assert ["no SystemOOM Events: the kernel log cannot be read"] == [record.message for record in caplog.records]
    write(tmp_path)
    watcher.turn()
    write(tmp_path, STARTS, KILLED)
    watcher.turn()
    assert 1 == len(events)


def test_a_record_that_was_overwritten_is_skipped(
    watcher: OomWatcher, events: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path)
    watcher.turn()
    write(tmp_path, STARTS, KILLED)
    read, failures = os.read, [BrokenPipeError()]

    def once(descriptor: int, most: int) -> bytes:
        if failures:
            raise failures.pop()
        return read(descriptor, most)

    monkeypatch.setattr("agent.kubelet.node.oom_watcher.os.read", once)
    watcher.turn()
    assert 1 == len(events)


def test_only_mode_kubelet_reads_the_log_for_events() -> None:
    """A kubelet next to the agent writes these Events itself."""
    agent = Path(oom_watcher.__file__).parents[2]
    named = {str(path.relative_to(agent)) for path in agent.rglob("*.py") if "OomWatcher" in path.read_text()}
    assert {"kubelet/node/oom_watcher.py", "modes/kubelet.py"} == named


def test_the_thread_ends_while_it_waits(events: list[Event], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kmsg")
    writer = os.open(tmp_path / "kmsg", os.O_RDWR)
    watcher = OomWatcher("node-1", events.append, str(tmp_path / "kmsg"))
    watcher.start()
    watcher.stop()
    assert not watcher.healthy(0.0)
    os.close(writer)
