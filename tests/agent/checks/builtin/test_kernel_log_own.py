"""The check `kernelLog` with classes of the settings: what they count, what ends them, and what is wrong in them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import settings as agent_settings
from agent.checks.builtin import kernel_log
from agent.checks.builtin.kernel_log import Check, Settings
from agent.checks.own_classes import POSITIONS_LIMIT
from agent.checks.state import CheckState, Finding
from component.settings import SettingsError, convert
from tests.agent.checks.builtin.test_kernel_log import WELL, Node
from tools.fakes.kmsg import line
from tools.kit.cases import cases

RESET = "mlx5_core 0000:3b:00.0: health poll: device's health compromised"
HEALTH = {"class": "nicHealth", "line": r"mlx5_core (?P<device>\S+): .*health compromised", "severity": "gate"}
DISK = {
    "class": "slowDisk",
    "line": r"(?P<device>sd[a-z]+|dm-\d+): command timeout",
    "scope": "device",
    "severity": "gate",
    "count": 2,
    "windowSeconds": 10,
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    os.close(made.writer)


def own(node: Node, *patterns: dict[str, Any], **more: object) -> Check:
    return node.check(patterns=convert({"patterns": list(patterns)}, Settings).patterns, **more)


def test_a_line_fails_and_names_its_thing_until_its_time_is_over(node: Node) -> None:
    check = own(node, HEALTH)
    node.say(RESET)
    assert Finding(CheckState.FAILED, "nicHealth 0000:3b:00.0: 1 lines, the last 0 s ago") == check()
    node.now_s += 600
    assert WELL == check()


@cases(
    "severity, state, output",
    ("of severity gate", "gate", CheckState.FAILED, "nicHealth 0000:3b:00.0: 1 lines, the last 0 s ago"),
    ("of severity warn", "warn", CheckState.WARNED, "nicHealth 0000:3b:00.0: 1 lines, the last 0 s ago"),
    (
        "of severity note",
        "note",
        CheckState.PASSED,
        "nothing that still holds; nicHealth 0000:3b:00.0: 1 lines, the last 0 s ago",
    ),
)
def test_a_class(node: Node, severity: str, state: CheckState, output: str) -> None:
    check = own(node, HEALTH | {"severity": severity})
    node.say(RESET)
    assert Finding(state, output) == check()


def test_a_class_without_a_severity_only_warns() -> None:
    (pattern,) = convert({"patterns": [{"class": "x", "line": "y"}]}, Settings).patterns
    assert ("warn", "node", 1, 600) == (pattern.severity, pattern.scope, pattern.count, pattern.lasts_seconds)


@cases(
    "device, state, below",
    ("that the kubelet's folder is on", "dm-0", "failed", "/var/lib/kubelet"),
    ("that nothing is mounted from", "sdc", "passed", ""),
)
def test_a_class_of_devices_counts_by_what_is_mounted_from_one(node: Node, device: str, state: str, below: str) -> None:
    check = own(node, DISK)
    node.say(f"{device}: command timeout")
    assert WELL == check()
    node.say(f"{device}: command timeout")
    words = f"slowDisk {device}: 2 lines, the last 0 s ago, below {below}" if below else WELL.output
    assert Finding(CheckState(state), words) == check()


def test_lines_that_are_too_far_apart_do_not_count(node: Node) -> None:
    check = own(node, DISK)
    node.say("dm-0: command timeout")
    check()
    node.now_s += 11
    node.say("dm-0: command timeout")
    assert WELL == check()


@cases(
    "pattern, text, facility, expected",
    ("by its line", {"endLine": r"mlx5_core (?P<device>\S+): recovered"}, "mlx5_core 0000:3b:00.0: recovered", 0, True),
    (
        "by that of another thing",
        {"endLine": r"mlx5_core (?P<device>\S+): recovered"},
        "mlx5_core 0000:af:00.0: recovered",
        0,
        False,
    ),
    ("by one that names nothing", {"endLine": "mlx5_core: all recovered"}, "mlx5_core: all recovered", 0, True),
    ("by root's command", {}, "readygate: over nicHealth", 1, True),
    ("by root's command, of that thing", {}, "readygate: over nicHealth 0000:3b:00.0", 1, True),
    ("by root's command, of another class", {}, "readygate: over gpuXid", 1, False),
)
def test_it_ends(node: Node, pattern: dict[str, Any], text: str, facility: int, expected: bool) -> None:
    """eks-node-monitoring-agent#215: a condition of one line that nothing ended."""
    check = own(node, HEALTH | {"lastsSeconds": None} | pattern)
    node.say(RESET)
    assert CheckState.FAILED is check().state
    node.now_s += 10**7
    node.say(text, facility=facility)
    assert (CheckState.PASSED if expected else CheckState.FAILED) is check().state


@cases(
    "more, pattern",
    ("of one pattern", {}, {"exclude": [r"mlx5_core 0000:3b:"]}),
    ("of all classes", {"exclude": (r"mlx5_core 0000:3b:",)}, {}),
)
def test_what_is_excluded_does_not_count(node: Node, more: dict[str, Any], pattern: dict[str, Any]) -> None:
    """eks-node-monitoring-agent#155, #202: devices that are to be left out, by their names."""
    check = own(node, HEALTH | pattern, **more)
    node.say(RESET)
    assert WELL == check()
    node.say(RESET.replace("3b", "af"))
    assert CheckState.FAILED is check().state


def test_a_line_of_a_ready_made_class_can_be_excluded(node: Node) -> None:
    check = node.check(exclude=(r"XFS \(sdb\): ",))
    node.say("XFS (sdb): Filesystem has been shut down due to log error (0x2).")
    assert WELL == check()
    node.say("XFS (dm-0): Filesystem has been shut down due to log error (0x2).")
    assert CheckState.FAILED is check().state


@cases(
    "text",
    ("the name of a process", "mlx5_core a[7]: segfault at 0 ip 0: health compromised"),
    ("a program's own line", "<1>" + RESET),
)
def test_what_a_pod_may_have_said_does_not_count(node: Node, text: str) -> None:
    check = own(node, HEALTH | {"line": ".*health compromised"})
    node.say(text.removeprefix("<1>"), facility=1 if text.startswith("<1>") else 0)
    assert WELL == check()


def test_a_restart_keeps_what_still_holds(node: Node) -> None:
    check = own(node, HEALTH)
    node.say(RESET)
    check()
    node.now_s += 60
    assert Finding(CheckState.FAILED, "nicHealth 0000:3b:00.0: 1 lines, the last 60 s ago") == own(node, HEALTH)()


@cases(
    "patterns",
    ("that is mended", [HEALTH | {"line": "something else"}]),
    ("that is gone", []),
)
def test_a_pattern_takes_its_troubles_with_it(node: Node, patterns: list[dict[str, Any]]) -> None:
    """Else a false alarm that is to last until the next boot does so, whatever is done to its pattern."""
    check = own(node, HEALTH)
    node.say(RESET)
    node.say("watchdog: BUG: soft lockup - CPU#3 stuck for 26s!", 2)
    check()
    assert Finding(CheckState.FAILED, "softLockup: 2 lines, the last 0 s ago") == own(node, *patterns)()


def test_an_expression_that_would_take_for_ever_stalls_nothing(node: Node) -> None:
    """Python's `re` would need longer than the world is old for this line."""
    check = own(node, HEALTH | {"line": "(?:(?:a+)+)+b"}, exclude=(r"(?:a|a)*c",))
    node.say("a" * 800, 3)
    node.say("a" * 700 + "b")
    assert Finding(CheckState.FAILED, "nicHealth: 1 lines, the last 0 s ago") == check()


def test_lines_that_take_long_are_read_on_in_the_next_run(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a run is looked at before each record, of which each read gives one."""
    check = own(node, HEALTH)
    check()
    records = iter([line(n, node.now_s, RESET).encode() for n in range(4)])

    def read(_log: int, _most: int) -> bytes:
        node.now_s += 0.4
        if (record := next(records, None)) is None:
            raise BlockingIOError
        return record

    monkeypatch.setattr(kernel_log.os, "read", read)
    check()
    first = check._known.sequence
    check()
    assert (2, 3) == (first, check._known.sequence)


ONCE = "allowed: one repetition; a group in () to repeat it"
DEVICE = r"allowed: an expression with the group device, as error, dev (?P<device>[\w!.-]+)"
NAME = "allowed: a name of its own; gate, warn and note are for the classes that there are"
COUNTED = "with repetitions written out"
KEYS = "class, line, severity, scope, count, windowSeconds, lastsSeconds, endLine, exclude"


@cases(
    "patterns, rule",
    (
        "an expression",
        [{"class": "x", "line": "a(b"}],
        r"patterns[0].line: at character 2: a ( without its ), allowed: \( for the character",
    ),
    (
        "an end",
        [{"class": "x", "line": "a", "endLine": "*"}],
        r"patterns[0].endLine: at character 1: nothing to repeat, allowed: \* for the character",
    ),
    (
        "an exclusion",
        [{"class": "x", "line": "a", "exclude": ["a", "b**"]}],
        "patterns[0].exclude[1]: at character 3: a second repetition, or a lazy one, " + ONCE,
    ),
    (
        "a device without a name",
        [{"class": "x", "line": "a", "scope": "device"}],
        "patterns[0].line: names no device, but scope: device takes one, " + DEVICE,
    ),
    (
        "a class of readygate's",
        [{"class": "gpuXid", "line": "a"}],
        "patterns[0].class: gpuXid is a class of readygate's, " + NAME,
    ),
    (
        "a class twice",
        [{"class": "x", "line": "a"}, {"class": "x", "line": "b"}],
        "patterns: the class x is there twice, allowed: one pattern a class, with | inside",
    ),
    (
        "too much together",
        [{"class": f"x{n}", "line": "a{100}"} for n in range(6)],
        f"patterns: all expressions together have 600 characters and classes, allowed: {POSITIONS_LIMIT}, {COUNTED}",
    ),
    (
        "a key that there is not",
        [{"class": "x", "regex": "a"}],
        f"patterns[0].regex: unknown key, allowed: {KEYS}",
    ),
)
def test_what_is_wrong_is_named_with_its_key_and_a_remedy(patterns: list[dict[str, Any]], rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        convert({"patterns": patterns}, Settings)
    assert rule == str(caught.value)


def test_what_is_wrong_in_the_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(
        "mode: pod\nchecks:\n- name: cni\n  cni: {}\n- name: log\n  kernelLog:\n    patterns:\n"
        "    - class: x\n      line: y\n    - class: z\n      line: 'a(b'\n"
    )
    with pytest.raises(SettingsError) as caught:
        agent_settings.load(file, {})
    key = "checks[1].kernelLog.patterns[1].line"
    assert rf"{file}: line 11: {key}: at character 2: a ( without its ), allowed: \( for the character" == str(
        caught.value
    )
