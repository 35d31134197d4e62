"""Several lock files, one truth: those of the demo and of the image are parts of the one for tests, and are enough."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDS_GRPC = {
    *(f"agent.cri.{name}" for name in ("api_pb2", "client", "convert", "reader")),
    *(f"agent.kubelet.runtime.{name}" for name in ("cri_configs", "cri_runtime", "cri_writer")),
    *(f"agent.kubelet.plugins.{name}" for name in ("api_pb2", "client")),
    *(f"agent.podsapi.{name}" for name in ("api_pb2", "client", "convert")),
}


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", (ROOT / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize(
    "name", ["requirements-run.lock", "images/requirements.lock", "images/requirements-wheel.lock"]
)
def test_a_lock_file_is_a_part_of_the_one_for_tests(name):
    every, part = pins("requirements.lock"), pins(name)
    assert 0 < len(part) < len(every)
    assert {name: every.get(name) for name in part} == part


@pytest.mark.parametrize(
    ("lock", "more", "without"),
    [
        pytest.param("requirements-run.lock", ", tools.demo.command", NEEDS_GRPC, id="the demo, which speaks no gRPC"),
        pytest.param("images/requirements.lock", "", {"kube.kubeconfig"}, id="the image, which reads no kubeconfig"),
    ],
)
def test_what_the_lock_file_holds_is_enough_to_import_all(lock, more, without):
    """Whatever else is installed here cannot be imported meanwhile."""
    held = set(pins(lock)) | {"readygate", "setuptools"}
    others = [name for name, of in packages_distributions().items() if not held & set(map(canonical, of))]
    program = f"""
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({others!r}))
import agent{more}
for name in ("agent", "cli", "extender", "kube"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{{name}}."):
        if not module.name.endswith(("__main__", ".conf")) and module.name not in {without!r}:
            importlib.import_module(module.name)
print(*{{name.partition(".")[0] for name in sys.modules}})
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    assert {"flask", "gunicorn", "httptools", "msgspec", "urllib3"} <= set(done.stdout.split())
    assert [name in others for name in ("kubernetes", "grpc")] == ["kube.kubeconfig" in without, without == NEEDS_GRPC]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
