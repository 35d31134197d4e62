"""The next scheduler does not wait for a Lease whose holder has ended, and nobody else's is touched."""

import os
import time

import pytest
from readygate_scheduler import lease
from readygate_scheduler.scheduler import Scheduler

from tests.playbooks.host.world import LEASE, OLD_COMMAND, RecordingIO, manifest

OURS = os.uname().nodename + "_8a52b2f6-06a9-4c0e-b26e-f2d3f49f54ff"
NEXT = os.uname().nodename + "_1f0c2b6e-8a55-43a7-9f0a-6d0c7c2b9d11"
OTHER = "another-host_0c3a9b62-64e0-4d6f-8d0b-2a8f0d8f4e11"
LONGER = os.uname().nodename + "_too_0c3a9b62-64e0-4d6f-8d0b-2a8f0d8f4e11"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(lease, "EVERY_S", 0.0)


@pytest.fixture
def leading(world):
    """Its scheduler leads."""
    world.leads, world.holder = True, OURS
    return world


def asked(world):
    """Of LEASE, in order."""
    names = {tuple(argv): name for name, argv in LEASE.items()}
    return [names[tuple(argv[:5])] for argv in world.calls if tuple(argv[:5]) in names]


class Asked(RecordingIO):
    """The next scheduler is started as soon as somebody has asked so often."""

    def __init__(self, world, times):
        super().__init__(world)
        self._times = times
        world.slow_s = 60.0

    def run(self, argv, limit_s=30.0, binary=None):
        said = super().run(argv, limit_s, binary)
        if len(asked(self._world)) >= self._times:
            self._world.looks.set()
        return said


class Then(RecordingIO):
    """What the Lease says once the new manifest is in place."""

    def __init__(self, world, holder):
        super().__init__(world)
        self._holder = holder

    def rename(self, old, new):
        super().rename(old, new)
        if new == str(self._world.target):
            self._world.holder = self._holder


def test_a_scheduler_that_has_ended_without_giving_up_its_lease_has_it_no_more(leading):
    verdict = leading.change().apply(leading.job(lease=LEASE))
    assert ("confirmed", "for it", "") == (verdict["outcome"], verdict["lease"], leading.holder)
    assert ["leads", "read", "read", "change"] == asked(leading)


@pytest.mark.parametrize(
    "holder",
    [
        pytest.param("", id="it gave it up itself"),
        pytest.param(NEXT, id="the new one has it already"),
        pytest.param(OTHER, id="another host has it by now"),
    ],
)
def test_a_lease_that_names_it_no_more_is_left_as_it_is(leading, holder):
    verdict = leading.change(Then(leading, holder)).apply(leading.job(lease=LEASE))
    assert ("confirmed", "by itself", holder) == (verdict["outcome"], verdict["lease"], leading.holder)
    assert ["leads", "read", "read"] == asked(leading)


def test_one_that_changes_between_look_and_change_is_too(leading):
    class Racing(Asked):
        def run(self, argv, limit_s=30.0, binary=None):
            if "patch" in argv:
                leading.holder = NEXT
            return super().run(argv, limit_s, binary)

    verdict = leading.change(Racing(leading, 5)).apply(leading.job(lease=LEASE))
    assert ("confirmed", "by itself", NEXT) == (verdict["outcome"], verdict["lease"], leading.holder)


@pytest.mark.parametrize(
    ("leads", "holder", "expected"),
    [
        pytest.param(False, OTHER, ["leads"], id="another host's leads"),
        pytest.param(False, OURS, ["leads"], id="another host's of the same name leads"),
        pytest.param(True, OTHER, ["leads", "read"], id="it has lost the lead and does not know yet"),
        pytest.param(True, LONGER, ["leads", "read"], id="a host's whose name begins like this one's"),
        pytest.param(True, "", ["leads", "read"], id="it has given up the lead and does not say so yet"),
    ],
)
def test_a_scheduler_that_does_not_lead_leaves_the_lease_to_who_does(world, leads, holder, expected):
    world.leads, world.holder = leads, holder
    verdict = world.change().apply(world.job(lease=LEASE))
    assert ("confirmed", "") == (verdict["outcome"], verdict["lease"])
    assert (holder, expected) == (world.holder, asked(world))


def test_while_any_scheduler_of_before_runs_it_may_be_the_holder(leading):
    (theirs,) = leading.proc.glob("[0-9]*")
    leading.outlives = theirs.name
    leading.start_process([*OLD_COMMAND, "--v=2"])
    job = leading.job(lease=LEASE, before_command=[*OLD_COMMAND, "--v=2"])
    verdict = leading.change().apply(job)
    assert ("confirmed", "no", OURS) == (verdict["outcome"], verdict["lease"], leading.holder)


def test_one_that_was_started_anew_while_it_was_asked_is_waited_for_as_well(leading):
    """It leads by now and is not the one that the list of before has."""

    class Crashing(RecordingIO):
        def run(self, argv, limit_s=30.0, binary=None):
            if argv == LEASE["read"] and leading.holder == OURS:
                leading.end_process()
                leading.start_process([*OLD_COMMAND, "--v=2"])
                leading.holder = NEXT
                (again,) = leading.proc.glob("[0-9]*")
                leading.outlives = again.name
            return super().run(argv, limit_s, binary)

    verdict = leading.change(Crashing(leading)).apply(leading.job(lease=LEASE))
    assert ("confirmed", "no", NEXT) == (verdict["outcome"], verdict["lease"], leading.holder)


@pytest.mark.parametrize("others", [[], [["kube-scheduler", "--secure-port=10359"]]], ids=["alone", "a second one"])
def test_of_a_process_whose_end_would_not_be_seen_nobody_asks(leading, others):
    """One that is called otherwise, as by hyperkube, answers and leads."""
    leading.end_process()
    for command in others:
        leading.start_process(command)
    verdict = leading.change().apply(leading.job(lease=LEASE, force=True))
    assert ("confirmed", "", [], OURS) == (verdict["outcome"], verdict["lease"], asked(leading), leading.holder)


@pytest.mark.parametrize(
    ("stat", "expected"),
    [
        pytest.param(None, True, id="gone"),
        pytest.param("101 (kube (sched)) S" + 18 * " 0" + " 707 0", False, id="there"),
        pytest.param("101 (kube (sched)) Z" + 18 * " 0" + " 707 0", False, id="not waited for yet"),
        pytest.param("101 (bash) S" + 18 * " 0" + " 808 0", True, id="another process has its number"),
        pytest.param("", False, id="said by halves"),
        pytest.param(b"a folder", False, id="an error that says nothing of it, as too many open files"),
    ],
)
def test_a_process_has_ended_only_where_that_is_certain(tmp_path, stat, expected):
    (tmp_path / "101").mkdir()
    if isinstance(stat, str):
        (tmp_path / "101/stat").write_text(stat)
    elif stat:
        (tmp_path / "101/stat").mkdir()
    assert expected == Scheduler(str(tmp_path)).ended((101, "707"))


@pytest.mark.parametrize("works", [True, False], ids=["confirmed", "put-back"])
@pytest.mark.parametrize("error", [ValueError("embedded null byte"), MemoryError(), RecursionError()], ids=repr)
@pytest.mark.parametrize("when", ["before the change", "in it"])
def test_whatever_goes_wrong_about_the_lease_keeps_no_change_from_its_end(leading, error, works, when):
    class Failing(RecordingIO):
        def run(self, argv, limit_s=30.0, binary=None):
            changed = leading.target.read_text() != manifest(OLD_COMMAND)
            if argv in LEASE.values() and (changed or when == "before the change"):
                raise error
            return super().run(argv, limit_s, binary)

    verdict = leading.change(Failing(leading)).apply(leading.job(lease=LEASE, works=works))
    assert ("confirmed" if works else "put-back", OURS) == (verdict["outcome"], leading.holder)


def test_where_the_new_one_does_not_come_the_earlier_one_need_not_wait_either(leading):
    class Ended(RecordingIO):
        def rename(self, old, new):
            super().rename(old, new)
            while old.endswith("/wanted") and leading.runs():
                time.sleep(0.01)

    verdict = leading.change(Ended(leading)).apply(leading.job(lease=LEASE, works=False))
    assert ("put-back", "") == (verdict["outcome"], leading.holder)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((1, "connection refused"), id="an API server that is away"),
        pytest.param((124, "kubectl took longer than 3.0 s"), id="one that hangs"),
        pytest.param((0, "<html>"), id="one that says something else"),
    ],
)
def test_an_api_server_that_does_not_help_keeps_nothing_from_ending(leading, answer):
    class Away(Asked):
        def rename(self, old, new):
            super().rename(old, new)
            if new == str(leading.target):
                leading.api = answer

    verdict = leading.change(Away(leading, 4)).apply(leading.job(lease=LEASE))
    assert ("confirmed", "no") == (verdict["outcome"], verdict["lease"])
    assert ["leads", "read", *["read"] * lease.TRIES] == asked(leading)
    assert OURS == leading.holder


def test_without_the_right_to_change_it_it_is_tried_twice_and_left(leading):
    class Refused(Asked):
        def _change(self, _patch):
            return 1, "leases is forbidden"

    verdict = leading.change(Refused(leading, 6)).apply(leading.job(lease=LEASE))
    assert ("confirmed", "no", OURS) == (verdict["outcome"], verdict["lease"], leading.holder)
    assert ["leads", "read", *["read", "change"] * lease.TRIES] == asked(leading)


def test_where_no_process_starts_anew_nobody_is_asked(leading):
    job = leading.job(lease=LEASE)
    content = manifest(OLD_COMMAND) + "\n"  # the same, written otherwise
    job |= {"wanted": content, "command": OLD_COMMAND, "restarts": False, "configz": [], "files": {}, "trial": []}
    leading.still = True
    assert "confirmed" == leading.change().apply(job)["outcome"]
    assert ([], OURS) == (asked(leading), leading.holder)


class Killed(BaseException):
    pass


class Dying(RecordingIO):
    """Ends as soon as the new manifest is in place."""

    def rename(self, old, new):
        super().rename(old, new)
        if new == str(self._world.target):
            raise Killed


def test_a_change_that_was_killed_in_the_middle_is_ended_with_it(leading):
    with pytest.raises(Killed):
        leading.change(Dying(leading)).apply(leading.job(lease=LEASE))
    assert ("confirmed", "") == (leading.change().recover()["outcome"], leading.holder)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("moment", "outcome", "holder"),
    [
        pytest.param(0, None, OURS, id="it is asked whether it leads"),
        pytest.param(1, None, OURS, id="it is asked who holds it"),
        pytest.param(2, "confirmed", "", id="it is asked again"),
        pytest.param(3, "confirmed", "", id="it is given up"),
    ],
)
def test_one_that_was_killed_when(leading, moment, outcome, holder, after):
    class DyingThen(RecordingIO):
        def run(self, argv, limit_s=30.0, binary=None):
            now = len(asked(leading)) == moment and (argv in LEASE.values() or "lease" in argv)
            if now and not after:
                raise Killed
            said = super().run(argv, limit_s, binary)
            if now:
                raise Killed
            return said

    with pytest.raises(Killed):
        leading.change(DyingThen(leading)).apply(leading.job(lease=LEASE))
    verdict = leading.change().recover()
    assert (outcome, holder, []) == (verdict and verdict["outcome"], leading.holder, leading.left())


def test_one_that_an_earlier_release_has_left_open_is_ended_without(leading):
    job = leading.job()
    del job["lease"]
    with pytest.raises(Killed):
        leading.change(Dying(leading)).apply(job)
    assert ("confirmed", OURS) == (leading.change().recover()["outcome"], leading.holder)
