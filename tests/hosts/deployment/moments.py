"""After which of its tasks Ansible is killed, of those that a whole run has written down (callback_plugins/kill_after).
Pure.

To be killed after a task that leaves hosts and cluster as they were is to be killed after the one before it.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from typing import NamedTuple

CHANGED, SKIPPED = "changed", "skipped"
# What other modules do they need not call a change: ours take and let go of a lock, make a pod and delete it again.
TOUCH_NOTHING = {
    "ansible.builtin.assert",
    "ansible.builtin.debug",
    "ansible.builtin.group_by",
    "ansible.builtin.include_role",
    "ansible.builtin.include_tasks",
    "ansible.builtin.set_fact",
    "ansible.builtin.uri",  # the roles ask by GET alone
    "ansible.builtin.validate_argument_spec",
    "readygate_answer",  # the same
    "readygate_scheduler_controls",
    "readygate_scheduler_render",  # a dry run of kubeadm's, in a folder that is gone when it ends
    "readygate_scheduler_who",
}


class Ended(NamedTuple):
    """One task of one host; what: `changed`, `same` or `skipped`."""

    what: str
    module: str
    name: str


def written(text: str) -> list[Ended]:
    return [Ended(*line.split(" ", 2)) for line in text.splitlines()]


def telling(tasks: Sequence[Ended], every: Sequence[int]) -> list[int]:
    """Of these moments: after each task that has changed something, and after the first of a name that may have."""
    told, seen = [], set()
    for number in every:
        _, of_hosts = next(groupby(reversed(tasks[:number]), key=lambda one: (one.module, one.name)))
        (module, name), what = tasks[number - 1][1:], {one.what for one in of_hosts}
        may = what != {SKIPPED} and module not in TOUCH_NOTHING
        if CHANGED in what or (may and name not in seen):
            told.append(number)
            seen.add(name)
    return told


def between(tasks: Sequence[Ended], begun: int) -> list[int]:
    """After how many tasks it can be killed, from so many on and before the last; where one is the same on several
    hosts at once, when the last of them has done it."""
    return [number for number in range(begun, len(tasks)) if tasks[number - 1].name != tasks[number].name]


def drawn(every: Sequence[int], always: Collection[int], choice: Callable[[Sequence[int]], int]) -> list[int]:
    """Those of `always`, and one of the others by chance."""
    others = [number for number in every if number not in always]
    return sorted({*always, *([choice(others)] if others else [])})
