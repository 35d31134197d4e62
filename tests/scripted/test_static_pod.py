"""The program that puts the static pod's manifest in place, on a host whose kubelet is this test: it starts a process
of the revision that it finds in the manifest, if that is one that works.
"""

import http.server
import json
import shutil
import subprocess
import sys
import threading

import pytest

from tests.kit.waiting import wait_until
from tests.playbooks.rendering import ROLES

PROGRAM = ROLES / "readygate_extender" / "files" / "static_pod.py"
KUBELET = ROLES / "readygate_scheduler_config" / "module_utils" / "readygate_scheduler" / "kubelet.py"
LIMIT_S = 2
BROKEN = "broken"


class Host:
    """Folders as on a host; a manifest's content is its revision."""

    def __init__(self, folder):
        self.manifests, self.ours = folder / "manifests", folder / "ours"
        self.manifests.mkdir()
        self.ours.mkdir()
        for program in (PROGRAM, KUBELET):
            shutil.copy(program, self.ours)
        self.waits, self.mirror = False, self.ours / "mirror"  # the kubelet waits until its mirror pod is changed
        self.manifest = self.manifests / "readygate-extender.yaml"
        self.wanted = self.ours / "wanted.yaml"
        self.seen = []  # all names that were ever in the kubelet's folder
        self._stop = threading.Event()
        self._process = None
        self._running = ""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        host = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if host._running not in ("", BROKEN) else 503)
                self.end_headers()

            def log_message(self, *_):
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self._thread.start()

    def close(self):
        self._stop.set()
        self._thread.join()
        self.server.shutdown()
        self._end()

    @property
    def running(self):
        return self._running

    def put(self, revision):
        """The exit code and the verdict."""
        done = subprocess.run(self.command(revision), timeout=40, check=False)
        return done.returncode, json.loads((self.ours / "verdict.json").read_text())

    def command(self, revision):
        self.wanted.write_text(revision)
        return [
            sys.executable,
            str(self.ours / PROGRAM.name),
            f"--wanted={self.wanted}",
            f"--manifest={self.manifest}",
            f"--earlier={self.ours / 'earlier.yaml'}",
            f"--verdict={self.ours / 'verdict.json'}",
            f"--revision={revision}",
            f"--ready=http://127.0.0.1:{self.server.server_address[1]}/readyz",
            f"--limit-s={LIMIT_S}",
            f"--mirror={json.dumps([str(self._kubectl()), '--namespace=readygate-system', 'readygate-extender-a'])}",
        ]

    def _kubectl(self):
        """One that says a UID, and writes down what it is to change."""
        program = self.ours / "kubectl"
        program.write_text(f'#!/bin/sh\ncase "$*" in *" patch "*) echo "$*" >> {self.mirror};; *) echo 9e8e;; esac\n')
        program.chmod(0o755)
        return program

    def _watch(self):
        while not self._stop.wait(0.01):
            names = {path.name for path in self.manifests.iterdir()}
            self.seen += sorted(names.difference(self.seen))
            found = self.manifest.read_text() if self.manifest.exists() else ""
            if found != self._running:
                self._end()
                self._running = ""
                if self.waits and not self.mirror.exists():
                    continue
                if found:
                    self._process = subprocess.Popen(["sleep", "60"], env={"READYGATE_REVISION": found, "PATH": "/bin"})
                self._running = found

    def _end(self):
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    yield made
    made.close()


def test_what_answers_stays_and_nothing_else_was_ever_in_the_kubelets_folder(host):
    assert (0, True) == (host.put("first")[0], host.put("second")[1]["put"])
    assert ("second", ["readygate-extender.yaml"]) == (host.manifest.read_text(), host.seen)
    assert not (host.ours / "earlier.yaml").exists()


def test_a_kubelet_that_waits_is_made_to_look_again(host):
    assert host.put("first")[1]["put"]
    assert not host.mirror.exists(), "the first one has nothing to wait for"
    host.waits = True
    assert host.put("second")[1]["put"]
    assert "patch pod readygate-extender-a --patch=" in host.mirror.read_text()


def test_what_does_not_answer_gives_way_to_the_earlier_one(host):
    host.put("first")
    code, verdict = host.put(BROKEN)
    assert (1, False, True) == (code, verdict["put"], verdict["back"])
    assert "the earlier one is back in place and answers" in verdict["said"]
    assert ("first", ["readygate-extender.yaml"]) == (host.manifest.read_text(), host.seen)


def test_where_there_was_none_there_is_none_again(host):
    code, verdict = host.put(BROKEN)
    assert (1, False, False) == (code, verdict["put"], host.manifest.exists())
    assert "there was no earlier one" in verdict["said"]


def test_an_interrupted_run_does_not_make_an_unproven_manifest_the_one_to_go_back_to(host):
    host.put("first")
    with subprocess.Popen(host.command(BROKEN)) as killed:
        wait_until(lambda: host.running == BROKEN, "the broken one in place", timeout_s=20)
        killed.kill()
    assert host.manifest.read_text() == BROKEN
    code, verdict = host.put(BROKEN)
    assert (1, True, "first") == (code, verdict["back"], host.manifest.read_text())


def test_the_earlier_one_is_asked_where_it_answers_which_may_be_another_port(host):
    """The manifest's own words are those of the role's template."""
    template = (ROLES / "readygate_extender" / "templates" / "static-pod.yaml.j2").read_text()
    assert "path: /readyz, port: {{ readygate_extender_port }}, scheme: " in template
    address, port = host.server.server_address
    first = f"{{host: {address}, path: /readyz, port: {port}, scheme: HTTP}}"
    host.put(first)
    command = [word for word in host.command(BROKEN) if not word.startswith("--ready=")]
    code = subprocess.run([*command, "--ready=http://127.0.0.1:1/readyz"], timeout=80, check=False).returncode
    verdict = json.loads((host.ours / "verdict.json").read_text())
    assert (1, True, first) == (code, verdict["back"], host.manifest.read_text())
    assert "the earlier one is back in place and answers" in verdict["said"]
