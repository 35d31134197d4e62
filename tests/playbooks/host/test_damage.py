"""A change that was interrupted, and of which a disk has lost something: it ends, and the next one begins."""

import json
import os
from pathlib import Path

import pytest
from readygate_scheduler.host_io import LABEL, HostIO

from tests.playbooks.host.world import OLD_COMMAND, RecordingIO, manifest

DAMAGED = pytest.mark.parametrize(
    "damaged", [b"", b'{"id": ', b"\0" * 20, b"\xff\xfe", b"[]"], ids=["empty", "half", "zeros", "no text", "a list"]
)


class Killed(BaseException):
    """Not an Exception: the program does not live to handle it."""


class Dying(RecordingIO):
    """Ends as soon as something has got this name."""

    def __init__(self, world, name):
        super().__init__(world)
        self._name = str(name)

    def rename(self, old, new):
        super().rename(old, new)
        if new == self._name:
            raise Killed


def interrupted(world, name, job):
    with pytest.raises(Killed):
        world.change(Dying(world, name)).apply(job)
    return world.folder / "pending" / "job.json"


@DAMAGED
def test_an_unproven_manifest_gives_way_without_the_job_too(world, damaged):
    interrupted(world, world.target, world.job()).write_bytes(damaged)
    told = world.change().recover()
    assert (told["outcome"], told["changed"]) == ("put-back", True)
    assert "the job of a change that was interrupted cannot be read; the earlier manifest is back" in told["cause"]
    assert (world.target.read_text(), world.left()) == (manifest(OLD_COMMAND), [])


@DAMAGED
def test_a_manifest_that_was_not_changed_yet_stays(world, damaged):
    interrupted(world, world.folder / "pending", world.job()).write_bytes(damaged)
    assert world.change().recover()["outcome"] == "failed"
    assert (world.target.read_text(), world.left()) == (manifest(OLD_COMMAND), [])


@DAMAGED
def test_one_that_was_proven_stays_proven(world, damaged):
    job = world.job()
    interrupted(world, world.folder / "proven.new", job).write_bytes(damaged)
    assert world.change().recover()["outcome"] == "confirmed"
    assert world.target.read_text() == job["wanted"] == (world.folder / "proven/target").read_text()
    assert world.left() == []


def test_where_nobody_knows_what_it_was_about_it_is_set_aside_and_said(world):
    job = world.job()
    damaged = interrupted(world, world.target, job)
    for path in (damaged, damaged.with_name("proven") / "mark.json"):
        path.write_bytes(b"")
    told = world.change().recover()
    assert (told["outcome"], told["changed"], world.left()) == ("failed", False, [])
    assert f"it is in {world.folder}/unreadable now" in told["cause"]
    assert world.target.read_text() == job["wanted"]
    assert world.change().recover() is None
    again = dict(world.job(), before_command=job["command"])
    assert world.change().apply(again)["outcome"] == "confirmed"


THERE, OF_THE_FOLDER, BROUGHT = b"of what is there", b"of the folder", b"brought along"


@pytest.mark.parametrize("there", [True, False], ids=["that of the file it replaces", "that of the folder"])
def test_a_file_that_is_put_in_place_gets_the_label_that_belongs_there(tmp_path, monkeypatch, there):
    """As SELinux keeps it. No host with SELinux is at hand, so it is a mapping."""
    written, place = tmp_path / "written", tmp_path / "units" / "ours.conf"
    place.parent.mkdir()
    labels = {str(written): BROUGHT, str(place.parent): OF_THE_FOLDER}
    if there:
        place.touch()
        labels[str(place)] = THERE
    monkeypatch.setattr(os, "getxattr", lambda path, name: labels[path] if name == LABEL else None)
    monkeypatch.setattr(os, "setxattr", lambda path, _, value: labels.update({path: value}))
    HostIO().label(str(written), str(place))
    assert (THERE if there else OF_THE_FOLDER) == labels[str(written)]


def test_without_labels_nothing_happens(tmp_path):
    (tmp_path / "written").touch()
    HostIO().label(str(tmp_path / "written"), str(tmp_path / "nowhere" / "ours.conf"))


def test_both_ways_the_label_is_set_before_the_file_is_in_place(world):
    order = []

    class Looking(RecordingIO):
        def label(self, path, like):
            order.append(("label", Path(path).name, like))

        def rename(self, old, new):
            if new == str(world.target):
                order.append(("rename", Path(old).name, new))
            super().rename(old, new)

    assert world.change(Looking(world)).apply(world.job(works=False))["outcome"] == "put-back"
    target = str(world.target)
    assert [(what, name, target) for name in ("wanted", "before") for what in ("label", "rename")] == order
    assert json.loads(world.target.read_text())["command"] == OLD_COMMAND
