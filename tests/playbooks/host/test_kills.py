"""Killed between any two things it does, then `recover`: the old or the proven new, never a half.

The moments are generated: a run to its end is counted, then one run a moment is ended there. Ended is once by an
exception that nothing catches, which is quick, and once by a real SIGKILL.
"""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from readygate_scheduler import change

from tests.playbooks.host import PROGRAM
from tests.playbooks.host.world import OLD_COMMAND, RecordingIO, World, manifest
from tools.kit.waiting import wait_until


class Killed(BaseException):
    """Not an Exception: the program does not live to handle it."""


class Dying(RecordingIO):
    """Ends when the nth effect is due, and counts them all. With n = -1 it never ends."""

    def __init__(self, world, n=-1):
        super().__init__(world)
        self.n, self.effects = n, 0

    def _one(self, effect, *arguments):
        self.effects += 1
        if self.effects == self.n + 1:
            raise Killed
        return effect(*arguments)

    def make(self, path):
        return self._one(super().make, path)

    def write(self, path, data, mode=0o600):
        return self._one(super().write, path, data, mode)

    def rename(self, old, new):
        return self._one(super().rename, old, new)

    def remove(self, path):
        return self._one(super().remove, path)

    def remove_empty(self, folder):
        return self._one(super().remove_empty, folder)

    def run(self, argv, limit_s=30.0, binary=None):
        return self._one(super().run, argv, limit_s, binary)


def moments(tmp_path, *, works):
    """How many effects a whole run has; a write is two, its file and the rename."""
    world = World(tmp_path)
    io = Dying(world)
    try:
        world.change(io).apply(world.job(works=works))
    finally:
        world.stop()
    return io.effects


def whole(world, job):
    """The manifest in place is one of the two, whole; what runs afterwards is what it says."""
    text = world.target.read_text()
    assert text in (manifest(OLD_COMMAND), job["wanted"])
    return text == job["wanted"]


def somebody_calls(world):
    """Is systemd told to call `recover`, now and after a reboot?"""
    calls = [argv[1:] for argv in world.calls if argv[0] == "systemctl" and argv[-1].endswith(".timer")]
    units = sorted(each.suffix for each in world.units.iterdir())
    return bool(calls) and calls[-1][:2] == ["enable", "--now"] and units == [".service", ".timer"]


def ended_well(world, job, *, works):
    proven = world.folder / "proven/target"
    forwards = whole(world, job)
    assert forwards <= works, "what does not work is never left in place"
    assert proven.exists() == forwards, "proven and in place at once"
    expected = [job["command"] if forwards else OLD_COMMAND]
    wait_until(lambda: world.runs() == expected, world.runs)
    assert world.left() == []
    return forwards


@pytest.mark.parametrize("reboot", [False, True], ids=["killed", "rebooted"])
@pytest.mark.parametrize("works", [True, False], ids=["a new one that works", "a new one that does not"])
def test_ended_at_any_moment_recover_leaves_the_old_or_the_proven_new(tmp_path_factory, world, works, reboot):
    del world  # for its times only
    count = moments(tmp_path_factory.mktemp("counted"), works=works)
    assert count > 25
    outcomes = set()
    for moment in range(count):
        here = World(tmp_path_factory.mktemp("killed"))
        try:
            job = here.job(works=works)
            try:
                here.change(Dying(here, moment)).apply(dict(job))
            except Killed:
                swapped, is_open = whole(here, job), (here.folder / "pending").exists()
                assert not (swapped and is_open) or somebody_calls(here)
                if reboot:
                    here.reboot("second boot")
                here.change().recover()
            outcomes.add(ended_well(here, job, works=works))
            assert here.change().recover() is None, "and a second one finds nothing to do"
        except AssertionError as e:
            raise AssertionError(f"at effect {moment}: {e}") from e
        finally:
            here.stop()
    assert outcomes == ({False, True} if works else {False})


@pytest.mark.parametrize("works", [True, False], ids=["a new one that works", "a new one that does not"])
def test_a_recover_that_is_killed_too_is_ended_by_the_next(tmp_path_factory, world, works, monkeypatch):
    monkeypatch.setattr(change, "GRACE_S", 2.0 if works else 0.1)
    job = world.job(works=works)
    moment = 0
    while True:
        here = World(tmp_path_factory.mktemp("twice"))
        try:
            job = here.job(works=works)

            class Swapped(RecordingIO):
                def rename(self, old, new, here=here):
                    super().rename(old, new)
                    if new == str(here.target):
                        raise Killed

            with pytest.raises(Killed):
                here.change(Swapped(here)).apply(dict(job))
            io = Dying(here, moment)
            try:
                here.change(io).recover()
            except Killed:
                here.change().recover()
            ended_well(here, job, works=works)
            if moment >= io.effects:
                break
        finally:
            here.stop()
        moment += 1
    assert moment > 5


KILLED = textwrap.dedent("""
    import os, signal, sys
    from readygate_scheduler.command import main
    from readygate_scheduler.host_io import HostIO

    class Dying(HostIO):
        def run(self, argv, limit_s=30.0, binary=None):
            return (0, "") if argv[0] == "systemctl" else super().run(argv, limit_s, binary)

        def rename(self, old, new):
            super().rename(old, new)
            if new == sys.argv[1]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.exit(main(sys.argv[2:], Dying()))
""")


@pytest.mark.parametrize("works", [True, False], ids=["a new one that works", "a new one that does not"])
def test_a_real_sigkill_between_swap_and_proof_is_ended_by_the_program_itself(world, tmp_path, works):
    job = world.job(works=works)
    (tmp_path / "job.json").write_text(json.dumps(job))
    options = ["--folder", str(world.folder), "--units", str(world.units), "--proc", str(world.proc)]
    environ = {**os.environ, "PYTHONPATH": str(PROGRAM.parent)}
    command = [sys.executable, "-c", KILLED, str(world.target), *options]
    done = subprocess.run([*command, "apply", str(tmp_path / "job.json")], env=environ, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [each.suffix for each in sorted(world.units.iterdir())] == [".service", ".timer"], "systemd will call"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "-", *options, "recover"], env=environ, timeout=60, check=False
    )
    assert done.returncode == 0
    assert ended_well(world, job, works=works) is works
