"""The check `kernelLog` and one stall that several processors tell of, as of a virtual machine that was paused."""

import msgspec

from agent.checks.builtin.kernel_log import Known, after, holds
from agent.kernel.kmsg import records_in
from tools.fakes.kmsg import line
from tools.kit.cases import cases

RCU = [
    "rcu: INFO: rcu_sched self-detected stall on CPU",
    "rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 1-...D }",
]


def lockup(cpu: int) -> str:
    return f"watchdog: BUG: soft lockup - CPU#{cpu} stuck for 47s! [swapper/{cpu}:0]"


def told(known: Known, *lines: tuple[float, str]) -> Known:
    first = known.sequence + 1
    block = "".join(line(first + place, at_s, text) for place, (at_s, text) in enumerate(lines))
    return after(known, records_in(block.encode()))


def holding(known: Known, monotonic: float) -> list[str]:
    return [key[0] for key, trouble in known.troubles if holds(key, trouble, monotonic)]


STALLS = [
    ("a machine that was paused: each processor once", [(0.0, lockup(cpu)) for cpu in range(64)], []),
    ("a processor that goes on some seconds later", [(0.0, lockup(0)), (9.9, lockup(1))], []),
    ("another stall, of another one", [(0.0, lockup(0)), (10.0, lockup(1))], ["softLockup"]),
    (
        "processors one after another are no chain",
        [(0.0, lockup(0)), (7.0, lockup(1)), (14.0, lockup(2))],
        ["softLockup"],
    ),
    ("one processor, twice: it is stuck", [(0.0, lockup(0)), (3.0, lockup(0))], ["softLockup"]),
    ("two that stay stuck", [(0.0, lockup(0)), (0.0, lockup(1)), (24.0, lockup(1)), (24.0, lockup(0))], ["softLockup"]),
    ("RCU, told of one pause in two ways", [(0.0, RCU[0]), (0.5, RCU[1])], []),
    ("RCU, as each processor of an old kernel tells it", [(0.0, RCU[0]), (0.0, RCU[0])], []),
    ("RCU, that stays stuck", [(0.0, RCU[0]), (63.0, RCU[0])], ["rcuStall"]),
]


@cases("lines, expected", *STALLS)
def test_what_several_processors_tell_of_one_stall_counts_once(
    lines: list[tuple[float, str]], expected: list[str]
) -> None:
    assert expected == holding(told(Known("5f1b"), *lines), lines[-1][0])


def test_a_restart_amid_the_lines_of_one_stall_makes_no_two_of_it() -> None:
    before = told(Known("5f1b"), (0.0, lockup(0)), (0.1, lockup(1)))
    kept = msgspec.json.decode(msgspec.json.encode(before), type=Known)
    assert ([], ["softLockup"]) == (
        holding(told(kept, (0.2, lockup(2))), 1.0),
        holding(told(kept, (0.2, lockup(1))), 1.0),
    )


def test_all_lines_of_a_stall_are_told() -> None:
    found = told(Known("5f1b"), *[(0.0, lockup(cpu)) for cpu in range(4)])
    assert [4] == [trouble.lines for _, trouble in found.troubles]
