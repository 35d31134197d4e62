"""A change is proven or taken back; who was broken before is not touched; nothing is ever half."""

import ast
import errno
import json
import time

import pytest
from readygate_scheduler.command import detached, locked
from readygate_scheduler.jobs import UNTIL, digest
from readygate_scheduler.scheduler import Scheduler

from tests.playbooks.host import PROGRAM
from tests.playbooks.host.world import EXTENDER, OLD_COMMAND, REFUSED, RecordingIO, manifest
from tools.kit.waiting import wait_until

# What it may use, looked up in the documentation of Python 3.6.
OF_PYTHON_36 = {"argparse", "contextlib", "errno", "fcntl", "glob", "hashlib", "json", "os", "re", "shutil", "ssl"} | {
    "http.client",
    "subprocess",
    "sys",
    "time",
    "urllib.request",
}


def told(world):
    return json.loads((world.folder / "verdict.json").read_text())


def test_what_the_scheduler_shows_to_have_loaded_is_confirmed_and_kept_as_proven(world):
    job = world.job()
    verdict = world.change().apply(job)
    assert (verdict["outcome"], verdict["changed"], verdict) == ("confirmed", True, told(world))
    assert world.target.read_text() == job["wanted"] == (world.folder / "proven/target").read_text()
    assert [job["command"]] == world.runs()
    assert (world.folder / "original/kube-scheduler.yaml").read_text() == manifest(OLD_COMMAND)
    assert json.loads((world.folder / "proven/mark.json").read_text())["wanted"] == digest(job["wanted"].encode())
    assert world.left() == []


@pytest.mark.parametrize("mark", [b"", b'{"id": ', b"\0" * 20], ids=["empty", "half a file", "of nothing but zeros"])
def test_a_mark_that_a_disk_has_lost_proves_nothing(world, mark):
    job = world.job()
    world.change().apply(job)
    assert world.change().is_in_place(job)
    (world.folder / "proven/mark.json").write_bytes(mark)
    assert not world.change().is_in_place(job)


def test_while_a_change_is_open_systemd_calls_again_and_at_boot(world):
    seen = []

    class Looking(RecordingIO):
        def rename(self, old, new):
            super().rename(old, new)
            if new == str(world.target):
                seen.extend(sorted(each.name for each in world.units.iterdir()))
                seen.append((world.units / "readygate-scheduler-recover.timer").read_text())

    world.change(Looking(world)).apply(world.job())
    assert seen[:2] == ["readygate-scheduler-recover.service", "readygate-scheduler-recover.timer"]
    assert "OnBootSec=1s\nOnActiveSec=15s\nOnUnitInactiveSec=15s" in seen[2]
    assert [argv[1:3] for argv in world.calls if argv[0] == "systemctl"] == [
        ["daemon-reload"],
        ["enable", "--now"],
        ["disable", "--now"],
        ["daemon-reload"],
    ]


def test_a_scheduler_that_does_not_come_up_gets_its_old_manifest_back_and_its_last_words_are_told(world):
    verdict = world.change().apply(world.job(works=False))
    assert verdict["outcome"] == "put-back"
    assert "no new kube-scheduler started; the earlier manifest is back in place and works" in verdict["cause"]
    assert "panic: no such thing" in verdict["cause"]
    assert world.target.read_text() == manifest(OLD_COMMAND)
    assert not (world.folder / "proven").exists()
    assert world.left() == []


def test_evidence_that_cannot_be_had_keeps_nothing_from_being_put_back(world):
    """Once a missing log file ended the roll-back before it began."""
    verdict = world.change().apply(world.job(works=False, logs="[", evidence=["/no/such/command"]))
    assert (verdict["outcome"], world.target.read_text()) == ("put-back", manifest(OLD_COMMAND))


def test_the_last_words_are_from_before_the_earlier_one_was_started_again(world):
    """The journal of a unit goes on with what the one says that works."""
    restarted = world.folder.parent / "restarted"
    restart = [["sh", "-c", f"date +%s.%N > {restarted}"]]
    job = world.job(works=False, logs="", evidence=["echo", "until=" + UNTIL], restart=restart)
    began = time.time()
    cause = world.change().apply(job)["cause"]
    until = float(cause.partition("until=")[2])
    assert began < until < float(restarted.read_text())


def test_a_scheduler_that_answers_but_does_not_know_us_is_not_believed(world):
    job = world.job(json.dumps({"extenders": []}), limit_s=0.3)
    verdict = world.change().apply(job)
    assert verdict["outcome"] == "put-back"
    assert "/configz did not show the new configuration: extenders: 1 expected, 0 loaded" in verdict["cause"]


def test_what_its_own_binary_refuses_is_never_put_in_place(world):
    job = world.job(json.dumps({"profiles": [REFUSED]}))
    verdict = world.change().apply(job)
    assert verdict["outcome"] == "refused"
    assert f"nothing was changed: {REFUSED} is not registered" in verdict["cause"]
    assert [OLD_COMMAND] == world.runs()
    assert not list(world.folder.glob("kube-scheduler-*")), "nor left there for a later run to believe in"


def test_a_refused_configuration_is_tried_again_by_the_next_run(world):
    """It was once taken for tried because its file was there."""
    job = world.job(json.dumps({"profiles": [REFUSED]}))
    (path,) = job["files"]
    world.folder.joinpath(path).write_text(job["files"][path])
    assert world.change().apply(job)["outcome"] == "refused"


@pytest.mark.parametrize("force", [False, True])
def test_a_scheduler_that_was_broken_before_is_touched_only_where_that_is_asked_for(world, force):
    world.target.write_text(manifest(OLD_COMMAND, works=False))
    wait_until(lambda: list(world.logs.iterdir()), "its panic: the old process has ended, and none comes after it")
    verdict = world.change().apply(world.job(force=force))
    assert verdict["outcome"] == ("confirmed" if force else "broken-before")
    assert force or "did not work before the change; nothing was changed. Repair it first: panic" in verdict["cause"]


def test_who_writes_the_manifest_between_look_and_change_wins(world):
    job = world.job()
    mine = manifest([*OLD_COMMAND, "--v=2"])
    world.target.write_text(mine)
    assert (world.change().apply(job)["outcome"], world.target.read_text()) == ("changed-meanwhile", mine)


def test_who_renames_his_own_over_ours_in_the_middle_keeps_it(world):
    mine = manifest([*OLD_COMMAND, "--v=2"])

    class Elsewhere(RecordingIO):
        def rename(self, old, new):
            super().rename(old, new)
            if new == str(world.target):
                world.target.write_text(mine)

    verdict = world.change(Elsewhere(world)).apply(world.job(limit_s=0.3))
    assert (verdict["outcome"], world.target.read_text()) == ("failed", mine)
    assert "another program has changed" in verdict["cause"]
    assert world.left() == []


def test_original_is_never_written_again(world):
    world.change().apply(world.job())
    world.target.write_text(manifest([*OLD_COMMAND, "--v=2"]))
    world.change().apply(world.job(before_command=[*OLD_COMMAND, "--v=2"]))
    assert (world.folder / "original/kube-scheduler.yaml").read_text() == manifest(OLD_COMMAND)


@pytest.fixture
def drop_in(world):
    """The world with a scheduler that a unit starts; nothing of ours is there."""
    of_manifest = Scheduler(str(world.proc)).processes()
    world.target.unlink()
    world.target = world.units / "kube-scheduler.service.d/readygate.conf"
    wait_until(lambda: world.runs() == [OLD_COMMAND] and Scheduler(str(world.proc)).processes() != of_manifest)
    return world.target


def put_back(world, drop_in):  # noqa: ARG001
    assert world.change().apply(world.job(works=False))["outcome"] == "put-back"


def taken_out(world, drop_in):
    job = world.job()
    assert world.change().apply(job)["outcome"] == "confirmed"
    out = {"wanted": None, "expected": digest(drop_in.read_bytes()), "before_command": job["command"]}
    out |= {"command": OLD_COMMAND, "files": {}, "configz": [], "trial": []}
    assert world.change().apply(job | out)["outcome"] == "confirmed"


@pytest.mark.parametrize("others", [[], ["limits.conf"]], ids=["of ours alone", "with a drop-in of the operator's"])
@pytest.mark.parametrize("ended", [put_back, taken_out])
def test_a_folder_for_drop_ins_goes_with_ours_unless_it_has_others(world, drop_in, ended, others):
    for name in others:
        drop_in.parent.mkdir(exist_ok=True)
        (drop_in.parent / name).write_text("[Service]\n")
    ended(world, drop_in)
    assert others == [each.name for each in drop_in.parent.glob("*")]
    assert bool(others) == drop_in.parent.exists()


def test_a_change_that_fails_leaves_the_last_proven_one_alone(world):
    first = world.job()
    assert world.change().apply(first)["outcome"] == "confirmed"
    second = world.job(json.dumps({"extenders": [EXTENDER], "parallelism": 3}), works=False)
    second["before_command"] = first["command"]
    assert world.change().apply(second)["outcome"] == "put-back"
    assert world.target.read_text() == first["wanted"] == (world.folder / "proven/target").read_text()
    assert [first["command"]] == world.runs()


def test_a_configuration_that_was_edited_is_written_again_and_loaded_by_a_new_process(world):
    job = world.job()
    world.change().apply(job)
    (path,) = job["files"]
    world.folder.joinpath(path).write_text("{}")
    world.end_process()
    world.start_process(job["command"])
    again = dict(world.job(), before_command=job["command"])
    assert again["expected"] == digest(again["wanted"].encode())
    assert world.change().apply(again)["outcome"] == "confirmed"
    assert world.loaded["extenders"] == [EXTENDER]


class Full(RecordingIO):
    """No space from the nth write on."""

    def __init__(self, world, writes):
        super().__init__(world)
        self.writes = writes

    def write(self, path, data, mode=0o600):
        self.writes -= 1
        if self.writes < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(path, data, mode)


@pytest.mark.parametrize("works", [True, False], ids=["a new one that works", "a new one that does not"])
@pytest.mark.parametrize("writes", range(14))
def test_a_disk_that_is_full_at_any_moment_leaves_the_old_or_the_proven_new(world, writes, works):
    job = world.job(works=works)
    verdict = world.change(Full(world, writes)).apply(job)
    confirmed = verdict["outcome"] == "confirmed"
    assert world.target.read_text() == (job["wanted"] if confirmed else manifest(OLD_COMMAND))
    assert world.left() == []
    assert verdict["outcome"] in ({"confirmed", "failed"} if works else {"put-back", "failed"})


def test_a_switch_that_cannot_be_set_stops_the_change(world):
    class Powerless(RecordingIO):
        def run(self, argv, limit_s=30.0, binary=None):
            return (1, "no bus") if argv[:2] == ["systemctl", "enable"] else super().run(argv, limit_s, binary)

    verdict = world.change(Powerless(world)).apply(world.job())
    assert (verdict["outcome"], verdict["changed"]) == ("failed", False)
    assert "the timer for `recover` could not be started: no bus" in verdict["cause"]
    assert (world.target.read_text(), world.left()) == (manifest(OLD_COMMAND), [])


def test_a_drop_in_that_was_not_there_before_is_gone_again_where_it_does_not_work(world):
    before = list(Scheduler(str(world.proc)).processes())
    world.target.unlink()
    wait_until(lambda: list(Scheduler(str(world.proc)).processes()) not in (before, []))
    restarts = [["systemctl", "daemon-reload"], ["systemctl", "restart", "kube-scheduler"]]
    job = world.job(works=False, restart=restarts, expected="")
    verdict = world.change().apply(job)
    assert (verdict["outcome"], world.target.exists()) == ("put-back", False)
    assert [argv for argv in world.calls if argv[1] == "restart"] == [restarts[1], restarts[1]]


def test_two_runs_exclude_each_other(world):
    with locked(str(world.folder), 0.0) as first, locked(str(world.folder), 0.0) as second:
        assert (first, second) == (True, False)
    with locked(str(world.folder), 0.0) as free:
        assert free


def test_detach_needs_neither_api_server_nor_a_scheduler_that_works(world):
    job = world.job()
    world.change().apply(job)
    world.slow_s = 30.0  # nothing starts any more
    world.end_process()
    way_out = dict(detached(str(world.folder)), limit_s=0.3)
    verdict = world.change().apply(way_out)
    assert (verdict["outcome"], world.target.read_text()) == ("confirmed", manifest(OLD_COMMAND))
    assert "the new manifest stays" in verdict["cause"]


def test_detach_leaves_what_was_noted_of_the_time_before_us(world):
    """An upgrade by kubeadm may bring ours back, and then it is asked for again."""
    world.change().apply(world.job(note={"config": "/etc/own.yaml"}))
    world.change().apply(dict(detached(str(world.folder)), limit_s=0.3))
    assert {"config": "/etc/own.yaml"} == json.loads((world.folder / "original/noted.json").read_text())


def test_what_nobody_knows_is_not_noted(world):
    world.change().apply(world.job(note={}))
    assert not (world.folder / "original").exists()


def test_detach_does_not_overwrite_what_is_not_ours(world):
    world.change().apply(world.job())
    world.target.write_text(manifest([*OLD_COMMAND, "--v=2"]))
    assert detached(str(world.folder)) is None


def test_it_runs_with_the_oldest_python_of_a_supported_host():
    for path in set(PROGRAM.glob("*.py")) - {PROGRAM / "dialect.py"}:  # which is used on the controller
        tree = ast.parse(path.read_text(), feature_version=(3, 6))
        imported = {n.names[0].name for n in ast.walk(tree) if isinstance(n, ast.Import)}
        assert imported <= OF_PYTHON_36, path.name
        assert "capture_output" not in path.read_text()


def test_clocks_that_step_change_nothing(world, monkeypatch):
    steps = iter(range(10**9, 0, -86400))
    monkeypatch.setattr(time, "time", lambda: float(next(steps)))
    assert world.change().apply(world.job())["outcome"] == "confirmed"
