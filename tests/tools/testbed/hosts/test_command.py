"""Which sets of hosts a command of the testbed is about."""

import argparse
import os

import pytest

from tools.testbed.hosts import command
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.layout import LAYOUTS, SET_VARIABLE


@pytest.fixture
def ended(monkeypatch) -> list[str]:
    """The names of the sets that were ended, and "snapshots" for what is left of those; `hosts` is in use."""
    names: list[str] = []

    class Hosts:
        def __init__(self, layout, **_):
            self.name = layout.network.name

        def down(self):
            if self.name == "hosts":
                raise HostsError("in use by process 7")
            names.append(self.name)

    monkeypatch.setattr(command, "Hosts", Hosts)
    monkeypatch.setattr(command.snapshot_cache, "tidy", lambda: names.append("snapshots"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv(SET_VARIABLE, raising=False)
    return names


def test_down_ends_every_set_and_tells_which_is_in_use(ended):
    with pytest.raises(HostsError, match=r"^in use by process 7$"):
        command.down(argparse.Namespace())
    assert [*(layout.network.name for layout in LAYOUTS if layout.network.name != "hosts"), "snapshots"] == ended


def test_down_ends_the_set_that_is_named_and_no_other(ended, monkeypatch):
    monkeypatch.setenv(SET_VARIABLE, "second")
    assert 0 == command.down(argparse.Namespace())
    assert ["second", "snapshots"] == ended
