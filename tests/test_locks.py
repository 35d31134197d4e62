"""Two lock files, one truth: the demo's is a part of the one for tests, and holds all that the demo imports."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", (ROOT / name).read_text(), re.MULTILINE))


def test_the_demos_lock_file_is_a_part_of_the_other():
    every, run = pins("requirements.lock"), pins("requirements-run.lock")
    assert len(run) < len(every)
    assert {name: every.get(name) for name in run} == run


def test_the_demo_imports_only_what_its_lock_file_holds():
    program = """
import importlib, pkgutil, sys, tests.demo.command
for name in ("agent", "cli", "extender", "kube"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        if not module.name.endswith(("__main__", ".conf")):
            importlib.import_module(module.name)
print(*{name.partition(".")[0] for name in sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {
        re.sub(r"[-_.]+", "-", distribution).lower()
        for name in done.stdout.split()
        for distribution in packages_distributions().get(name, [])
    } - {"readygate", "pip", "setuptools"}
    assert imported - set(pins("requirements-run.lock")) == set()
    assert {"cryptography", "msgspec", "gunicorn"} <= imported
