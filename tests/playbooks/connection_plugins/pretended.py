"""Hosts that are not there: each answers any module by one output, has no file, or is down. READYGATE_HOSTS is a JSON
file, host -> lines of that output, null for down. With READYGATE_REHEARSED=1, which is for check mode, the module that
compares files runs on this machine, so that its differences are shown.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: pretended
short_description: hosts that are not there
description: Each answers any module by one output.
options: {}
extends_documentation_fragment: [connection_pipelining]
"""


class Connection(ConnectionBase):  # type: ignore[misc]
    transport = "pretended"
    has_pipelining = True

    def _connect(self) -> "Connection":
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:  # noqa: ARG002
        lines = json.loads(Path(os.environ["READYGATE_HOSTS"]).read_text())[self._play_context.remote_addr]
        if lines is None:
            raise AnsibleConnectionFailure("no route to host")
        if os.environ.get("READYGATE_REHEARSED") == "1" and in_data and b"readygate_files" in in_data:
            done = subprocess.run(["sh", "-c", cmd], input=in_data, capture_output=True, check=False)
            return done.returncode, done.stdout, done.stderr
        answer: dict[str, Any] = {
            "changed": True,
            "rc": 0,
            "stdout": "\n".join(lines),
            "stderr": "",
            "stat": {"exists": False},
        }
        return 0, json.dumps(answer).encode(), b""

    def put_file(self, in_path: str, out_path: str) -> None:
        raise AnsibleConnectionFailure(f"{in_path} is for nobody: pipelining is on ({out_path})")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        raise AnsibleConnectionFailure(f"{in_path} is nowhere ({out_path})")

    def close(self) -> None:
        """Nothing is open."""
