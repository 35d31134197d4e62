"""Runs the project's playbooks over SSH with the settings a test wants; the user's own way is readme.py's."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.kit.causes import spent_on
from tools.testbed.hosts.hosts import Hosts

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
_LIMIT_S = 1500.0  # of a play that hangs


@dataclass(frozen=True)
class Run:
    """`changed`: tasks that changed something, over all hosts; `output`: what the user saw."""

    code: int
    output: str
    seconds: float

    @property
    def changed(self) -> int:
        return sum(int(count) for count in re.findall(r"changed=(\d+)", self.output))

    def told(self) -> str:
        """The message of the task that failed, or the end of the output."""
        failed = re.findall(r"^fatal: .*", self.output, re.MULTILINE)
        return failed[-1] if failed else self.output[-2000:]


def run_to_its_end(command: list[str], environ: dict[str, str], limit_s: float = _LIMIT_S) -> Run:
    """Output and errors together. Never raises for a command that fails: look at `code`."""
    started = time.monotonic()
    with spent_on("Ansible"):
        done = subprocess.run(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
            check=False,
        )
    return Run(done.returncode, done.stdout, time.monotonic() - started)


class Ansible:
    """`variables` go into every run, as in a group_vars file; the outputs are kept in `logs`. limit_s: of one run."""

    def __init__(
        self, hosts: Hosts, folder: Path, logs: Path, variables: dict[str, Any], limit_s: float = _LIMIT_S
    ) -> None:
        self._folder = folder
        self._hosts = hosts
        self.variables = variables
        self._logs = logs
        self._environ = {
            **os.environ,
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_HOME": str(folder / "ansible"),
            # Of its own: the sockets are named by the host, and control-1 of another cluster is another host.
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
            "ANSIBLE_ROLES_PATH": str(PLAYBOOKS / "roles"),
        }
        self._number = 0
        self._limit_s = limit_s
        self._progress = hosts.progress

    def run(
        self,
        playbook: Path | str,
        *,
        check: bool = False,
        limit: str = "",
        tags: str = "",
        hosts: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> Run:
        """Never raises for a failed play: look at `code`. hosts: the control planes of the inventory, if not all.
        tags: of the part that a test is about, where that is not the whole. environ: more of Ansible's own."""
        command = self._command(playbook, {**self.variables, **variables}, hosts)
        command += ["--check", "--diff"] if check else []
        command += ["--limit", limit] if limit else []
        command += ["--tags", tags] if tags else []
        run = run_to_its_end(command, {**self._environ, **(environ or {})}, self._limit_s)
        name = f"ansible-{self._number}-{Path(playbook).stem}{'-check' if check else ''}"
        (self._logs / f"{name}.log").write_text(run.output)
        self._progress(f"{name}: code {run.code}, changed={run.changed}, {run.seconds:.1f} s")
        return run

    @contextmanager
    def begin(
        self, playbook: Path | str, *, tags: str = "", hosts: Sequence[str] = (), **variables: Any
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A run that is not waited for: its process, which is ended with all it has started."""
        command = self._command(playbook, {**self.variables, **variables}, hosts)
        command += ["--tags", tags] if tags else []
        log = self._logs / f"ansible-{self._number}-{Path(playbook).stem}-begun.log"
        with (
            log.open("wb") as output,
            subprocess.Popen(
                command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _command(self, playbook: Path | str, variables: dict[str, Any], hosts: Sequence[str]) -> list[str]:
        """Of the next run, with an inventory of its own."""
        self._number += 1
        inventory = self._folder / f"inventory-{self._number}.yml"
        inventory.write_text(self._hosts.inventory(hosts))
        command = [sys.executable, "-m", "ansible", "playbook", "-i", str(inventory)]
        return [*command, "--extra-vars", json.dumps(variables), str(PLAYBOOKS / playbook)]
