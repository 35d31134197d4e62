"""`readygate-extender --rehearse`: all that it takes to decide, and nothing that anybody notices."""

import subprocess
import sys

import pytest
import yaml

from extender.config.settings import parse
from extender.process import dry_start
from tests.extender.builders import node_json, pod_json
from tools.fakes.api_server import FakeApiServer


@pytest.fixture
def api():
    with FakeApiServer() as server:
        for name in ("good", "bad"):
            server.put(node_json(name, Ready="True"))
        server.put(pod_json("good"))
        server.put(pod_json("bad", Ready="False"))
        yield server


def configuration(api, folder):
    return {
        "listen": {"port": 1, "user": 69376},  # neither of which it takes
        "kubernetes": {"kubeconfig": str(api.write_kubeconfig(folder / "kubeconfig"))},
        "feed": {"socket": str(folder / "feed" / "socket")},
    }


def test_it_says_what_it_would_decide_and_leaves_no_trace(api, tmp_path):
    file = tmp_path / "extender.yaml"
    file.write_text(yaml.safe_dump(configuration(api, tmp_path)))
    command = [sys.executable, "-m", "extender", "--config", str(file), "--rehearse"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert (0, f"{file}: 2 nodes, 1 of them closed\n") == (done.returncode, done.stdout), done.stderr
    assert [] == [one for one in api.requests if one.method != "GET"]
    assert not (tmp_path / "feed").exists()


def test_without_an_api_server_it_says_what_it_could_not_read(api, tmp_path):
    settings = parse(yaml.safe_dump(configuration(api, tmp_path)))
    api.refuse()
    with pytest.raises(dry_start.StartError, match=r"no verdict within 0.5 s, not read: pods, nodes, leases"):
        dry_start.rehearse(settings, limit_s=0.5)
