"""After which tasks `make test-kills` kills Ansible: none that may leave something behind is left out."""

import pytest

from tests.hosts.deployment.moments import Ended, between, drawn, telling, written
from tests.playbooks.rendering import all_tasks

LOOK, CHANGE, SAY = "readygate_scheduler_look", "readygate_scheduler_change", "ansible.builtin.debug"
TEXT = f"""\
same ansible.builtin.include_role Begin
same {LOOK} Look
same {LOOK} Look
skipped readygate_scheduler_render Render
changed {CHANGE} Change | It
same {LOOK} Look
changed {CHANGE} Change | It
skipped ansible.builtin.command Register
changed ansible.builtin.file Clear
same ansible.builtin.file Clear
same ansible.builtin.command Ask
same {SAY} Say
"""
BETWEEN = [1, 3, 4, 5, 6, 7, 8, 10, 11]


def test_what_a_run_has_written_down_is_read_with_what_came_of_it():
    assert Ended("changed", CHANGE, "Change | It") == written(TEXT)[4]


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        pytest.param(1, BETWEEN, id="after a task of two hosts when both have done it, never after the last"),
        pytest.param(4, BETWEEN[2:], id="not before the play has begun"),
    ],
)
def test_moments_are_between_two_tasks(begun, expected):
    assert expected == between(written(TEXT), begun)


def test_those_that_tell_something_are_after_each_change_and_after_the_first_task_that_may_have_changed_something():
    assert [3, 5, 7, 10, 11] == telling(written(TEXT), BETWEEN)


@pytest.mark.parametrize(
    ("always", "expected"),
    [
        pytest.param([5], [2, 5], id="one of the others by chance"),
        pytest.param([2, 3, 5], [2, 3, 5], id="all there are"),
    ],
)
def test_to_those_that_are_always_there_comes_one_by_chance(always, expected):
    assert expected == drawn([2, 3, 5], always, min)


@pytest.fixture(scope="module")
def uris():
    return [task["ansible.builtin.uri"] for task in all_tasks() if "ansible.builtin.uri" in task]


@pytest.fixture(scope="module")
def waits():
    """The module waits by ansible.builtin.uri, and past any proxy unless a task sets one (test_closures)."""
    return [task["readygate_answer"] for task in all_tasks() if "readygate_answer" in task]


def test_no_role_asks_by_another_method_than_get_so_what_asks_touches_nothing(uris, waits):
    assert (len(uris) > 0, len(waits) > 1) == (True, True)
    assert [] == [uri["url"] for uri in [*uris, *waits] if uri.get("method", "GET") != "GET"]


def test_no_role_asks_its_own_host_by_a_proxy_which_is_not_the_way_that_the_scheduler_takes(uris, waits):
    assert [] == [uri["url"] for uri in uris if uri.get("use_proxy") is not False]
    assert [] == [wait["url"] for wait in waits if "use_proxy" in wait]
