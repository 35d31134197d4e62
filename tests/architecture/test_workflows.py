""".github and .pre-commit-config.yaml parse, run make targets only and pin actions; a manager renews each lock file."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").iterdir())
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").iterdir() if path.name != "config.yml")
TARGETS = set(re.findall(r"^([a-z0-9-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))
# `make lock-image` renews it: no manager knows its format. `make push` refuses an image with packages it does not list.
RENEWED_BY_HAND = {"images/debian.lock"}


def load(path: Path) -> dict[Any, Any]:
    """Returns the mapping in a YAML file."""
    content = yaml.safe_load(path.read_text())
    assert isinstance(content, dict)
    return content


def jobs(path: Path) -> list[dict[str, Any]]:
    return list(load(path)["jobs"].values())


def is_make(line: str) -> bool:
    """Reports whether a line is `make TARGET`, with variables at most, and the Makefile has the target."""
    words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    return len(words) == 2 and words[0] == "make" and words[1] in TARGETS and not re.search(r"[;&|$`<>]", line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("make test", True),
        ('make image ARCH="amd64 arm64"', True),
        ("make no-such-target", False),
        ("make test; reboot", False),
        ("make image ARCH=${{ github.head_ref }}", False),
        ("pip install something", False),
    ],
)
def test_which_line_is_a_make_target(line: str, expected: bool) -> None:
    assert expected == is_make(line)


def test_there_are_workflows_for_each_push_each_night_and_each_tag() -> None:
    # YAML 1.1 reads the key `on` as true.
    events = {path.stem: set(load(path)[True]) for path in WORKFLOWS}
    assert events["gate"] >= {"push", "pull_request"}
    assert "schedule" in events["nightly"]
    assert set(load(GITHUB / "workflows" / "release.yml")[True]["push"]) == {"tags"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_each_step_of_a_workflow_is_a_make_target_or_a_pinned_action(path: Path) -> None:
    steps = [step for job in jobs(path) for step in job["steps"]]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert len(steps) == len(actions) + len([step for step in steps if "run" in step])
    assert lines
    assert [line for line in lines if not is_make(line)] == []
    assert [action for action in actions if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action)] == []
    assert len(re.findall(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", path.read_text(), re.MULTILINE)) == len(actions)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_its_jobs_end(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}
    assert all("permissions" not in job and job["timeout-minutes"] for job in jobs(path))


def test_code_of_forks_runs_on_no_machine_of_the_project() -> None:
    from_forks = [path for path in WORKFLOWS if "pull_request" in load(path)[True]]
    assert [job["runs-on"] for path in from_forks for job in jobs(path)] == ["ubuntu-24.04"]
    assert not any("pull_request_target" in load(path)[True] for path in WORKFLOWS)


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_has_what_github_requires(path: Path) -> None:
    form = load(path)
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["options"] for field in fields if field["type"] == "dropdown")
    assert {field["type"] for field in form["body"]} <= {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def test_each_hook_before_a_commit_is_a_make_target_or_a_locked_tool() -> None:
    repositories = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert {repository["repo"] for repository in repositories} == {"local"}
    entries = [hook["entry"] for repository in repositories for hook in repository["hooks"]]
    tools = re.findall(r"^([\w-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    locked = {".venv/bin/ruff": "ruff", ".venv/bin/lint-imports": "import-linter"}
    assert [entry for entry in entries if not is_make(entry) and locked.get(entry.split()[0]) not in tools] == []


def test_each_lock_file_is_renewed_by_a_manager() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    renovate = json.loads((GITHUB / "renovate.json").read_text())
    patterns = [pattern.strip("/") for pattern in renovate["pip_requirements"]["managerFilePatterns"]]
    locks = {path for path in tracked if path.endswith(".lock")} - RENEWED_BY_HAND
    assert {path for path in locks if not any(re.search(pattern, path) for pattern in patterns)} == set()
    assert {pattern for pattern in patterns if not any(re.search(pattern, path) for path in locks)} == set()
    assert {"github-actions", "gomod", "pep621", "pip_requirements"} == set(renovate["enabledManagers"])


def test_each_file_that_a_rule_of_renovate_names_exists() -> None:
    rules = json.loads((GITHUB / "renovate.json").read_text())["packageRules"]
    names = [name.removesuffix("/**") for rule in rules for name in rule.get("matchFileNames", [])]
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []
