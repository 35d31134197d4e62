"""The command line of `python -m tools.fleet`."""

import sys

import pytest

from tools.fleet import __main__ as command
from tools.fleet.fleet import Size, names_of
from tools.kit.child import ProcessError


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["--full", "0", "--light", "0"], "a fleet needs nodes", id="no nodes at all"),
        pytest.param(["--full", "-1"], "-1 is not a whole number of 0 or more", id="fewer than none"),
        pytest.param(["--light", "many"], "many is not a whole number of 0 or more", id="no number"),
        pytest.param(["--full-in-process", "0"], "0 is too few", id="processes without nodes"),
        pytest.param(["--output", "yaml"], "invalid choice", id="an unknown format"),
    ],
)
def test_wrong_usage_is_code_2_and_one_line(arguments, told, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fleet", *arguments])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(AssertionError("not all are Ready"), 1, id="nodes that do not become Ready"),
        pytest.param(ProcessError("etcd ended"), 3, id="a control plane that ends"),
        pytest.param(KeyboardInterrupt(), 130, id="a signal"),
    ],
)
def test_the_exit_code_tells_how_it_ended(error, code, monkeypatch, capsys):
    def broken(*_):
        raise error

    monkeypatch.setattr(sys, "argv", ["fleet"])
    monkeypatch.setattr(command, "interrupt_once", lambda: None)
    monkeypatch.setattr(command, "_run", broken)
    assert command.main() == code
    assert capsys.readouterr().out == ""


def test_the_full_nodes_are_named_first():
    assert names_of(Size(full=1, light=1)) == ["virtual-0000", "virtual-0001"]
