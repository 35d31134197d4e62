"""Makes an Ansible collection of playbooks/: `make collection`, into build/.

In a checkout modules, filters and their code lie in the roles that use them; a collection has one folder for each kind,
and calls a filter by its whole name. Nothing else differs.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PLAYBOOKS = ROOT / "playbooks"
KINDS = {"library": "modules", "module_utils": "module_utils", "action_plugins": "action", "filter_plugins": "filter"}
LEFT_OUT = shutil.ignore_patterns(*KINDS, "__pycache__")
README = """# readygate for Ansible

    ansible-playbook -i inventory.yml {name}.site

The playbooks are site, check, detach, prepare_control_plane, uninstall, node_plugin and node_plugin_uninstall;
inventory-sample.yml is beside them. The rest is in readygate's own documentation.
"""


def laid_out(folder: Path) -> Path:
    """The tree that ansible-galaxy builds of, in an empty folder."""
    galaxy = yaml.safe_load((PLAYBOOKS / "galaxy.yml").read_text())
    name = f"{galaxy['namespace']}.{galaxy['name']}"
    for path in sorted(PLAYBOOKS.glob("*.yml")):
        # A playbook of a collection is called by its name, which Ansible takes for one of Python.
        called = path.name if path.name.startswith("inventory") else path.name.replace("-", "_")
        _copy(path, folder / ("" if path.name == "galaxy.yml" else "playbooks") / called, name)
    _copy(PLAYBOOKS / "meta" / "runtime.yml", folder / "meta" / "runtime.yml", name)
    for role in sorted(PLAYBOOKS.glob("roles/*")):
        shutil.copytree(role, folder / "roles" / role.name, ignore=LEFT_OUT)
        for kind, called in KINDS.items():
            if (role / kind).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(role / kind, folder / "plugins" / called, ignore=ignored, dirs_exist_ok=True)
    for path in [*folder.glob("roles/**/*.yml"), *folder.glob("roles/**/*.j2"), *folder.glob("plugins/**/*.py")]:
        path.write_text(_called(path.read_text(), name))
    (folder / "README.md").write_text(README.format(name=name))
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")
    return folder


def _copy(source: Path, target: Path, name: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_called(source.read_text(), name))


def _called(text: str, name: str) -> str:
    """With what a collection calls otherwise: filters, and the code that modules share."""
    own = f"ansible_collections.{name}.plugins.module_utils"
    text = re.sub(r"\| (readygate_(?:scheduler|node|objects)_\w+\b)(?=[(\s}])", rf"| {name}.\1", text)
    text = re.sub(r"import_playbook: (\S+)", lambda match: match[0].replace("-", "_"), text)
    return re.sub(r"\bansible\.module_utils(\.readygate_| import readygate_)", rf"{own}\1", text)


def built(work: Path, target: Path) -> Path:
    """The archive. work: an empty folder."""
    command = [
        sys.executable,
        "-m",
        "ansible",
        "galaxy",
        "collection",
        "build",
        "--force",
        "--output-path",
        str(target),
    ]
    subprocess.run([*command, str(laid_out(work))], check=True, capture_output=True, text=True)
    (archive,) = target.glob("readygate-readygate-*.tar.gz")
    return archive


def main() -> int:
    argparse.ArgumentParser(prog="python -m tests.playbooks.collection", description=__doc__).parse_args()
    target = ROOT / "build" / "collection"
    shutil.rmtree(target, ignore_errors=True)
    (target / "tree").mkdir(parents=True)
    print(built(target / "tree", target).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
