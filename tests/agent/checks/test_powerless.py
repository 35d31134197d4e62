"""An agent without the rights that a check needs knows nothing of the node: it says so, and closes nothing."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.kit.powerless import powerless
from tools.kit.programs import CHECKOUT, python_environ

# By kind of check, what it is told to look at.
KINDS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "certificates": lambda shut: {"folder": f"{shut}"},
    "cni": lambda shut: {"confDir": f"{shut}"},
    "filesystem": lambda shut: {"mounts": [f"{shut}/mount"]},
    "kubeletPlugins": lambda shut: {"folder": f"{shut}"},
    "podAddresses": lambda shut: {"confDir": f"{shut}"},
    "runtime": lambda shut: {"socket": f"{shut}/a.sock"},
    "systemdUnit": lambda shut: {"units": ["a.service"], "socket": f"{shut}/a.sock"},
}
WHY = re.compile("Permission denied|no rights to open the socket")


def said(folder: Path, *, mode: int) -> dict[str, tuple[str, str]]:
    """Of `--once`, where the folder has this mode and all in it none: by check, its state and what it prints."""
    shut = folder / "shut"
    shut.mkdir()
    (shut / "mount").mkdir()
    for name in ("kubelet.crt", "10-net.conflist"):
        (shut / name).write_text("{}")
    checks = [{"name": kind.lower(), kind: settings(shut)} for kind, settings in KINDS.items()]
    config = folder / "agent.yaml"
    config.write_text(json.dumps({"mode": "pod", "checks": checks}))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(shut / "a.sock"))
        listener.listen()
        for path in shut.iterdir():
            path.chmod(0)
        shut.chmod(mode)
        argv = powerless([sys.executable, "-m", "agent", "--config", str(config), "--once", "-o", "json"])
        ended = subprocess.run(argv, env=python_environ(), cwd=CHECKOUT, capture_output=True, text=True, timeout=60)
    shut.chmod(0o700)
    assert "" == ended.stderr
    told: dict[str, Any] = json.loads(ended.stdout)
    return {one["name"]: (one["state"], one["output"]) for one in told["checks"]}


@pytest.mark.parametrize("mode", [pytest.param(0o755, id="what is in it"), pytest.param(0, id="the folder itself")])
def test_what_may_not_be_looked_at_is_unknown_and_says_why(tmp_path: Path, mode: int) -> None:
    told = said(tmp_path, mode=mode)
    assert {kind.lower(): "unknown" for kind in KINDS} == {name: state for name, (state, _) in told.items()}
    assert [] == [f"{name}: {output}" for name, (_, output) in told.items() if not WHY.search(output)]
