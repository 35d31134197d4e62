"""The commands of the README's part "Ansible", read from the README and run as they stand.

They run in the checkout as it is, but what they write goes elsewhere (an overlay that only they see): nobody's own
inventory.yml is touched. `ssh` and `kubectl` know the hosts' keys, as a person's own do.
"""

import os
import re
import shlex
import shutil
from pathlib import Path

from tests.hosts.deployment.playbook import Run, run_to_its_end
from tools.testbed.hosts.hosts import Hosts

ROOT = Path(__file__).resolve().parents[3]
_IN_OVERLAY = (
    'mount -t overlay overlay -o "lowerdir=$ROOT,upperdir=$UPPER,workdir=$WORK" "$ROOT" && cd "$ROOT" && exec "$@"'
)


def commands() -> list[str]:
    """Of the first console block below "### Ansible", without their comments."""
    text = (ROOT / "README.md").read_text().partition("\n### Ansible\n")[2]
    block = re.search(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = block[1].splitlines() if block else []
    return [line.removeprefix("$ ").partition("  #")[0].strip() for line in lines if line.startswith("$ ")]


# In this order, and no other command: each of them is run by a test of this folder.
IMAGE, LOAD, INVENTORY, CHECK, DEPLOY, STATUS, REMOVE = commands()


class Checkout:
    """Where the commands run, and the inventory they make there."""

    def __init__(self, hosts: Hosts, folder: Path, logs: Path) -> None:
        self._logs = logs
        self._progress = hosts.progress
        self._number = 0
        self._inventory = folder / "upper" / "inventory.yml"
        for name in ("upper", "work", "bin"):
            (folder / name).mkdir()
        for name in ("ssh", "scp", "sftp"):
            self._wrap(folder / "bin" / name, [shutil.which(name) or name, "-F", str(hosts.ssh_config)])
        self._wrap(folder / "bin" / "kubectl", [hosts.kubectl_path(), f"--kubeconfig={hosts.kubeconfig}"])
        self._environ = {
            **os.environ,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(folder / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),  # named by the host: not that of another cluster
            "ROOT": str(ROOT),
            "UPPER": str(folder / "upper"),
            "WORK": str(folder / "work"),
        }

    @staticmethod
    def _wrap(program: Path, command: list[str]) -> None:
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)

    def edit(self, *changes: tuple[str, str]) -> None:
        """What a person changes in the inventory: (old text, new text)."""
        text = self._inventory.read_text()
        for old, new in changes:
            assert old in text, f"the inventory lacks {old}"
            text = text.replace(old, new)
        self._inventory.write_text(text)

    def run(self, line: str) -> Run:
        """By the shell, output and errors together. Never raises for a command that fails: look at `code`."""
        self._number += 1
        command = ["unshare", "--mount", "sh", "-c", _IN_OVERLAY, "sh", "bash", "-c", line]
        run = run_to_its_end(command, self._environ)
        (self._logs / f"readme-{self._number}.log").write_text(f"$ {line}\n{run.output}")
        self._progress(f"$ {line[:60]}: code {run.code}, changed={run.changed}, {run.seconds:.1f} s")
        return run
