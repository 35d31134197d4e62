"""The playbooks pass ansible-lint's strictest profile, without a look at the network."""

import os
import subprocess
import sys
from pathlib import Path

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"


def test_ansible_lint_finds_nothing(tmp_path):
    lint = Path(sys.executable).with_name("ansible-lint")
    environ = {
        **os.environ,
        "NO_COLOR": "1",
        "ANSIBLE_HOME": str(tmp_path),
        "PATH": f"{lint.parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        [lint, "--offline", "--format=pep8", "site.yml", "uninstall.yml", "inventory-sample.yml"],
        cwd=PLAYBOOKS,
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
