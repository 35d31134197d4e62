"""No scheduler is told to ask an extender that would close too many nodes: the tasks played beside one that answers."""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks.rendering import ROLES
from tools.kit.serving import serving

CLOSED = "node(s) reported unhealthy"


def told(closed: int, of: int) -> list[dict[str, Any]]:
    """As an extender tells it at /api/v1/nodes."""
    return [
        {
            "node": f"n{number}",
            "gates": [
                {
                    "severity": "gate",
                    "verdict": CLOSED if number < closed else "",
                    "heldBy": "",
                    "evidence": "cni: gone" if number < closed else "",
                }
            ],
        }
        for number in range(of)
    ]


@pytest.fixture
def extender():
    """`nodes` is what it tells; `asked` the paths."""

    class StatusApi(BaseHTTPRequestHandler):
        nodes: list[dict[str, Any]] = []  # noqa: RUF012 - the test sets it
        asked: list[str] = []  # noqa: RUF012
        reads = 0  # questions that come too early

        def do_GET(self) -> None:
            self.asked.append(self.path)
            early = len(self.asked) <= self.reads
            body = b"not read:\n pods" if early else json.dumps({"nodes": self.nodes}).encode()
            self.send_response(503 if early else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), StatusApi)
    StatusApi.url = f"http://127.0.0.1:{server.server_address[1]}"
    with serving(server):
        yield StatusApi


def play(folder: Path, variables: dict[str, Any]) -> tuple[int, str]:
    """Exit code and what was said of the tasks alone, by Ansible on this machine."""
    step = {"name": "Closures", "ansible.builtin.include_role": {"name": "readygate_objects", "tasks_from": "closures"}}
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    one = {"hosts": "localhost", "gather_facts": False, "vars": host | variables, "tasks": [step]}
    (folder / "play.yml").write_text(json.dumps([one]))
    environ = {
        **os.environ,
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_ROLES_PATH": str(ROLES),
        "http_proxy": "http://127.0.0.1:9",  # where nobody is: what is asked on the host itself goes past it
        "no_proxy": "",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", str(folder / "play.yml")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("closed", "of", "given", "refused"),
    [
        pytest.param(3, 10, {}, False, id="30 percent is not too many"),
        pytest.param(31, 100, {}, True, id="31 percent is"),
        pytest.param(31, 100, {"readygate_max_closed_percent": 31}, False, id="unless as many may be"),
        pytest.param(1, 10, {"readygate_max_closed_percent": 9}, True, id="or fewer"),
    ],
)
def test_an_extender_that_would_close_too_many_nodes_is_not_registered(tmp_path, extender, closed, of, given, refused):
    extender.nodes, extender.asked = told(closed, of), []
    code, said = play(tmp_path, given | {"readygate_objects_status_api_url": extender.url})
    assert (refused, ["/api/v1/nodes"]) == (code != 0, extender.asked), said
    if refused:
        assert f"readygate would close {closed} of {of} nodes, more than" in said
        assert f"n0: {CLOSED} (cni: gone)" in said
        assert ("n19: " in said, "n20: " in said, "..." in said) == (closed > 19, False, closed > 20)


def test_one_that_does_not_answer_yet_is_waited_for_by_one_quiet_task_that_says_why(tmp_path, extender):
    extender.nodes, extender.asked, extender.reads = told(0, 3), [], 1
    code, said = play(tmp_path, {"readygate_objects_status_api_url": extender.url})
    assert (0, 2) == (code, len(extender.asked)), said
    assert f"    waiting for {extender.url}/api/v1/nodes: not read: pods\n" in said
    assert "RETRYING" not in said
