"""The commands in the runbook and the alerts are accepted."""

import re
import shlex

import pytest

from cli.__main__ import parser
from tests.charts.rendering import ROOT

TEXTS = [*sorted((ROOT / "docs" / "runbook").glob("*.md")), ROOT / "charts" / "readygate" / "files" / "alerts.yaml"]
TYPED = sorted(
    {
        (text.stem, " ".join(command.split()))
        for text in TEXTS
        for command in (
            re.findall(r"`kubectl readygate ([^`]+)`", text.read_text())
            if text.suffix == ".md"
            else re.findall(r"kubectl readygate ((?:why node|[a-z]+))", text.read_text())
        )
    }
)


@pytest.mark.parametrize(("page", "command"), TYPED)
def test_documented_commands_are_accepted(page, command):
    words = shlex.split(command.replace("{{ $labels.node }}", "NODE"))
    if page == "alerts" and words == ["why", "node"]:
        words.append("NODE")
    arguments = parser().parse_args(words)
    if words[0] == "lift":
        assert arguments.ids, "it must name an order"
    if words[0] == "exempt":
        assert arguments.lasts, "without an end the node stays open"


@pytest.mark.parametrize("page", [text.stem for text in TEXTS if text.suffix == ".md"])
def test_documented_log_commands_name_pod_and_namespace(page):
    text = (ROOT / "docs" / "runbook" / f"{page}.md").read_text()
    for command in re.findall(r"`(kubectl[^`]* logs [^`]*)`", text):
        assert "-n readygate-system" in command
        assert "pod/" in command or "POD" in command
