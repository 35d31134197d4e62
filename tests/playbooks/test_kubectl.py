"""What the modules of the roles take of kubectl on a host: nothing of it lasts for ever or ends without a word."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.playbooks.modules import know_what_they_share

know_what_they_share()

from readygate_objects import kubectl  # noqa: E402 - found by the line before

ROOT = Path(__file__).parents[2]


@pytest.fixture
def call(tmp_path, monkeypatch):
    """`get nodes` by a kubectl that is as its words say, with little time."""
    program = tmp_path / "kubectl"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def get(script, limit_s=20.0):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(kubectl, "LIMIT_S", limit_s)
        return kubectl.Kubectl("/admin.conf", "ns").get("nodes")

    return get


def test_what_it_says_is_read_and_what_it_warns_of_is_not(call):
    assert {"items": []} == call("echo 'Warning: old' >&2; echo '{\"items\": []}'")


def test_preferences_of_whoever_uses_it_on_the_host_are_left_aside(call):
    assert {"items": ["off"]} == call("""printf '{"items": ["%s"]}' "$KUBERC" """)


@pytest.mark.parametrize(
    ("script", "limit_s", "told"),
    [
        pytest.param("exec sleep 60", 0.2, "kubectl get has not ended within 0.2 s", id="one that hangs"),
        pytest.param("echo Using context a", 20.0, "no JSON: Using context a", id="one that chats"),
        pytest.param("echo refused >&2; exit 1", 20.0, "refused", id="one that fails"),
        pytest.param("exit 7", 20.0, "kubectl ended with code 7", id="one that fails without a word"),
    ],
)
def test_what_goes_wrong_is_told(call, script, limit_s, told):
    with pytest.raises(OSError, match=told):
        call(script, limit_s)


def test_names_are_kubectls_whatever_the_language_of_the_host_is(tmp_path):
    """As with Python 3.6 where the host has none, and with a language of another encoding."""
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho \'{"items": ["Größe"]}\'\n')
    (tmp_path / "kubectl").chmod(0o755)
    program = """
from tests.playbooks.modules import know_what_they_share
know_what_they_share()
from readygate_objects import kubectl
print(ascii(kubectl.Kubectl("/admin.conf", "ns").get("nodes")))
"""
    told = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=told, cwd=ROOT, capture_output=True, timeout=60, check=False
    )
    assert (b"{'items': ['Gr\\xf6\\xdfe']}\n", b"") == (done.stdout, done.stderr)
