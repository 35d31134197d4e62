"""The module that looks at a host, run as Ansible runs it: what it prints is one document, whatever it finds."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.playbooks.rendering import ROLES

ROLE = ROLES / "readygate_scheduler_config"


def looked(folder: Path, **more: Any) -> dict[str, Any]:
    """The module's result, as Ansible reads it; `folder` is readygate's."""
    given = {"folder": folder, "target": folder.parent / "kube-scheduler.yaml", "api": False, **more}
    given |= {"kubeconfig": "/nowhere", "kubelet_kubeconfig": "/nowhere"}
    words = " ".join(f"{key}={value}" for key, value in given.items())
    environ = {
        "ANSIBLE_LIBRARY": str(ROLE / "library"),
        "ANSIBLE_MODULE_UTILS": str(ROLE / "module_utils"),
        "ANSIBLE_HOME": str(folder.parent / "ansible"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }
    command = [sys.executable, "-m", "ansible", "adhoc", "localhost", "--connection=local"]
    command += ["--module-name=readygate_scheduler_look", f"--args={words}"]
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=100, check=False)
    head, _, text = done.stdout.partition(" => ")
    assert head.startswith("localhost | "), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(text)
    return found


def interrupted(folder: Path, target: Path) -> None:
    """As a change leaves it that was ended before it renamed anything, before a reboot."""
    pending = folder / "pending"
    (pending / "proven").mkdir(parents=True)
    (pending / "before").write_text("kind: Pod\n")
    target.write_text("kind: Pod\n")
    job = {"id": "job-1", "target": str(target), "wanted": "kind: Other\n", "expected": "", "keep": False}
    job |= {"logs": "", "evidence": [], "opened": {"boot": "another", "until": 0.0, "old": []}}
    (pending / "job.json").write_text(json.dumps(job))


def test_what_an_interrupted_change_has_left_is_ended_and_told_in_the_result(tmp_path):
    folder = tmp_path / "readygate"
    interrupted(folder, tmp_path / "kube-scheduler.yaml")
    found = looked(folder, settle=True)
    assert ("failed", False) == (found["settled"]["outcome"], found["seen"]["open"])
    assert not (folder / "pending").exists()


def test_a_note_that_a_disk_has_lost_is_as_none(tmp_path):
    (tmp_path / "readygate" / "original").mkdir(parents=True)
    (tmp_path / "readygate" / "original" / "noted.json").write_bytes(b"\0" * 20)
    assert looked(tmp_path / "readygate")["seen"]["noted"] is None


def test_where_nothing_was_left_open_nothing_is_settled(tmp_path):
    assert looked(tmp_path / "readygate", settle=True)["settled"] is None
