"""What kube-scheduler says of a pod in its condition PodScheduled, read with care. Pure.

    0/12 nodes are available: 2 node(s) reported unhealthy, 7 Insufficient nvidia.com/gpu. preemption: 0/12 nodes ...

A node may be counted for several reasons, so their sum may exceed the nodes; a plugin that has looked at the pod alone
says so without a number, and one that tried to make room does behind the reasons.
"""

import re
from typing import NamedTuple

from cli.shared.addresses import is_local_extender
from component.text import one_line
from extender.policy.reasons import REASONS

_LIMIT = 65_536  # characters; whoever may write a pod's status may write anything
_BEGIN = re.compile(r"0/(\d{1,9}) nodes are available:? ?")
_BETWEEN = re.compile(r", (?=\d{1,9} \S)")
_FAILED = re.compile(r'Post "(https?://[^"\s]{1,200})"|with extender at URL (https?://[^\s,]{1,200})')
_OURS = "readygate: "  # so each Error of an extender begins
_COUNTED = re.compile(r"(\d{1,9}) (\S.*)", re.DOTALL)


class Reason(NamedTuple):
    nodes: int
    text: str

    @property
    def is_ours(self) -> bool:
        return self.text in REASONS


class Said(NamedTuple):
    """total: nodes of the cluster. reasons: counted. whole: what stands instead where nothing is counted."""

    total: int
    reasons: tuple[Reason, ...]
    whole: str

    @property
    def ours(self) -> int:
        return sum(reason.nodes for reason in self.reasons if reason.is_ours)

    @property
    def others(self) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.reasons if not reason.is_ours)


def read(message: str) -> Said | None:
    """None for what is no such message."""
    text = message[:_LIMIT]
    begin = _BEGIN.match(text)
    if begin is None:
        return None
    body = text[begin.end() :].partition(" preemption: ")[0].strip()
    *firsts, last = _BETWEEN.split(body)
    # What plugins have tried afterwards follows the last reason and its dot.
    counted = [_COUNTED.fullmatch(part) for part in (*firsts, last.partition(". ")[0].removesuffix("."))]
    found = [Reason(int(one[1]), one[2]) for one in counted if one]
    if len(found) < len(counted):
        return Said(int(begin[1]), (), one_line(body.removesuffix(".")))
    return Said(int(begin[1]), tuple(found), "")


def failed_at(message: str) -> str | None:
    """The URL of an extender whose call has failed, "" where it is ours in any case; None: the message tells of no such
    call. kube-scheduler says so of one that is not ignorable only (pkg/scheduler/extender.go, schedule_one.go)."""
    if message.startswith(_OURS):
        return ""
    found = _FAILED.search(message[:_LIMIT])
    if found is None:
        return None
    url = found[1] or found[2]
    return "" if is_local_extender(url) else url


def short(reason: str) -> str:
    """As it is said beside a number of nodes."""
    return one_line(reason).removeprefix("node(s) ")
