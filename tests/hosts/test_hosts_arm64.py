"""The arm64 image runs: every module is loaded, the agent runs checks, the extender answers a filter call.

It runs in an emulator, so any machine will do. It needs no hosts, but the packages that build the image, and Linux 6.7
(`tools.testbed.hosts.emulator`).
"""

import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from images import build
from tests.extender.builders import node_json, pod_json
from tests.hosts.waiting import PATIENT_S
from tests.scripted.extender_process import Asked
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.kit.ability import cannot_run
from tools.kit.child import Child
from tools.testbed.hosts import emulator

pytestmark = pytest.mark.usefixtures("able")
# Imports each module of readygate with its libraries: a library for another machine, or a missing one, fails here.
_IMPORTS = """
import importlib, pathlib, platform
import grpc, msgspec, httptools, yaml, flask, gunicorn, ssl, ctypes
root = pathlib.Path(grpc.__file__).parents[1]
names = [
    ".".join(path.relative_to(root).with_suffix("").parts)
    for package in ("agent", "cli", "component", "extender", "kube")
    for path in sorted((root / package).rglob("*.py"))
    if path.name not in {"__main__.py", "gunicorn.conf.py"} and path.name != "kubeconfig.py"
]
for name in names:
    importlib.import_module(name.removesuffix(".__init__"))
print(platform.machine(), len(names) > 300)
"""
CHECKS = [
    {"name": "shell", "exec": {"command": ["sh", "-c", 'test "$(uname -m)" = aarch64']}},
    {"name": "cni", "cni": {"confDir": "/tmp/net.d", "binDirs": ["/usr/bin"], "internalLoopback": True}},
    {"name": "files", "pressure": {"look": ["files"]}},  # no other process uses them up
]


@pytest.fixture(scope="module")
def root():
    """The files of the image in a folder. Not below pytest's, which keeps them: they are no keepsake."""
    if reason := emulator.obstacle():
        cannot_run(reason)
    with TemporaryDirectory(prefix="readygate-arm64-") as folder:
        for layer in build.image_of("arm64", print)[0].layers:
            subprocess.run(["tar", "--extract", "--gzip", f"--directory={folder}"], input=layer.blob, check=True)
        yield Path(folder)


@pytest.fixture(scope="module")
def run(root):
    """A command of the image to its end: (exit code, output)."""

    def run(*words):
        argv = emulator.argv(root, words, print)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENT_S, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize("program", ["readygate-agent", "readygate-extender", "readygate-people", "readygate"])
def test_every_entry_point_starts(run, program):
    code, said = run(program, "--help")
    assert (0, True) == (code, "usage: readygate" in said), said


def test_every_module_can_be_imported(run):
    assert (0, "aarch64 True\n") == run("python3", "-c", _IMPORTS)


def test_the_agent_reads_its_settings_and_runs_each_check(root, run):
    """One of them in a shell, one in a child process of Python."""
    (root / "tmp" / "net.d").mkdir()
    network = {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "true"}]}
    (root / "tmp" / "net.d" / "10.conflist").write_text(json.dumps(network))
    (root / "tmp" / "agent.yaml").write_text(json.dumps({"mode": "pod", "checks": CHECKS}))
    command = ("readygate-agent", "--config", "/tmp/agent.yaml")
    assert (0, "/tmp/agent.yaml: valid, mode pod\n") == run(*command, "--check")
    code, said = run(*command, "--once", "--output", "json")
    states = {each["name"]: each["state"] for each in json.loads(said)["checks"]}
    assert (0, dict.fromkeys(["shell", "cni", "files"], "passed")) == (code, states), said


class Emulated(Asked):
    """The extender of the image, with the credentials of a static pod."""

    def __init__(self, root: Path, server: str, folder: Path) -> None:
        account = {"server": server, "tokenFile": "/tmp/account/token", "caFile": "/tmp/account/ca.crt"}
        settings = {"listen": {"port": 0}, "people": {"port": 0}, "feed": {"socket": "/tmp/feed/socket"}}
        command = ["readygate-extender", "--config", "/tmp/extender.yaml"]

        def launch(name, _argv, *, environ, cwd):
            argv = emulator.argv(root, command, print)
            return Child(name, argv, log=cwd / f"{name}.log", environ=environ, cwd=cwd)

        super().__init__("extender", settings | {"kubernetes": account}, folder, launch=launch)
        self.config = root / "tmp" / "extender.yaml"

    def __enter__(self):
        self.start()
        return self

    def write(self) -> Path:
        self.config.write_text(json.dumps(self.settings))
        return self.config


def test_the_extender_answers_by_the_pods_of_an_api_server(root, tmp_path):
    authority = make_authority(tmp_path)
    account = root / "tmp" / "account"
    account.mkdir()
    (account / "token").write_text("secret")
    (account / "ca.crt").write_bytes((tmp_path / "ca.crt").read_bytes())
    with FakeApiServer(tls=authority.server_context()) as api:
        for name, ready in (("n1", "True"), ("n2", "False")):
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name, Ready=ready))
        with Emulated(root, api.url, tmp_path) as extender:
            extender.wait(lambda: extender.port and extender.get("/readyz")[0] == 200, timeout_s=PATIENT_S)
            answer = extender.filter(["n1", "n2"])
            assert (["n1"], ["n2"]) == (answer.NodeNames, list(answer.FailedAndUnresolvableNodes))
            assert 0 == extender.stop()[0], extender.log
