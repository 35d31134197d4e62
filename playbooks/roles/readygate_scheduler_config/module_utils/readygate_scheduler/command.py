"""The commands of the program: apply, start, settle, recover and detach."""

import argparse
import contextlib
import fcntl
import json
import os
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from .change import POLL_S, Change, ignore_cause, ignore_verdict
from .dead_man import AGAIN_S, DeadMan
from .host_io import HostIO, noted, read
from .jobs import Job, digest
from .scheduler import Scheduler

FOLDER = "/etc/kubernetes/readygate"
UNIT = "readygate-scheduler"
UNITS = "/etc/systemd/system"
MORE_PATHS = ["/usr/local/bin", "/opt/bin"]
NOT_ACTIVE = (3, 4)  # exit codes of `systemctl is-active`: the unit has ended, or does not exist
LOCK_LIMIT_S = 60.0
SETTLE_LIMIT_S = 240.0
BUSY = "another run changes kube-scheduler of this host now"
NOT_OURS = (
    "the manifest is not the one that readygate wrote: run playbooks/detach.yml, which changes any manifest, or remove"
    " --config and the volume `readygate` by hand"
)
NOT_HERE = "%s does not exist: readygate is not registered with a kube-scheduler of this host; nothing was changed"
NOT_ROOT = "%s; run it as root, nothing was changed"
NO_JOB = "%s is not a job, which is a JSON object that Ansible writes; nothing was changed"
ALREADY = "readygate is not registered with kube-scheduler of this host; nothing was changed"
CUT_OFF = "interrupted; a timer of systemd completes or undoes the change within %d s, and writes verdict.json in %s"
NO_VERDICT = (
    "the program that changes kube-scheduler ended without a verdict; systemd ends one that hangs after %d s. Check"
    " for a full disk or a hung mount below /etc/kubernetes first. A timer of systemd tries every %d s to complete or"
    " undo the change, and detach.yml removes readygate; journalctl --unit %s shows the program's log"
)
DONE = ("confirmed", "unchanged")
PROGRESS_EVERY_S = 2.0
EXIT_CODES = """exit codes:
  0    done, or nothing to do; after detach the last line states whether the scheduler works without readygate
  1    not done; the last line states the cause and the remedy
  2    wrong usage
  130  Ctrl-C; systemd completes or undoes the change that was begun
"""


@contextlib.contextmanager
def locked(folder: str, wait_s: float, waiting: Callable[[str], None] = ignore_cause) -> Iterator[bool]:
    """Holds the lock of the folder. False if another run holds it for the whole of `wait_s`."""
    with open(os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        end = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    yield False
                    return
                waiting(BUSY)
                time.sleep(POLL_S)
        yield True


def program(folder: str, units: str, proc: str) -> List[str]:
    """The command line of this program on its host."""
    where = os.path.join(folder, "bin", "readygate_scheduler")
    return [sys.executable, "-B", where, "--folder", folder, "--units", units, "--proc", proc]


def change_of(folder: str, io: HostIO, units: str = UNITS, proc: str = "/proc") -> Change:
    return Change(folder, Scheduler(proc), io, DeadMan(units, program(folder, units, proc), io))


def settle(folder: str) -> Optional[Dict[str, Any]]:
    """Waits for a running change and ends an interrupted one. None if there was none.

    It prints nothing, because Ansible takes what a module prints for its result.
    """
    if not os.path.isdir(folder):
        return None
    with locked(folder, SETTLE_LIMIT_S) as free:
        if not free:
            return {"outcome": "busy", "changed": False, "cause": BUSY}
        change = change_of(folder, HostIO())
        change.report = ignore_verdict
        return change.recover()


def start(folder: str, job: Job) -> Dict[str, Any]:
    """Lets systemd run the job, so that it ends even if this process dies, and waits for its verdict."""
    io = HostIO()
    where, verdict_path = os.path.join(folder, "job.json"), os.path.join(folder, "verdict.json")
    io.write(where, json.dumps(job).encode())
    limit_s = 3 * job["limit_s"] + 120
    command = program(folder, UNITS, "/proc")
    limit = ["--property=RuntimeMaxSec=%d" % limit_s, "--collect", "--quiet"]
    code, output = io.run(["systemd-run", "--unit=" + UNIT, *limit, *command, "apply", where])
    if code != 0:
        return {"outcome": "busy", "changed": False, "cause": "systemd-run: " + output.strip()[-300:]}
    end = time.monotonic() + limit_s
    while not _ended(io, verdict_path, job) and time.monotonic() < end:
        time.sleep(POLL_S)
    verdict = noted(verdict_path)
    if verdict.get("id") != job["id"]:  # it was killed
        io.run([*command, "recover"], limit_s)
        verdict = noted(verdict_path)
    if verdict.get("id") != job["id"]:
        return {"outcome": "failed", "changed": True, "cause": NO_VERDICT % (limit_s, AGAIN_S, UNIT)}
    return verdict


def _ended(io: HostIO, verdict_path: str, job: Job) -> bool:
    """Whether the unit has ended. If systemd does not answer (code 1), the verdict decides."""
    code, _ = io.run(["systemctl", "is-active", "--quiet", UNIT])
    return code in NOT_ACTIVE or (code != 0 and noted(verdict_path).get("id") == job["id"])


def detached(folder: str) -> Optional[Job]:
    """The job that puts the manifest without readygate in place, from what the last proven job saved.

    None if the manifest of that job is not in place any more.
    """
    mark = _mark(folder)
    if not mark.get("files") or digest(read(mark["target"])) != mark["wanted"]:
        return None
    without = read(os.path.join(folder, "proven", "without"))
    more = {"id": "detach-" + mark["id"], "expected": mark["wanted"], "without": None, "files": {}, "configz": []}
    more.update(before_command=mark["command"], command=[], restarts=True, force=True, keep=True, trial=[], note={})
    return dict(mark, wanted=None if without is None else without.decode(), **more)


def is_detached(folder: str) -> bool:
    """Whether the last proven manifest has no readygate in it, and is in place."""
    mark = _mark(folder)
    return mark.get("files") == {} and digest(read(mark["target"])) == mark["wanted"]


def _mark(folder: str) -> Dict[str, Any]:
    return noted(os.path.join(folder, "proven", "mark.json"))


class Terminal:
    """Prints the progress and the verdict of a change for the operator who typed the command."""

    def __init__(self) -> None:
        self._began = self._printed = time.monotonic()

    def waiting(self, cause: str) -> None:
        now = time.monotonic()
        if now - self._printed >= PROGRESS_EVERY_S:
            self._printed = now
            print("%d s: %s" % (now - self._began, cause), file=sys.stderr, flush=True)

    def verdict(self, verdict: Dict[str, Any]) -> None:
        if verdict["outcome"] in DONE:
            print(verdict["cause"], flush=True)
        else:
            _complain(verdict["cause"])


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="readygate-scheduler",
        description="Changes kube-scheduler of this host. `detach` removes readygate from it, without Ansible and"
        " without the API server. Ansible calls `apply`, and systemd calls `recover`.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folder", default=FOLDER, help="readygate's folder; default: %(default)s")
    parser.add_argument("--units", default=UNITS, help="folder of systemd's units; default: %(default)s")
    parser.add_argument("--proc", default="/proc", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", choices=("text", "json"), help="default: text for detach, else json")
    parser.add_argument("command", choices=["apply", "recover", "detach"])
    parser.add_argument("job", nargs="?", help="for apply: the file of the job")
    return parser


def main(given: List[str], io: Optional[HostIO] = None) -> int:
    parser = arguments()
    options = parser.parse_args(given)
    if (options.command == "apply") != (options.job is not None):
        parser.error("apply needs the file of a job; the other commands take no file")
    try:
        return _run(options, io or HostIO())
    except PermissionError as e:
        return _complain(NOT_ROOT % e)
    except KeyboardInterrupt:
        is_open = os.path.exists(os.path.join(options.folder, "pending"))
        _complain(CUT_OFF % (AGAIN_S, options.folder) if is_open else "interrupted; nothing was changed")
        return 130


def _run(options: argparse.Namespace, io: HostIO) -> int:
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *MORE_PATHS])
    if not os.path.isdir(options.folder):
        return _complain(NOT_HERE % options.folder)
    change = change_of(options.folder, io, options.units, options.proc)
    if (options.output or ("text" if options.command == "detach" else "json")) == "text":
        terminal = Terminal()
        change.waiting, change.report = terminal.waiting, terminal.verdict
    with locked(options.folder, 0.0 if options.command == "recover" else LOCK_LIMIT_S, change.waiting) as free:
        if not free:
            change.report({"outcome": "busy", "changed": False, "cause": BUSY})
            return 0 if options.command == "recover" else 1
        change.recover()
        if options.command == "recover":
            return 0
        if options.command == "detach" and is_detached(options.folder):
            change.report({"outcome": "unchanged", "changed": False, "cause": ALREADY})
            return 0
        try:
            job = detached(options.folder) if options.command == "detach" else _job(options.job)
        except ValueError:
            return _complain(NO_JOB % options.job)
        if job is None:
            return _complain(NOT_OURS)
        return 0 if change.apply(job)["outcome"] == "confirmed" else 1


def _job(path: str) -> Job:
    """Reads a job from its file. Raises ValueError if the file has no job."""
    job = json.loads((read(path) or b"").decode())
    if not isinstance(job, dict):
        raise ValueError(path)
    return job


def _complain(text: str) -> int:
    print("readygate-scheduler: " + text, file=sys.stderr)
    return 1
