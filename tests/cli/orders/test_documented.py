"""The orders in docs/caps.md print what the document shows. The commands run one after the other."""

import re
import shlex
import time
from pathlib import Path

import pytest

from cli.__main__ import main
from kube.times import parse_time
from tests.extender.builders import node_json
from tools.fakes.api_server import FakeApiServer

CAPS = (Path(__file__).resolve().parents[3] / "docs" / "caps.md").read_text()
PROGRAM = "$ readygate "
NOT_HERE = ("lint", "record", "replay")  # run by tests/test_docs.py and tests/cli/replay


def shown():
    """(command, what is printed) of each."""
    blocks = re.findall(r"^```console\n(.*?)^```", CAPS, re.DOTALL | re.MULTILINE)
    parts = [part for block in blocks for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE) if part]
    found = [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]
    return [one for one in found if not one[0].removeprefix(PROGRAM).startswith(NOT_HERE)]


COMMANDS = {command.removeprefix("$ ") for command, _ in shown()}


@pytest.fixture
def api(tmp_path, monkeypatch):
    """Two nodes of the pool gpu and one of another, at noon, for a user called anna."""
    with FakeApiServer() as api, monkeypatch.context() as changed:
        api.put({"kind": "Namespace", "metadata": {"name": "readygate-system"}})
        for number, pool in enumerate(("gpu", "gpu", "web"), start=1):
            one = node_json(f"n-{number}")
            one["metadata"]["labels"] = {"readygate.dev/pool": pool}
            api.put(one)
        changed.setenv("KUBECONFIG", str(api.write_kubeconfig(tmp_path / "kubeconfig")))
        changed.setenv("COLUMNS", "104")
        changed.setenv("TZ", "UTC")
        time.tzset()
        changed.setattr("getpass.getuser", lambda: "anna")
        changed.setattr("time.time", lambda: parse_time("2026-11-22T12:00:00Z"))
        yield api
    time.tzset()


@pytest.mark.usefixtures("api")
def test_documented_output_is_what_is_printed(capsys):
    printed = []
    for command, _ in shown():
        main(shlex.split(command.removeprefix(PROGRAM)))
        written = capsys.readouterr()
        printed.append((command, written.out + written.err))
    assert shown() == printed
    assert {"hold", "exempt", "pause", "arm", "orders", "lift"} == {command.split()[2] for command, _ in printed}
