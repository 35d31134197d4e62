"""The image on a real node: its pods run as the right user, with all they need and nothing to install with."""

import hashlib
import json

import pytest

from images.python import ROOT, source_files
from tests.hosts.waiting import wait_until

# One pod on each of two nodes prints this page; a pod for each line would cost a sandbox each.
_PAGE = """
import hashlib, importlib.util, json, os, pathlib, shutil, ssl, subprocess, sysconfig, urllib.request
import agent, cli, component, extender, kube
site = pathlib.Path(sysconfig.get_paths()['purelib'])
def help_of(program):
    return subprocess.run([program, '--help'], capture_output=True, text=True).stdout.strip()[:16]
def version():
    root = '/var/run/secrets/kubernetes.io/serviceaccount/'
    url = 'https://%s/version' % os.environ['KUBERNETES_SERVICE_HOST']
    context = ssl.create_default_context(cafile=root + 'ca.crt')
    return urllib.request.urlopen(url, context=context, timeout=60).status
files = list(site.rglob('*.py'))
print(json.dumps({
    'help': {name: help_of(name) for name in ('readygate-agent', 'readygate-extender', 'readygate')},
    'modules': {
        str(file.relative_to(site)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files if file.relative_to(site).parts[0] in ('agent', 'cli', 'component', 'extender', 'kube')
    },
    'user': [os.getuid(), os.getgid()],
    'uncompiled': [str(file) for file in files if not os.path.exists(importlib.util.cache_from_source(str(file)))],
    'installers': [name for name in ('pip', 'pip3', '/pip/bin/pip') if shutil.which(name)],
    'version': version(),
}))
"""
NODES = ("control-1", "worker-2")


def page_pod(node: str, image: str) -> dict:
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", _PAGE],
        "securityContext": {"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
    }
    spec = {
        "nodeName": node,
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True},
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"image-{node}"}, "spec": spec}


@pytest.fixture(scope="module")
def pages(hosts, image):
    """What a pod of the image prints, by node."""
    pods = [page_pod(node, image) for node in NODES]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    hosts.kubectl("apply", "--filename=-", stdin=listed)

    def phases() -> list[str]:
        words = "--output=jsonpath={range .items[*]}{.status.phase} {end}"
        return hosts.kubectl("get", *(f"pod/image-{node}" for node in NODES), words).stdout.split()

    try:
        wait_until(lambda: {"Pending", "Running"}.isdisjoint(phases()), lambda: f"both end: {phases()}")
        logs = {node: hosts.kubectl("logs", f"image-{node}").stdout for node in NODES}
        assert ["Succeeded"] * len(NODES) == phases(), logs
        yield {node: json.loads(text) for node, text in logs.items()}
    finally:
        hosts.kubectl("delete", "--now", "--ignore-not-found", "--filename=-", stdin=listed, check=False)


def test_every_entry_point_starts(pages):
    starts = dict.fromkeys(["readygate-agent", "readygate-extender", "readygate"], "usage: readygate")
    assert starts == pages["worker-2"]["help"]


def test_the_image_holds_the_code_of_this_checkout(pages):
    """Each module, none more and none less: a build's cache once gave the code of an earlier build."""
    ours = [path for path in source_files() if path.suffix == ".py"]
    digests = {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in ours}
    assert digests == pages["worker-2"]["modules"]


def test_the_image_runs_as_a_user_that_is_not_root(pages):
    assert [69375, 69375] == pages["worker-2"]["user"]


def test_every_module_comes_with_its_bytecode(pages):
    assert [] == pages["worker-2"]["uncompiled"]


def test_the_image_holds_no_installer(pages):
    assert [] == pages["worker-2"]["installers"]


@pytest.mark.parametrize("node", NODES)
def test_a_pod_reaches_the_api_server_at_its_service_address(pages, node):
    assert 200 == pages[node]["version"]
