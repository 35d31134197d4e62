"""Renders the templates of a role as Ansible does, with the role's own defaults and variables, in this process."""

import importlib.util
import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible import template as ansible_template
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import filter_loader, init_plugin_loader
from ansible.template import Templar

from tools.testbed.shared.tools import KUSTOMIZE, built

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
ROLES = PLAYBOOKS / "roles"
KUSTOMIZE_LIMIT_S = 60
PARTS = ("defaults", "vars")
ADMIN_SERVER = {"__readygate_extender_admin_server": "https://192.0.2.11:6443"}  # as preflight.yml finds it
IMAGE = "registry.example/readygate:1.1"  # a must
Objects = dict[tuple[str, str, str], dict[str, Any]]

# Of ansible-core 2.19 and later; before, every text was a template.
TRUSTED = {"trusted_as_template": True} if hasattr(ansible_template, "trust_as_template") else {}
trust = getattr(ansible_template, "trust_as_template", str)


def keep_compiled_templates() -> None:
    """A template is compiled once in this process, however often it is rendered: that is half of the time."""
    try:
        from ansible._internal._templating import _jinja_bits as bits
    except ImportError:  # before ansible-core 2.19
        return
    compile_template, compiled = bits.AnsibleEnvironment.compile, {}

    def compile_once(self: Any, source: Any, *more: Any, **also: Any) -> Any:
        if not isinstance(source, str) or also:
            return compile_template(self, source, *more, **also)
        context = bits._TemplateCompileContext.current(optional=True)
        syntax = [getattr(self, name) for name in SYNTAX]
        key = (str(source), *more, *syntax, bool(context and context.escape_backslashes))
        if key not in compiled:
            compiled[key] = compile_template(self, source, *more)
        return compiled[key]

    bits.AnsibleEnvironment.compile = compile_once


SYNTAX = (
    *("block_start_string", "block_end_string", "variable_start_string", "variable_end_string"),
    *("comment_start_string", "comment_end_string", "line_statement_prefix", "line_comment_prefix"),
    *("trim_blocks", "lstrip_blocks", "newline_sequence", "keep_trailing_newline"),
)
keep_compiled_templates()
init_plugin_loader([])  # without it the collection ansible.builtin is not known
for _folder in ROLES.glob("*/filter_plugins"):
    filter_loader.add_directory(str(_folder))


@cache
def read_of(role: str) -> dict[str, Any]:
    """The role's defaults and variables, by part. They are read once; nothing changes them."""
    loader, files = DataLoader(), {part: ROLES / role / part / "main.yml" for part in PARTS}
    return {part: loader.load_from_file(str(file), **TRUSTED) if file.exists() else {} for part, file in files.items()}


def render(role: str, given: dict[str, Any], over: dict[str, Any] | None = None) -> Any:
    """A function from a trusted expression to its value, with `given` as the variables of an inventory, and `over` in
    the place of the role's own."""
    folder = ROLES / role
    read = read_of(role)
    facts = {
        name: value for name, value in given.items() if name.startswith("__")
    }  # of a play, which win over the role
    given = {"readygate_image": IMAGE, **given, **read["vars"], **facts, **(over or {})}
    given["ansible_search_path"] = [str(folder)]
    templar = Templar(DataLoader(), variables=read["defaults"] | given)
    return lambda expression: templar.template(trust(f"{{{{ {expression} }}}}"))


def loaded(path: Path) -> Any:
    return yaml.load(path.read_text(), yaml.CSafeLoader)


def all_tasks() -> list[dict[str, Any]]:
    """Of all roles and plays, those of blocks too."""
    found: list[dict[str, Any]] = []
    files = [loaded(path) or [] for path in sorted(ROLES.glob("*/tasks/*.yml"))]
    plays = [play for path in sorted(PLAYBOOKS.glob("*.yml")) for play in loaded(path) if "hosts" in play]
    left = [task for tasks in files for task in tasks]
    left += [
        task
        for play in plays
        for part in ("pre_tasks", "tasks", "post_tasks", "handlers")
        for task in play.get(part, [])
    ]
    while left:
        task = left.pop(0)
        found.append(task)
        left = [each for part in ("block", "rescue", "always") for each in task.get(part, [])] + left
    return found


def kustomized(files: dict[str, str]) -> str:
    """What the kustomize of the oldest kubectl makes of them, as the module has kubectl do it on a host.
    It runs once for the same files."""
    return _kustomized(tuple(files.items()))


@cache
def _kustomized(files: tuple[tuple[str, str], ...]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files:
            place = Path(folder, path)
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        command = [str(built(KUSTOMIZE)), "build", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=KUSTOMIZE_LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def objects(role: str, given: dict[str, Any]) -> Objects:
    """What the role sends to the API server, by kind, namespace and name."""
    return keyed(kustomized(render(role, given)(f"__{role}_files")))


def named(role: str, given: dict[str, Any], template: str) -> Objects:
    """What is in a template of the role, as for `kubectl delete`."""
    return keyed(render(role, given)(f"lookup('ansible.builtin.template', '{template}.yaml.j2')") or "")


def extender_yaml(sent: Objects) -> str:
    """The extender's configuration of what is sent, whose ConfigMap is named by its content."""
    (text,) = [one["data"]["extender.yaml"] for one in sent.values() if "extender.yaml" in one.get("data", {})]
    return str(text)


def keyed(text: str) -> Objects:
    """The objects of YAML, none of which is there twice."""
    documents = [document for document in yaml.load_all(str.encode(text), yaml.CSafeLoader) if document]
    keyed = {(d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]): d for d in documents}
    assert len(keyed) == len(documents)
    return keyed


def filters(role: str) -> dict[str, Any]:
    """Those that the role brings along, as functions."""
    found: dict[str, Any] = {}
    for path in sorted((ROLES / role / "filter_plugins").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found |= module.FilterModule().filters()
    return found


def plain(value: Any) -> Any:
    """Without Ansible's tags, as JSON would carry it."""
    return json.loads(json.dumps(value))
