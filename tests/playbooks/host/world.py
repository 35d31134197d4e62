"""A host without a kubelet: folders, a process list, and a scheduler that answers over HTTP.

A manifest here is JSON: `command` of the process, `works: false` for one that never starts. What the scheduler loads is
the file that `--config` of its command names; without a file the old command runs, as by a unit of systemd. The thread
`kubelet` starts a new process where the manifest has changed: after `slow_s`, or as soon as its mirror pod is changed.
"""

import json
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from readygate_scheduler.change import Change
from readygate_scheduler.dead_man import DeadMan
from readygate_scheduler.host_io import HostIO
from readygate_scheduler.jobs import digest
from readygate_scheduler.scheduler import Scheduler

OLD_COMMAND = ["kube-scheduler", "--leader-elect=true"]
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
EXTENDER = {"urlPrefix": "http://127.0.0.1:338", "filterVerb": "filter", "httpTimeout": "1s"}
REFUSED = "NoSuchPlugin"
MIRROR = ["kubectl", "--namespace=kube-system", "kube-scheduler-control-1"]
UID = "9e8ede64"
LEASE = {
    "leads": ["kubectl", "get", "--raw=/metrics"],
    "read": ["kubectl", "get", "--raw=/leases/kube-scheduler"],
    "change": ["kubectl", "patch", "lease", "kube-scheduler", "--type=json"],
}
BINARY = f"""#!/bin/sh
for a in "$@"; do
  case $a in --config=*) grep -q {REFUSED} "${{a#--config=}}" && echo {REFUSED} is not registered && exit 1;; esac
done
exit 0
"""


def manifest(command: list[str], *, works: bool = True) -> str:
    return json.dumps({"command": command, "works": works})


class World:
    """`folder` is readygate's, `target` the manifest. The old scheduler runs when it is made."""

    def __init__(self, root: Path) -> None:
        self.folder, self.units, self.proc = root / "etc/readygate", root / "units", root / "proc"
        self.target = root / "etc/manifests/kube-scheduler.yaml"
        self.logs = root / "logs"
        self.calls: list[list[str]] = []
        for folder in (self.folder, self.units, self.proc, self.target.parent, self.logs, root / "bin"):
            folder.mkdir(parents=True)
        self.binary = root / "bin/kube-scheduler"
        self.binary.write_text(BINARY)
        self.binary.chmod(0o755)
        self._stop = threading.Event()
        self._pid = 100
        self._guard = threading.Lock()
        self.loaded: dict[str, Any] | None = None
        self.slow_s = 0.0
        self.still = False  # the kubelet does nothing
        self.looks = threading.Event()
        self.outlives = ""  # the number of a process that is not the kubelet's
        self.api = (0, "")  # what a change of the mirror pod is answered
        self.leads, self.holder = False, ""  # what this host's scheduler says, and whom the Lease names
        self.reboot("first boot")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self._kubelet = threading.Thread(target=self._look, name="kubelet", daemon=True)
        self.target.write_text(manifest(OLD_COMMAND))
        self._seen = ""
        self._follow()
        self._kubelet.start()

    def stop(self) -> None:
        self._stop.set()
        self.looks.set()
        self._kubelet.join()
        self._server.shutdown()
        self._server.server_close()

    def reboot(self, name: str) -> None:
        (self.proc / "sys/kernel/random").mkdir(parents=True, exist_ok=True)
        (self.proc / "sys/kernel/random/boot_id").write_text(name + "\n")

    # The kubelet and its scheduler

    def _look(self) -> None:
        while not self._stop.wait(0.005):
            with suppress(OSError):
                self._follow()

    def _follow(self) -> None:
        text = self.target.read_text() if self.target.exists() else ""
        if text == self._seen or self.still:
            return
        self._seen = text
        self.end_process()
        self.looks.clear()
        self.looks.wait(self.slow_s)
        if self._stop.is_set():
            return
        wanted = json.loads(text or manifest(OLD_COMMAND))
        if wanted["works"]:
            self.start_process(wanted["command"])
        else:
            (self.logs / f"{len(list(self.logs.iterdir()))}.log").write_text("panic: no such thing\n")

    def end_process(self) -> None:
        with self._guard:
            self.loaded = None
            for entry in self.proc.iterdir():
                if entry.name.isdigit() and entry.name != self.outlives:
                    for each in entry.iterdir():
                        each.unlink()
                    entry.rmdir()

    def start_process(self, command: list[str]) -> None:
        named = [one.partition("=")[2] for one in command if one.startswith("--config=")]
        loaded = json.loads(Path(named[0]).read_text()) if named else {}
        with self._guard:
            self._pid += 1
            here = self.proc / str(self._pid)
            here.mkdir()
            (here / "stat").write_text(f"{self._pid} (kube (sched)) S {' '.join(['0'] * 18)} {self._pid * 7} 0\n")
            (here / "exe").symlink_to(self.binary)
            (here / "cmdline").write_bytes(b"".join(one.encode() + b"\0" for one in command))
            self.loaded = {"kind": "KubeSchedulerConfiguration", **loaded}

    def runs(self) -> list[list[str]]:
        with self._guard:  # a process goes as a whole
            return sorted(Scheduler(str(self.proc)).processes().values())

    def _handler(world: "World") -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the request's
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps({"componentconfig": world.loaded}).encode()
                self.send_response(200 if world.loaded is not None else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    # The program

    def host_io(self) -> HostIO:
        return RecordingIO(self)

    def change(self, io: HostIO | None = None) -> Change:
        io = io or self.host_io()
        dead_man = DeadMan(str(self.units), ["/bin/readygate-scheduler"], io)
        return Change(str(self.folder), Scheduler(str(self.proc)), io, dead_man)

    def job(self, content: str = json.dumps({"extenders": [EXTENDER]}), *, works: bool = True, **more: Any) -> Any:
        path = self.folder / f"kube-scheduler-{digest(content.encode())[:12]}.yaml"
        command = [*OLD_COMMAND, f"--config={path}"]
        return {
            "id": "job-1",
            "target": str(self.target),
            "wanted": manifest(command, works=works),
            "expected": digest(self.target.read_bytes()) if self.target.exists() else "",
            "mode": 0o600,
            "without": manifest(OLD_COMMAND),
            "files": {str(path): content},
            "note": {"config": ""},
            "command": command,
            "before_command": OLD_COMMAND,
            "restarts": True,
            "restart": [],
            "trial": [f"--config={path}", "--write-config-to=/dev/null"],
            "configz": [sys.executable, "-S", "-c", ASK, f"{self.url}/configz"],
            "expect": {"extenders": [EXTENDER]},
            "mirror": [],
            "lease": {},
            "healthz": f"{self.url}/healthz",
            "limit_s": 5.0 if works else 0.3,
            "force": False,
            "keep": False,
            "logs": str(self.logs / "*.log"),
            "evidence": [],
            **more,
        }

    def left(self) -> list[str]:
        """Names of what may be there only while a change is open."""
        names = {each.name for each in [*self.folder.iterdir(), *self.units.iterdir()]}
        return sorted(n for n in names if n.split(".")[0] in ("pending", "ended", "readygate-scheduler-recover"))


class RecordingIO(HostIO):
    """`systemctl`, `kill` and `kubectl` are only recorded; /configz is read without a process, which is quicker."""

    def __init__(self, world: World) -> None:
        self._world = world

    def run(self, argv: list[str], limit_s: float = 30.0, binary: str | None = None) -> tuple[int, str]:
        if argv[-1].endswith("/configz"):
            return 0, json.dumps({"componentconfig": self._world.loaded})
        if argv[0] not in ("systemctl", "kill", "kubectl"):
            return super().run(argv, limit_s, binary)
        self._world.calls.append(argv)
        if argv[0] == "kubectl":
            return self._kubectl(argv)
        if argv[0] == "kill":
            (command,) = self._world.runs()
            self._world.end_process()
            self._world.start_process(command)
        return 0, ""

    def _kubectl(self, argv: list[str]) -> tuple[int, str]:
        code, said = self._world.api
        if code != 0 or said:
            return code, said
        if argv == LEASE["leads"]:
            return 0, f'# TYPE\nleader_election_master_status{{name="kube-scheduler"}} {int(self._world.leads)}\n'
        if argv == LEASE["read"]:
            return 0, json.dumps({"spec": {"holderIdentity": self._world.holder} if self._world.holder else {}})
        if "lease" in argv:
            return self._change(json.loads(argv[-1].removeprefix("--patch=")))
        if "patch" in argv:
            self._world.looks.set()
        return 0, UID

    def _change(self, patch: list[dict[str, str]]) -> tuple[int, str]:
        test, remove = patch
        assert {"op": "remove", "path": test["path"]} == remove
        if test["value"] != self._world.holder:
            return 1, "the server rejected our request due to an error in our request"
        self._world.holder = ""
        return 0, ""
