"""Parses kube-scheduler's message about a pod, as the condition PodScheduled has it. Pure.

    0/12 nodes are available: 2 node(s) reported unhealthy, 7 Insufficient nvidia.com/gpu. preemption: 0/12 nodes ...

A node may be counted for several reasons, so the counts may add up to more than the nodes. A plugin that rejects the
pod itself adds a text without a count. Plugins that tried preemption add their text after the reasons.
"""

import re
from typing import NamedTuple

from cli.shared.addresses import is_local_extender
from component.text import one_line
from extender.policy.reasons import REASONS

_LIMIT = 65_536  # characters; anyone who may write a pod's status may write any text
_BEGIN = re.compile(r"0/(\d{1,9}) nodes are available:? ?")
_BETWEEN = re.compile(r", (?=\d{1,9} \S)")
_FAILED = re.compile(r'Post "(https?://[^"\s]{1,200})"|with extender at URL (https?://[^\s,]{1,200})')
_ERROR_PREFIX = "readygate: "  # of each Error of an extender
_COUNTED = re.compile(r"(\d{1,9}) (\S.*)", re.DOTALL)


class Reason(NamedTuple):
    nodes: int
    text: str

    @property
    def is_readygate(self) -> bool:
        return self.text in REASONS


class SchedulerMessage(NamedTuple):
    """A message that begins with a count of nodes."""

    total: int  # nodes of the cluster
    reasons: tuple[Reason, ...]
    whole: str  # the text, if it counts no reasons

    @property
    def refused(self) -> int:
        """How many nodes are counted with a reason of readygate."""
        return sum(reason.nodes for reason in self.reasons if reason.is_readygate)

    @property
    def others(self) -> tuple[Reason, ...]:
        return tuple(reason for reason in self.reasons if not reason.is_readygate)


def parse(message: str) -> SchedulerMessage | None:
    """Parses a message. None for a message of another form."""
    text = message[:_LIMIT]
    begin = _BEGIN.match(text)
    if begin is None:
        return None
    body = text[begin.end() :].partition(" preemption: ")[0].strip()
    *firsts, last = _BETWEEN.split(body)
    # The last reason ends with a full stop. Texts of plugins that tried preemption follow.
    counted = [_COUNTED.fullmatch(part) for part in (*firsts, last.partition(". ")[0].removesuffix("."))]
    found = [Reason(int(one[1]), one[2]) for one in counted if one]
    if len(found) < len(counted):
        return SchedulerMessage(int(begin[1]), (), one_line(body.removesuffix(".")))
    return SchedulerMessage(int(begin[1]), tuple(found), "")


def failed_at(message: str) -> str | None:
    """The URL of an extender that did not answer, "" if the extender is readygate's, None if no call failed.

    kube-scheduler reports only failed calls of extenders that are not ignorable (pkg/scheduler/extender.go,
    schedule_one.go).
    """
    if message.startswith(_ERROR_PREFIX):
        return ""
    found = _FAILED.search(message[:_LIMIT])
    if found is None:
        return None
    url = found[1] or found[2]
    return "" if is_local_extender(url) else url


def short(reason: str) -> str:
    """A reason as it is shown after a number of nodes."""
    return one_line(reason).removeprefix("node(s) ")
