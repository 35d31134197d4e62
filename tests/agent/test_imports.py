"""What the agent does not load: asked in a fresh process."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripted.tls import make_authority

SCRIPT = """
import sys
from agent import __main__, settings
text = b'mode: pod\\nlisten: {{address: 127.0.0.1}}\\n'
text += b'checks: [{{name: cni, cni: {{}}}}, {{name: h, httpGet: {{port: 1}}}}]\\n{more}'
loaded = settings.parse(text, {{}})
try:
    __main__.build(loaded)
except Exception as e:
    print(type(e).__name__)
from component.command import product_version
product_version()
watched = {{"flask", "kubernetes", "urllib3", "grpc", "gunicorn", "prometheus_client", "ssl", "_hashlib", "email"}}
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & watched))
"""
PUBLISH = "condition: {{publish: true, podName: p, podNamespace: n, podUID: u}}\\n"


def loaded(more: str) -> str:
    script = SCRIPT.format(more=more.replace("{{", "{").replace("}}", "}"))
    environ = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100, env=environ
    ).stdout


def test_what_a_look_at_services_needs_is_loaded_before_its_time_counts() -> None:
    script = """
import sys
from agent.checks.builtin import service_path
before = "ssl" in sys.modules
service_path.Check(service_path.Settings(service="192.0.2.1"), 1.0)
known = set(sys.modules)
from agent.probe.tls import tls_context
print(before, "ssl" in known, "agent.probe.tls" in known, tls_context.cache_info().currsize)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert "False True True 1\n" == done.stdout


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param("", "\n", id="checks alone: neither an HTTP client nor OpenSSL, which is an eighth of the memory"),
        pytest.param(
            PUBLISH,
            "CredentialsInvalid\n_hashlib email ssl urllib3\n",
            id="in a cluster: urllib3, not the package kubernetes",
        ),
    ],
)
def test_only_what_is_used_is_imported(more: str, expected: str) -> None:
    assert expected == loaded(more)


GRPC_SCRIPT = """
import sys
from pathlib import Path
from agent import settings
from agent.cri import rpc
from agent.modes import kubelet, node
from kube.auth import Connection, NoToken
text = "mode: kubelet\\nkubelet: {{nodeName: n, podCIDR: 127.20.1.0/24, rootDir: {folder}}}"
kubelet.assemble(settings.parse(text.encode(), {{}}), Connection("http://127.0.0.1:1", None, NoToken()))
before = {{"grpc", "google"}} & {{name.partition(".")[0] for name in sys.modules}}
rpc.load("grpc")
print(sorted(before), "grpc" in sys.modules)
"""


def test_modes_kubelet_and_node_load_no_grpc_before_there_is_a_call(tmp_path: Path) -> None:
    script = GRPC_SCRIPT.format(folder=tmp_path)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert "[] True\n" == done.stdout


NODE_SCRIPT = """
import sys
from agent import __main__, settings
text = '''mode: node
profile: default
node:
  name: n
  server: https://127.0.0.1:1
  certificateAuthority: {folder}/ca.crt
  certificate: {folder}/client.crt
  key: {folder}/client.key
  heartbeat: {{}}
'''
__main__.build(settings.parse(text.encode(), {{}}))
never = {{"kubernetes", "grpc", "google", "flask", "gunicorn", "prometheus_client"}}
roots = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(never & roots), "kube.kubeconfig" in sys.modules, "urllib3" in roots)
"""


def test_the_service_on_a_node_is_who_the_kubelet_is_without_the_package_for_kubeconfigs(tmp_path: Path) -> None:
    """Nor any other that it does not use before there is a call: put together whole, by the kubelet's certificate."""
    make_authority(tmp_path)
    script = NODE_SCRIPT.format(folder=tmp_path)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert "[] False True\n" == done.stdout
