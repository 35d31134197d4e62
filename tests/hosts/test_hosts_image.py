"""The image on a real node: pods of it run, as who they should, with all they need and nothing to install with."""

import hashlib
import json

import pytest

from images.wheels import ROOT, source_files
from tools.testbed.hosts.network import Peer

_READ_API = """
import os, ssl, urllib.request
root = '/var/run/secrets/kubernetes.io/serviceaccount/'
request = urllib.request.Request('https://%s/version' % os.environ['KUBERNETES_SERVICE_HOST'])
context = ssl.create_default_context(cafile=root + 'ca.crt')
print(urllib.request.urlopen(request, context=context, timeout=10).status)
"""
_UNCOMPILED = """
import importlib.util, os, pathlib, sysconfig
import agent, cli, component, extender, kube
site = pathlib.Path(sysconfig.get_paths()['purelib'])
files = [file for file in site.rglob('*.py') if not os.path.exists(importlib.util.cache_from_source(str(file)))]
print(len(files))
"""

_MODULES = """
import hashlib, pathlib, sysconfig
site = pathlib.Path(sysconfig.get_paths()['purelib'])
for package in ('agent', 'cli', 'component', 'extender', 'kube'):
    for file in sorted((site / package).rglob('*.py')):
        print(file.relative_to(site), hashlib.sha256(file.read_bytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def run_in_pod(hosts, image):
    """Runs a command in a new pod of the image on a worker, returns its output."""
    made = []

    def run(command: list[str], node: str = "worker-1") -> str:
        name = f"image-{len(made)}"
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "nodeName": node,
                "restartPolicy": "Never",
                "securityContext": {"runAsNonRoot": True},
                "containers": [
                    {
                        "name": "main",
                        "image": image,
                        "imagePullPolicy": "Never",
                        "command": command,
                        "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
                    }
                ],
            },
        }
        hosts.kubectl("apply", "--filename=-", stdin=json.dumps(pod))
        made.append(name)
        phase = "--for=jsonpath={.status.phase}=Succeeded"
        done = hosts.kubectl("wait", f"pod/{name}", phase, "--timeout=40s", check=False)
        logs = hosts.kubectl("logs", name, check=False)
        assert done.returncode == 0, f"{done.stderr}{logs.stdout}{logs.stderr}"
        return logs.stdout

    yield run
    hosts.kubectl("delete", "pod", *made, "--now", "--ignore-not-found", check=False)


@pytest.mark.parametrize("program", ["readygate-agent", "readygate-extender", "readygate"])
def test_every_entry_point_starts(run_in_pod, program):
    assert "usage: readygate" in run_in_pod([program, "--help"])


def test_the_image_holds_the_code_of_this_checkout(run_in_pod):
    """Each module, none more and none less: a build's cache once gave the code of an earlier build."""
    ours = [path for path in source_files() if path.suffix == ".py"]
    digests = {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in ours}
    assert digests == dict(line.split() for line in run_in_pod(["python3", "-c", _MODULES]).splitlines())


def test_the_image_runs_as_a_user_that_is_not_root(run_in_pod):
    assert run_in_pod(["sh", "-c", "echo $(id -u):$(id -g)"]).strip() == "69375:69375"


def test_every_module_comes_with_its_bytecode(run_in_pod):
    assert run_in_pod(["python3", "-c", _UNCOMPILED]).strip() == "0"


def test_the_image_holds_no_installer(run_in_pod):
    assert run_in_pod(["sh", "-c", "command -v pip pip3 /pip/bin/pip || echo none"]).strip() == "none"


@pytest.mark.parametrize("peer", [Peer("control-1", 11), Peer("worker-2", 22)], ids=lambda peer: peer.name)
def test_a_pod_reaches_the_api_server_at_its_service_address(run_in_pod, peer):
    assert run_in_pod(["python3", "-c", _READ_API], node=peer.name).strip() == "200"
