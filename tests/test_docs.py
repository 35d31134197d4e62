"""What the documents show is what the code does: each command is run by a test, each file is valid, each link leads
somewhere.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml

from agent import settings as agent_settings
from component.settings import SettingsError
from extender.config import settings as extender_settings
from extender.outlets import node_condition_text
from extender.policy.decision import Decision
from extender.policy.evidence import TOLD_HEALTHY, TOLD_NOT_YET_HEALTHY
from extender.policy.gates import gates_of
from extender.policy.reasons import CLOSED_UNHEALTHY, OPEN
from extender.policy.snapshot import Snapshot, sort_out
from extender.verbs import wire
from tests.cli.orders.test_documented import COMMANDS as OF_ORDERS
from tests.cli.replay.test_documented import REPLAY
from tests.cli.test_documented import COMMANDS as OF_THE_COMMAND
from tests.extender.snapshots import with_decisions
from tests.hosts.deployment import readme

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

# Commands too large to run here: the file of the test or of the step that runs each of them, and its words for it.
RUN_ELSEWHERE = {
    "make demo": ("tests/plane/test_demo.py", '["make", "demo", "STAY=0"]'),
    "make test": (".ci/run", "exec make test"),
    "make test-fast": ("tools/proof/steps.py", "(*LINT, RING_0"),
    "make lint": ("tools/proof/steps.py", "(*LINT, RING_0"),
    ".venv/bin/ansible-playbook -i inventory.yml playbooks/prepare-control-plane.yml --limit control-3": (
        "tests/hosts/controls/test_controls.py",
        'plays.run("prepare-control-plane.yml", hosts=THREE, limit="control-3")',
    ),
    ".venv/bin/ansible-playbook -i inventory.yml playbooks/node-plugin.yml --check --diff": (
        "tests/hosts/test_hosts_node_plugin.py",
        "ansible.run(INSTALL, check=True",
    ),
    ".venv/bin/ansible-playbook -i inventory.yml playbooks/node-plugin.yml": (
        "tests/hosts/test_hosts_node_plugin.py",
        "ansible.run(INSTALL, **given)",
    ),
    ".venv/bin/ansible-playbook -i inventory.yml playbooks/node-plugin-uninstall.yml": (
        "tests/hosts/test_hosts_node_plugin.py",
        "ansible.run(REMOVE)",
    ),
    "readygate record evening.recording --for 2h": ("tests/plane/test_replay.py", 'readygate("record", str(file), '),
    "make venv": ("Makefile", "test: venv"),
    "make bench": ("tests/plane/test_bench.py", '"-m", "tools.bench"'),
    ".venv/bin/python -m tools.bench --quick": ("tests/plane/test_bench.py", '"tools.bench", "--quick"'),
    ".venv/bin/python -m tools.bench --only scheduler": ("tests/plane/test_bench.py", '"--only"'),
    "make bench-agent": ("Makefile", "-m tools.bench.agent"),
    ".venv/bin/python -m tools.bench.agent --only checks": (
        "tests/scripted/test_bench_agent.py",
        '"tools.bench.agent", "--quick", "--only", "checks"',
    ),
    ".venv/bin/python -m tools.bench.tables build/bench-agent.json": (
        "tests/scripted/test_bench_agent.py",
        '"tools.bench.tables", str(saved)',
    ),
    ".venv/bin/python -m tools.testbed --ring plane up": (
        "tests/plane/test_plane_command.py",
        '("--ring", "plane", "up")',
    ),
    ".venv/bin/python -m tools.testbed kubectl get nodes": (
        "tests/plane/test_plane_command.py",
        '("kubectl", "get", "nodes")',
    ),
    ".venv/bin/python -m tools.testbed --ring plane down": (
        "tests/plane/test_plane_command.py",
        '("--ring", "plane", "down")',
    ),
}
# Run from the document itself, in their order, on ring 2.
OF_HELM = set(re.findall(r"^\$ (.*)$", (ROOT / "docs" / "helm.md").read_text(), re.MULTILINE))
# The README's part "Ansible" is run from the README itself, on ring 3: by these names, in this order.
DEPLOYMENT = ROOT / "tests" / "hosts" / "deployment"
DEPLOY = ["IMAGE", "LOAD", "INVENTORY", "CHECK", "DEPLOY", "STATUS", "REMOVE"]


def blocks(language: str) -> list[tuple[str, str]]:
    """(document, text) of each fenced block of a language."""
    return [
        (document.name, found)
        for document in DOCUMENTS
        for found in re.findall(rf"^```{language}\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)
    ]


COMMANDS = sorted(
    {
        line.removeprefix("$ ").partition("  #")[0].strip()
        for _, text in blocks("console")
        for line in text.splitlines()
        if line[:2] == "$ "
    }
)
YAML_FILES = {text.splitlines()[0].removeprefix("# "): text for _, text in blocks("yaml")}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_documents_is_run(command: str, tmp_path: Path) -> None:
    if command in RUN_ELSEWHERE:
        file, words = RUN_ELSEWHERE[command]
        assert words in (ROOT / file).read_text()
        return
    if command in OF_THE_COMMAND | OF_ORDERS | OF_HELM | {REPLAY}:
        return  # run there, and what it prints compared
    if command in readme.commands():
        name = DEPLOY[readme.commands().index(command)]
        assert getattr(readme, name) == command
        assert any(f"readme.{name}" in path.read_text() for path in DEPLOYMENT.glob("*.py"))
        return
    for name, text in YAML_FILES.items():
        (tmp_path / name).write_text(text)
    program, *arguments = command.split()
    done = subprocess.run([BIN / program, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"`make ([a-z0-9-]+)", " ".join(p.read_text() for p in DOCUMENTS))))
)
def test_each_make_target_of_the_documents_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_link_leads_to_a_file(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", " ".join(path.read_text() for path in DOCUMENTS))


@pytest.mark.parametrize(("path", "name"), sorted(set(TESTS)))
def test_each_test_that_the_documents_name_exists(path: str, name: str) -> None:
    assert f"\ndef {name}(" in (ROOT / path).read_text()


def test_the_documented_extender_file_is_the_defaults() -> None:
    assert extender_settings.parse(YAML_FILES["extender.yaml"]) == extender_settings.Settings()


@pytest.mark.parametrize("name", sorted(name for name in YAML_FILES if name.startswith("gate")))
def test_each_recipe_of_a_gate_is_one_that_the_extender_takes(name: str) -> None:
    gates = gates_of(extender_settings.parse(YAML_FILES[name]))
    assert [gate["name"] for gate in yaml.safe_load(YAML_FILES[name])["gates"]] == [gate.name for gate in gates]
    assert all(gate.needs_pod or gate.conditions or gate.by_starts for gate in gates)


@pytest.mark.parametrize("name", ["agent.yaml", "node.yaml", "kubelet.yaml", "kubelet-cri.yaml"])
def test_a_documented_agent_file_is_valid(name: str) -> None:
    assert agent_settings.parse(YAML_FILES[name].encode()).mode == yaml.safe_load(YAML_FILES[name])["mode"]


@pytest.mark.parametrize(
    ("mistake", "key"),
    [
        pytest.param("listen: {port: abc}", "listen.port", id="a wrong type"),
        pytest.param("listen: {port: 65536}", "listen.port", id="out of range"),
        pytest.param("listen: {prot: 80}", "listen.prot", id="an unknown key"),
        pytest.param("listen: {port: 80, port: 81}", "line 2, column 20", id="a key given twice"),
    ],
)
@pytest.mark.parametrize(
    ("parse", "begin"),
    [
        pytest.param(lambda text: agent_settings.parse(text.encode()), "mode: pod", id="agent"),
        pytest.param(extender_settings.parse, "log: {level: info}", id="extender"),
    ],
)
def test_a_mistake_in_either_file_is_the_documented_line(
    parse: Callable[[str], object], begin: str, mistake: str, key: str
) -> None:
    """`key: what is wrong, allowed: what`, as docs/configuration.md says."""
    with pytest.raises(SettingsError) as caught:
        parse(f"{begin}\n{mistake}\n")
    assert re.fullmatch(rf"{re.escape(key)}: [^\n]+, allowed: [^\n]+", str(caught.value))


def test_the_documented_checks_are_valid_beside_the_built_in_one() -> None:
    agent = yaml.safe_load(YAML_FILES["agent.yaml"])
    checks = yaml.safe_load(YAML_FILES["checks.yml"])["readygate_agent_checks"]
    parsed = agent_settings.parse(yaml.safe_dump({**agent, "checks": [*agent["checks"], *checks]}).encode())
    assert ["cni", *(check["name"] for check in checks)] == [check.name for check in parsed.checks]


def test_the_documented_filter_request_gets_the_documented_answer() -> None:
    request, answer = (text for document, text in blocks("json") if document == "extender-contract.md")
    nodes = {"node-1": Decision(OPEN), "node-2": Decision(CLOSED_UNHEALTHY), "node-3": Decision(OPEN)}
    names = wire.read_filter_args(request.encode()).node_names or []
    found = sort_out(names, with_decisions(Snapshot(), "health", nodes))
    assert msgspec.json.decode(answer) == msgspec.json.decode(wire.write_names(found.survivors, found.refused))


def test_the_words_that_people_alert_on_are_documented() -> None:
    """Reasons of the nodes' condition, and of the Events on nodes."""
    otherwise = {
        node_condition_text.HELD_OPEN,
        node_condition_text.WOULD_BE_CLOSED,
        node_condition_text.NOT_PREFERRED,
        node_condition_text.WARNED,
    }
    reasons = {*node_condition_text.WORDS.values(), *otherwise, TOLD_HEALTHY, TOLD_NOT_YET_HEALTHY}
    events = {"NodeClosed", "NodeOpened", "RefusedOnAllNodes", *(f"Node{reason}" for reason in otherwise)}
    told = (ROOT / "docs" / "configuration.md").read_text()
    part = told.partition("### Conditions and Events in the cluster")[2].partition("\n### ")[0]
    assert set() == {word for word in reasons | events if f"`{word}`" not in part}


def test_the_readme_is_one_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
