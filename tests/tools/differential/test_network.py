"""Where the comparison has to have a network of its own it does not begin without."""

from pathlib import Path

import pytest

from tools.differential import __main__ as differential


class BegunError(Exception):
    pass


def _begins(_executable: Path) -> None:
    raise BegunError


@pytest.mark.parametrize(
    ("ci", "uid", "begins"),
    [
        pytest.param("", 1000, True, id="a user whose kernel does not allow it: on this machine's loopback"),
        pytest.param("true", 1000, False, id="CI"),
        pytest.param("", 0, False, id="root"),
    ],
)
def test_without_a_network_of_its_own(
    ci: str, uid: int, begins: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("sys.argv", ["differential", "--only", "backoff"])
    monkeypatch.setattr(differential.os, "getuid", lambda: uid)
    monkeypatch.setattr(differential.signal, "signal", lambda *_: None)
    for name, stand_in in (
        ("driver", lambda **_: Path("/nowhere")),
        ("leave_network", lambda: False),
        ("Kubelet", _begins),
    ):
        monkeypatch.setattr(differential, name, stand_in)
    if begins:
        with pytest.raises(BegunError):
            differential.main()
    else:
        assert 2 == differential.main()
    assert "no network of our own is allowed here" in capsys.readouterr().out
