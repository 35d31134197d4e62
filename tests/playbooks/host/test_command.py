"""The program at a terminal, in an emergency: what it says while it waits, how it ends, and what it says instead of a
traceback."""

import json
from pathlib import Path
from typing import ClassVar

import pytest
from readygate_scheduler import command
from readygate_scheduler.command import main
from readygate_scheduler.host_io import HostIO

from tests.playbooks.host.world import OLD_COMMAND, manifest


def called(world, *given):
    options = ["--folder", str(world.folder), "--units", str(world.units), "--proc", str(world.proc)]
    return main([*options, *given], world.host_io())


@pytest.fixture
def registered(world):
    """A scheduler that was proven to ask us."""
    assert world.change().apply(world.job(limit_s=5.0))["outcome"] == "confirmed"
    return world


def test_detach_ends_with_one_sentence(registered, capsys):
    capsys.readouterr()
    assert called(registered, "detach") == 0
    assert capsys.readouterr() == ("kube-scheduler works with its new configuration\n", "")
    assert registered.target.read_text() == manifest(OLD_COMMAND)


def test_for_a_program_it_is_json(registered, capsys):
    capsys.readouterr()
    assert called(registered, "-o", "json", "detach") == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "confirmed"


def test_while_it_waits_it_says_for_what(registered, capsys, monkeypatch):
    """Whatever it takes: here it has nothing to say of only for a moment."""
    monkeypatch.setattr(command, "PROGRESS_EVERY_S", 0.05)
    registered.slow_s = 0.5
    assert called(registered, "detach") == 0
    assert "0 s: no new kube-scheduler started, 4 s at most\n" in capsys.readouterr().err


def test_a_second_one_has_nothing_to_do(registered, capsys):
    called(registered, "detach")
    capsys.readouterr()
    assert called(registered, "detach") == 0
    assert capsys.readouterr().out == f"{command.ALREADY}\n"


def is_not_there(world):
    world.folder.rename(world.folder.with_name("elsewhere"))


def is_edited(world):
    world.target.write_text(manifest([*OLD_COMMAND, "--v=2"]))


def has_lost_its_mark(world):
    (world.folder / "proven" / "mark.json").write_text('{"id": ')


def nothing(world):
    """All is as it was proven."""


@pytest.mark.parametrize(
    ("given", "what", "expected"),
    [
        pytest.param(
            ["detach"], is_not_there, "readygate is not registered with a kube-scheduler", id="never registered"
        ),
        pytest.param(["detach"], is_edited, "run playbooks/detach.yml", id="a manifest that was edited since"),
        pytest.param(["detach"], has_lost_its_mark, "run playbooks/detach.yml", id="a mark that is half a file"),
        pytest.param(["apply", "/nowhere.json"], nothing, "/nowhere.json is not a job", id="a job that is not there"),
        pytest.param(["apply", "/proc/self/comm"], nothing, "is not a job", id="a job that is none"),
    ],
)
def test_what_it_cannot_do_is_one_line_with_the_remedy(registered, capsys, given, what, expected):
    what(registered)
    capsys.readouterr()
    assert called(registered, *given) == 1
    out, err = capsys.readouterr()
    assert (out, 1, True) == ("", err.count("\n"), expected in err), err


def test_without_rights_it_says_so(registered, capsys, monkeypatch):
    def refused(*_):
        raise PermissionError(13, "Permission denied", "lock")

    monkeypatch.setattr(command, "locked", refused)
    assert called(registered, "detach") == 1
    assert "run it as root" in capsys.readouterr().err


def test_beside_another_run_it_waits_and_says_so(registered, capsys, monkeypatch):
    monkeypatch.setattr(command, "PROGRESS_EVERY_S", 0.05)
    monkeypatch.setattr(command, "LOCK_LIMIT_S", 0.5)
    with command.locked(str(registered.folder), 0.0):
        assert called(registered, "detach") == 1
    err = capsys.readouterr().err
    assert f"0 s: {command.BUSY}\n" in err
    assert err.endswith(f"readygate-scheduler: {command.BUSY}\n")


def test_ctrl_c_leaves_the_rest_to_systemd_and_says_so(registered, capsys, monkeypatch):
    registered.slow_s = 30.0

    def interrupted(_self, _cause):
        raise KeyboardInterrupt

    monkeypatch.setattr(command.Terminal, "waiting", interrupted)
    assert called(registered, "detach") == 130
    assert "a timer of systemd completes or undoes the change within 15 s" in capsys.readouterr().err
    assert "readygate-scheduler-recover.timer" in registered.left()


@pytest.mark.parametrize("given", [["apply"], ["detach", "job.json"], ["fly"]], ids=" ".join)
def test_wrong_usage_has_a_code_of_its_own(capsys, given):
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert (2, True) == (ended.value.code, "usage: readygate-scheduler" in capsys.readouterr().err)


class Systemd(HostIO):
    """Of a host whose bus does not always answer: what `systemctl is-active` ends with, look by look; the change ends
    at the last."""

    codes: ClassVar[list[int]] = []
    calls: ClassVar[list[str]] = []
    verdict = ""

    def run(self, argv, limit_s=30.0, binary=None):  # noqa: ARG002
        self.calls.append(argv[-1])
        if argv[:2] != ["systemctl", "is-active"]:
            return 0, ""
        code = self.codes.pop(0)
        if not self.codes:
            Path(self.verdict).write_text(json.dumps({"id": "job-1", "outcome": "confirmed"}))
            self.codes.append(code)
        return code, ""


@pytest.mark.parametrize(
    "codes",
    [
        pytest.param([0, 0, 3], id="it runs, then it has ended"),
        pytest.param([0, 4], id="it has ended, and nothing is left of it"),
        pytest.param([0, 1, 1, 3], id="the bus does not answer for a while"),
        pytest.param([0, 124, 127, 1], id="nor ever again, and the verdict comes"),
    ],
)
def test_a_change_is_waited_for_until_it_has_ended(world, monkeypatch, codes):
    monkeypatch.setattr(command, "POLL_S", 0.0)
    monkeypatch.setattr(command, "HostIO", Systemd)
    monkeypatch.setattr(Systemd, "codes", [*codes])
    monkeypatch.setattr(Systemd, "calls", [])
    monkeypatch.setattr(Systemd, "verdict", str(world.folder / "verdict.json"))
    verdict = command.start(str(world.folder), {"id": "job-1", "limit_s": 60.0})
    assert ("confirmed", False) == (verdict["outcome"], "recover" in Systemd.calls)


def test_one_that_hung_and_was_ended_is_told_with_what_goes_on_and_what_to_do(world, monkeypatch):
    monkeypatch.setattr(command, "HostIO", Systemd)
    monkeypatch.setattr(Systemd, "codes", [3])
    monkeypatch.setattr(Systemd, "calls", [])
    monkeypatch.setattr(Systemd, "verdict", str(world.folder / "another.json"))
    verdict = command.start(str(world.folder), {"id": "job-1", "limit_s": 60.0})
    assert ("failed", True) == (verdict["outcome"], "recover" in Systemd.calls)
    told = [
        "ends one that hangs after 300 s",
        "every 15 s to complete or undo",
        "detach.yml",
        "journalctl --unit readygate-scheduler",
    ]
    assert [] == [words for words in told if words not in verdict["cause"]]


def test_its_help_has_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert ["0", "1", "2", "130"] == [line.split()[0] for line in told.partition("exit codes:\n")[2].splitlines()]
