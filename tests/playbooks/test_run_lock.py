"""Two runs of the playbooks exclude each other; one that is dead does not."""

import importlib.util
import os
import subprocess
from types import ModuleType
from typing import Any

import pytest
from readygate_objects.lock import (
    FREE,
    HELD,
    OWN,
    SILENT_S,
    explained,
    state_of,
    taken,
)

from tests.playbooks.rendering import ROLES
from tools.kit.waiting import wait_for

ME, OTHER = "alice@laptop (process 1, started at 5)", "bob@ci (process 7, started at 9)"
AT = 1_800_000_000.0


def lease(holder: str, silent_s: float = 0.0) -> dict[str, Any]:
    made: dict[str, Any] = taken({}, holder, AT - silent_s)
    made["metadata"]["resourceVersion"] = "7"
    return made


@pytest.mark.parametrize(
    ("found", "dead", "expected"),
    [
        pytest.param({}, "", FREE, id="nobody runs"),
        pytest.param(lease(ME), "", OWN, id="we have begun already"),
        pytest.param(lease(OTHER), "", HELD, id="another runs"),
        pytest.param(lease(OTHER, SILENT_S - 1), "", HELD, id="another was quiet for a while"),
        pytest.param(lease(OTHER, SILENT_S + 1), "", FREE, id="nothing was heard of it for long"),
        pytest.param(lease(OTHER), OTHER, FREE, id="it is known to be dead"),
        pytest.param(lease(OTHER), ME, HELD, id="somebody else is known to be dead"),
    ],
)
def test_who_may_run(found, dead, expected):
    assert expected == state_of(found, ME, AT, dead)


def test_one_that_has_said_how_long_it_may_be_silent_is_waited_for_so_long():
    made = lease(OTHER)
    made["spec"] |= taken({}, OTHER, AT, 3000)["spec"]
    assert [HELD, FREE] == [state_of(made, ME, AT + silent) for silent in (2999, 3001)]
    assert "it was last seen 3000 s ago" in explained(made, AT)


def test_whoever_takes_it_shows_the_version_that_was_read_so_that_one_of_two_wins():
    after = taken(lease(OTHER, SILENT_S + 1), ME, AT)
    assert ("7", ME) == (after["metadata"]["resourceVersion"], after["spec"]["holderIdentity"])
    assert after["spec"]["acquireTime"] == after["spec"]["renewTime"] == "2027-01-15T08:00:00.000000Z"


def test_the_other_run_is_told_with_what_to_do():
    words = explained(lease(OTHER, 12.0), AT)
    assert f"that of {OTHER}, since 2027-01-15T07:59:48Z, last seen 12 s ago" in words
    assert "readygate_take_over=true" in words


@pytest.fixture(scope="module")
def action() -> ModuleType:
    path = ROLES / "readygate_objects" / "action_plugins" / "readygate_run.py"
    spec = importlib.util.spec_from_file_location("readygate_run_action", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_run_that_was_killed_on_this_machine_is_dead_at_once(action):
    with subprocess.Popen(["sleep", "60"]) as child:
        holder = action.identity(child.pid)
        assert not action.dead(holder)
        child.kill()
        assert wait_for(lambda: action.dead(holder), timeout_s=20), "although nobody has asked how it ended"
        child.wait()
        assert action.dead(holder)


def test_a_process_that_only_has_the_number_of_the_run_is_not_the_run(action):
    assert not action.dead(action.identity(os.getpid()))
    assert action.dead(action.identity(os.getpid()).replace("started at ", "started at 9"))


@pytest.mark.parametrize("holder", [OTHER, "", "someone"])
def test_of_a_run_on_another_machine_nothing_is_known(action, holder):
    assert not action.dead(holder)
