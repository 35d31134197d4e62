"""`readygate lint`: what it writes, and its exit codes."""

import json

import pytest

from cli.__main__ import main
from tools.kit.cases import cases


def deadlock(*statuses):
    """A gate whose allOf has these statuses of one condition."""
    entries = [{"of": "node", "type": "KernelDeadlock", "status": status} for status in statuses]
    return json.dumps({"gates": [{"healthPods": None, "conditions": {"allOf": entries}}]})


@pytest.fixture
def lint(tmp_path, capsys):
    def run(text):
        path = tmp_path / "extender.yaml"
        path.write_text(text)
        code = main(["lint", str(path)])
        return code, capsys.readouterr().out.replace(f"{path}: ", "").splitlines()

    return run


@cases(
    "text, code, begins",
    ("nothing is wrong", "", 0, ["ok"]),
    (
        "a note: it is taken",
        "gates: [{for: {resources: [example.com/a]}}]",
        0,
        ["note: gates[0].for.resources[0]: ", "ok"],
    ),
    (
        "always closed",
        deadlock("True", "False"),
        1,
        ["error: gates[0].conditions.allOf: "],
    ),
    (
        "a part without effect",
        deadlock("True", "True"),
        1,
        ["warning: gates[0].conditions.allOf[1]: "],
    ),
)
def test_findings_are_lines_and_decide_the_exit_code(lint, text, code, begins):
    found, lines = lint(text)
    assert (code, len(begins)) == (found, len(lines))
    assert all(line.startswith(begin) for line, begin in zip(lines, begins, strict=True))
