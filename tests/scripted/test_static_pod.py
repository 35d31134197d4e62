"""The program that puts the static pod's manifest in place, on a host whose kubelet is this test: it starts a process
of the revision that it finds in the manifest, if that is one that works.
"""

import fcntl
import http.server
import json
import os
import re
import shutil
import signal
import socketserver
import subprocess
import sys
import threading

import pytest

from tests.playbooks.rendering import ROLES
from tools.kit.serving import serving
from tools.kit.waiting import wait_until

PROGRAM = ROLES / "readygate_extender" / "files" / "static_pod.py"
SHARED = ROLES / "readygate_scheduler_config" / "module_utils" / "readygate_scheduler"
RECOVER = "readygate-extender-recover"
LIMIT_S = 2
FOR_EVER_S = 60
# Processes are known by revision on all of the machine: those of other tests, which run beside these, are others.
OURS = f"-{os.getpid()}"
FIRST, SECOND, THIRD = f"first{OURS}", f"second{OURS}", f"third{OURS}"
BROKEN = f"broken{OURS}"  # not ready, for ever
ENDS, DEAF = f"ends{OURS}", f"deaf{OURS}"  # a process that ends; one that answers nothing and hears no SIGTERM either


class Sshd(socketserver.BaseRequestHandler):
    """Speaks first, and no HTTP."""

    def handle(self):
        self.request.sendall(b"SSH-2.0\r\n")


class Host:
    """Folders as on a host; a manifest's content is its revision."""

    def __init__(self, folder):
        self.manifests, self.ours, self.units = folder / "manifests", folder / "ours", folder / "units"
        for made in (self.manifests, self.ours, self.units):
            made.mkdir()
        shutil.copy(PROGRAM, self.ours)
        shutil.copytree(SHARED, self.ours / SHARED.name)
        self.systemd = folder / "systemd"  # what it was told
        self._environ = os.environ | {"PATH": f"{self._systemctl()}:{os.environ['PATH']}"}
        self.looks = True
        self.waits, self.mirror = False, self.ours / "mirror"  # the kubelet waits until its mirror pod is changed
        self.manifest = self.manifests / "readygate-extender.yaml"
        self.wanted = self.ours / "wanted.yaml"
        self.seen = []  # all names that were ever in the kubelet's folder
        self.asked = 0  # answers while ENDS was running
        self.held = False  # nothing is ready
        self._stop = threading.Event()
        self._process = None
        self._running = ""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        host = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if host._running == ENDS:
                    host.asked += 1
                    if host.asked > 1:  # the program looked for the process after the first answer
                        host._process.kill()
                if host._running != DEAF:
                    ready = host._running not in ("", BROKEN, ENDS) and not host.held
                    self.send_response(200 if ready else 503)
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

    def put(self, revision, *more):
        """The exit code and the verdict."""
        return self.run([*self.command(revision), *more]), self.verdict()

    def run(self, command):
        return subprocess.run(command, timeout=80, check=False, env=self._environ).returncode

    def killed(self, revision):
        """A run that is killed after the kubelet has the manifest, and before the new one is ready."""
        self.held = True
        with subprocess.Popen(self.command(revision), env=self._environ) as killed:
            wait_until(lambda: self.running == revision, "the manifest in place", timeout_s=60)
            killed.kill()
        self.held = False
        assert self.manifest.read_text() == revision

    def timer_fires(self):
        """What systemd does then: the exit code."""
        (line,) = [
            line for line in (self.units / f"{RECOVER}.service").read_text().splitlines() if line.startswith("ExecS")
        ]
        return self.run(line.removeprefix("ExecStart=").split())

    def verdict(self):
        return json.loads((self.ours / "verdict.json").read_text())

    def left(self):
        """Of a change that is not over."""
        pending = [path.name for path in self.ours.iterdir() if path.name.split(".")[0] in ("pending", "ended")]
        return sorted(pending + [path.name for path in self.units.iterdir()])

    def command(self, revision, ready=""):
        self.wanted.write_text(revision)
        return [
            sys.executable,
            str(self.ours / PROGRAM.name),
            f"--folder={self.ours}",
            f"--units={self.units}",
            "put",
            f"--manifest={self.manifest}",
            f"--revision={revision}",
            f"--ready={ready or f'http://127.0.0.1:{self.server.server_address[1]}/readyz'}",
            f"--limit-s={LIMIT_S if ready or revision in (BROKEN, ENDS, DEAF) else FOR_EVER_S}",
            f"--mirror={json.dumps([str(self._kubectl()), '--namespace=readygate-system', 'readygate-extender-a'])}",
        ]

    def _systemctl(self):
        """Its folder. It writes down what it is told."""
        program = self.units.with_name("bin") / "systemctl"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\necho "$*" >> {self.systemd}\n[ ! -e {self.systemd}-fails ]\n')
        program.chmod(0o755)
        return program.parent

    def _kubectl(self):
        """One that says a UID, and writes down what it is to change."""
        program = self.ours / "kubectl"
        program.write_text(f'#!/bin/sh\ncase "$*" in *" patch "*) echo "$*" >> {self.mirror};; *) echo 9e8e;; esac\n')
        program.chmod(0o755)
        return program

    def _watch(self):
        while not self._stop.wait(0.01):
            if not self.looks:
                continue
            names = {path.name for path in self.manifests.iterdir()}
            self.seen += sorted(names.difference(self.seen))
            found = self.manifest.read_text() if self.manifest.exists() else ""
            if found != self._running:
                self._end()
                self._running = ""
                if self.waits and not self.mirror.exists():
                    continue
                if found:
                    environ = {"READYGATE_REVISION": found, "PATH": "/bin"}
                    self._process = subprocess.Popen(["sleep", "100"], env=environ)
                self._running = found

    def _end(self):
        """As the kubelet does, whose patience with one that does not end is long."""
        if self._process is not None:
            if self._running != DEAF or self._stop.is_set():
                self._process.kill()
            self._process.wait()


@pytest.fixture
def host(tmp_path):
    made = Host(tmp_path)
    yield made
    made.close()


def test_what_answers_stays_and_nothing_else_was_ever_in_the_kubelets_folder(host):
    assert (0, True) == (host.put(FIRST)[0], host.put(SECOND)[1]["put"])
    assert (SECOND, ["readygate-extender.yaml"]) == (host.manifest.read_text(), host.seen)
    assert host.left() == []


def test_a_kubelet_that_waits_is_made_to_look_again(host):
    assert host.put(FIRST)[1]["put"]
    assert not host.mirror.exists(), "the first one has nothing to wait for"
    host.waits = True
    assert host.put(SECOND)[1]["put"]
    assert "patch pod readygate-extender-a --patch=" in host.mirror.read_text()


def test_one_whose_process_ends_gives_way_at_once(host):
    host.put(FIRST)
    code, verdict = host.put(ENDS, f"--limit-s={FOR_EVER_S}", f"--silent-s={FOR_EVER_S}")
    assert (1, True, FIRST) == (code, verdict["back"], host.manifest.read_text())
    assert "the process of the new manifest has ended; the earlier one is back in place and answers" in verdict["cause"]


def test_what_runs_beside_one_that_gives_way_is_ended_with_it(host):
    """The kubelet had told it to end a moment after its start, which nobody heard: for 30 s the earlier one could not
    be started."""
    host.put(FIRST)
    with subprocess.Popen(["sleep", "100"], env={"READYGATE_REVISION_BESIDE": ENDS, "PATH": "/bin"}) as beside:
        code, verdict = host.put(ENDS, f"--limit-s={FOR_EVER_S}", f"--silent-s={FOR_EVER_S}")
        assert (1, True, -signal.SIGKILL) == (code, verdict["back"], beside.wait(timeout=20))


def test_one_that_hears_nothing_gives_way_after_the_silence_and_is_ended(host):
    host.put(FIRST)
    code, verdict = host.put(DEAF, f"--limit-s={FOR_EVER_S}", "--silent-s=1")
    assert (1, True, FIRST) == (code, verdict["back"], host.manifest.read_text())
    assert "no extender has answered for 1 s; the earlier one is back in place and answers" in verdict["cause"]


def test_an_earlier_one_of_the_same_revision_is_not_ended_with_the_new_one(host):
    """A manifest that was edited by hand."""
    first = f"{BROKEN}, once"
    host.put(first)
    with subprocess.Popen(["sleep", "100"], env={"READYGATE_REVISION": BROKEN, "PATH": "/bin"}) as process:
        assert host.put(BROKEN)[1]["back"]
        assert process.poll() is None
        process.kill()


def test_an_earlier_one_of_the_same_revision_proves_nothing_while_the_kubelet_has_not_looked(host):
    first = f"{BROKEN}, once"
    host.put(first)
    host.looks = False
    with subprocess.Popen(["sleep", "100"], env={"READYGATE_REVISION": BROKEN, "PATH": "/bin"}) as process:
        code, verdict = host.put(BROKEN)
        process.kill()
    assert (1, True, first) == (code, verdict["back"], host.manifest.read_text())


def test_one_of_the_same_revision_that_the_kubelet_leaves_alone_does(host):
    """As where a comment is all that differs."""
    host.put(FIRST)
    host.looks = False
    with subprocess.Popen(["sleep", "100"], env={"READYGATE_REVISION": SECOND, "PATH": "/bin"}) as process:
        code, verdict = host.put(SECOND, f"--limit-s={FOR_EVER_S}", f"--silent-s={FOR_EVER_S}")
        process.kill()
    assert (0, SECOND) == (code, host.manifest.read_text()), verdict


def test_what_does_not_answer_gives_way_to_the_earlier_one(host):
    host.put(FIRST)
    code, verdict = host.put(BROKEN)
    assert (1, False, True) == (code, verdict["put"], verdict["back"])
    assert "the earlier one is back in place and answers" in verdict["cause"]
    assert (FIRST, ["readygate-extender.yaml"]) == (host.manifest.read_text(), host.seen)
    assert host.left() == []


def test_one_that_is_put_back_is_another_pod_to_the_kubelet_each_time(host):
    """The same one is let wait as if it had crashed: 23.6 s without an answer, the third time within two minutes."""
    manifest = "metadata:\n  annotations:\n{}    some: " + FIRST
    host.put(manifest.format(""))
    found = []
    for _ in range(2):
        host.put(BROKEN)
        found.append(host.manifest.read_text())
    mark = '    readygate.dev/put-back: "N"\n'
    assert [manifest.format(mark)] * 2 == [re.sub(r'"\d+"', '"N"', text) for text in found]
    assert 2 == len(set(found))


def test_where_there_was_none_there_is_none_again(host):
    code, verdict = host.put(BROKEN)
    assert (1, False, False) == (code, verdict["put"], host.manifest.exists())
    assert "there was no earlier one" in verdict["cause"]


def test_what_answers_at_the_port_in_another_language_is_no_extender(host):
    host.put(FIRST)
    sshd = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Sshd)
    with serving(sshd):
        code = host.run(host.command(BROKEN, f"http://127.0.0.1:{sshd.server_address[1]}/readyz"))
    assert (1, True, FIRST) == (code, host.verdict()["back"], host.manifest.read_text())


def test_whatever_fails_in_the_middle_the_earlier_one_is_put_back(host):
    """Where readiness is asked is what makes it fail here."""
    host.put(FIRST)
    code = host.run(host.command(BROKEN, "nonsense"))
    assert (1, True, FIRST) == (code, host.verdict()["back"], host.manifest.read_text())


def test_a_change_is_open_only_while_systemd_calls_to_end_it(host):
    host.put(FIRST)
    told = host.systemd.read_text().splitlines()
    assert ["daemon-reload", f"enable --now {RECOVER}.timer", f"disable --now {RECOVER}.timer"] == told[:3]
    host.killed(SECOND)
    timer = (host.units / f"{RECOVER}.timer").read_text()
    assert ["OnBootSec=1s", "WantedBy=timers.target"] == [
        line for line in timer.splitlines() if "Boot" in line or "W" in line
    ]


def test_without_a_timer_nothing_is_changed(host):
    host.put(FIRST)
    host.systemd.with_name("systemd-fails").touch()
    code, verdict = host.put(SECOND)
    assert (1, False, FIRST) == (code, verdict["put"], host.manifest.read_text())
    assert "the timer for `recover` could not be started" in verdict["cause"]
    assert "nothing was changed" in verdict["cause"]
    assert host.left() == []


@pytest.mark.parametrize(
    ("revision", "in_place"),
    [
        pytest.param(BROKEN, FIRST, id="backwards where the new one does not answer"),
        pytest.param(SECOND, SECOND, id="forwards where it does"),
    ],
)
def test_what_a_killed_run_has_left_the_host_ends_by_itself(host, revision, in_place):
    host.put(FIRST)
    host.killed(revision)
    assert host.timer_fires() == 0
    assert (in_place, revision == in_place) == (host.manifest.read_text(), host.verdict()["put"])
    assert ([], ["readygate-extender.yaml"]) == (host.left(), host.seen)


def test_after_a_restart_of_the_host_the_unproven_one_does_not_stay(host):
    host.put(FIRST)
    host.killed(SECOND)
    job = host.ours / "pending" / "job.json"
    job.write_text(json.dumps(json.loads(job.read_text()) | {"boot": "another"}))
    assert host.timer_fires() == 0
    assert (FIRST, True, []) == (host.manifest.read_text(), host.verdict()["back"], host.left())
    assert "the host was restarted during the change" in host.verdict()["cause"]


def test_a_run_that_was_killed_after_it_put_the_earlier_one_back_says_so(host):
    host.put(FIRST)
    host.killed(BROKEN)
    (host.ours / "pending" / "earlier.yaml").rename(host.manifest)
    assert host.timer_fires() == 0
    assert (FIRST, True, []) == (host.manifest.read_text(), host.verdict()["back"], host.left())


@pytest.mark.parametrize("damaged", [b"", b'{"manifest": '], ids=["empty", "half"])
def test_a_change_whose_job_a_disk_has_lost_is_set_aside_and_the_next_one_begins(host, damaged):
    host.put(FIRST)
    host.killed(BROKEN)
    (host.ours / "pending" / "job.json").write_bytes(damaged)
    assert host.timer_fires() == 0
    assert (False, BROKEN, []) == (host.verdict()["put"], host.manifest.read_text(), host.left())
    assert f"it is in {host.ours}/unreadable now" in host.verdict()["cause"]
    assert host.put(THIRD)[1]["put"]


def test_what_somebody_else_has_written_meanwhile_stays(host):
    host.put(FIRST)
    host.killed(BROKEN)
    host.manifest.write_text("by hand")
    assert host.timer_fires() == 0
    assert ("by hand", []) == (host.manifest.read_text(), host.left())
    assert "another program has changed" in host.verdict()["cause"]


def test_the_timer_leaves_a_run_alone_that_is_at_work(host):
    host.put(FIRST)
    host.killed(BROKEN)
    with (host.ours / "lock").open("w") as at_work:
        fcntl.flock(at_work, fcntl.LOCK_EX)
        assert (0, BROKEN) == (host.timer_fires(), host.manifest.read_text())
    assert (0, FIRST) == (host.timer_fires(), host.manifest.read_text())


def test_an_interrupted_run_does_not_make_an_unproven_manifest_the_one_to_go_back_to(host):
    host.put(FIRST)
    host.killed(BROKEN)
    code, verdict = host.put(BROKEN)
    assert (1, True, FIRST) == (code, verdict["back"], host.manifest.read_text())


def test_the_earlier_one_is_asked_where_it_answers_which_may_be_another_port(host):
    """The manifest's own words are those of the role's template."""
    template = (ROLES / "readygate_extender" / "templates" / "static-pod.yaml.j2").read_text()
    assert "path: /readyz, port: {{ readygate_extender_port }}, scheme: " in template
    address, port = host.server.server_address
    first = f"{{host: {address}, path: /readyz, port: {port}, scheme: HTTP}}"
    host.put(first)
    code = host.run(host.command(BROKEN, "http://127.0.0.1:1/readyz"))
    assert (1, True, first) == (code, host.verdict()["back"], host.manifest.read_text())
    assert "the earlier one is back in place and answers" in host.verdict()["cause"]
