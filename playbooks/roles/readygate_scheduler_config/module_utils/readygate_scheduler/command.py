"""What can be asked of it: apply, start, settle, recover, detach."""

import argparse
import contextlib
import fcntl
import json
import os
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from .change import POLL_S, Change, silent, untold
from .dead_man import AGAIN_S, DeadMan
from .hands import Hands, noted, read
from .jobs import Job, digest
from .scheduler import Scheduler

FOLDER = "/etc/kubernetes/readygate"
UNIT = "readygate-scheduler"
UNITS = "/etc/systemd/system"
MORE_PATHS = ["/usr/local/bin", "/opt/bin"]
NOT_ACTIVE = (3, 4)  # of `systemctl is-active`: it has ended, there is no such unit (any more)
LOCK_LIMIT_S = 60.0
SETTLE_LIMIT_S = 240.0
BUSY = "another run changes kube-scheduler of this host now"
NOT_OURS = (
    "the manifest is not the one that readygate has put there: playbooks/detach.yml mends any; or take --config and the"
    " volume `readygate` out of it by hand"
)
NOT_HERE = "%s is not there: no kube-scheduler of this host was registered by readygate, nothing was changed"
NOT_ROOT = "%s; run it as root, nothing was changed"
NO_JOB = "%s is no job, a JSON object that Ansible writes; nothing was changed"
ALREADY = "kube-scheduler of this host is not told to ask readygate; nothing was changed"
CUT_OFF = "interrupted; a timer of systemd ends the change within %d s, verdict.json in %s then says how"
NO_VERDICT = (
    "the program that changes kube-scheduler ended without a verdict, as one that hangs is ended after %d s. A timer of"
    " systemd tries every %d s to end the change, and detach.yml takes readygate out; journalctl --unit %s has its last"
    " words, and what is full or hangs below /etc/kubernetes is to be mended first"
)
DONE = ("confirmed", "unchanged")
TOLD_AFTER_S = 2.0  # of silence, to people
EXIT_CODES = """exit codes:
  0    done, or nothing was to be done; after detach the last line says whether the scheduler works without us
  1    not done; the last line says why, and what to do
  2    wrong usage
  130  Ctrl-C; systemd ends what was begun
"""


@contextlib.contextmanager
def locked(folder: str, wait_s: float, waiting: Callable[[str], None] = silent) -> Iterator[bool]:
    """False where another run holds it all the while."""
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
    """How it is called on its host."""
    where = os.path.join(folder, "bin", "readygate_scheduler")
    return [sys.executable, "-B", where, "--folder", folder, "--units", units, "--proc", proc]


def change_of(folder: str, hands: Hands, units: str = UNITS, proc: str = "/proc") -> Change:
    return Change(folder, Scheduler(proc), hands, DeadMan(units, program(folder, units, proc), hands))


def settle(folder: str) -> Optional[Dict[str, Any]]:
    """Waits for a change that runs, ends one that was interrupted; None where there was none. Prints nothing: what a
    module of Ansible's prints is its result."""
    if not os.path.isdir(folder):
        return None
    with locked(folder, SETTLE_LIMIT_S) as free:
        if not free:
            return {"outcome": "busy", "changed": False, "cause": BUSY}
        change = change_of(folder, Hands())
        change.say = untold
        return change.recover()


def start(folder: str, job: Job) -> Dict[str, Any]:
    """Lets systemd run the job, so that it ends whatever becomes of us, and waits for its verdict."""
    hands = Hands()
    where, told = os.path.join(folder, "job.json"), os.path.join(folder, "verdict.json")
    hands.write(where, json.dumps(job).encode())
    limit_s = 3 * job["limit_s"] + 120
    command = program(folder, UNITS, "/proc")
    limit = ["--property=RuntimeMaxSec=%d" % limit_s, "--collect", "--quiet"]
    code, said = hands.run(["systemd-run", "--unit=" + UNIT, *limit, *command, "apply", where])
    if code != 0:
        return {"outcome": "busy", "changed": False, "cause": "systemd-run: " + said.strip()[-300:]}
    end = time.monotonic() + limit_s
    while not _ended(hands, told, job) and time.monotonic() < end:
        time.sleep(POLL_S)
    verdict = noted(told)
    if verdict.get("id") != job["id"]:  # it was killed
        hands.run([*command, "recover"], limit_s)
        verdict = noted(told)
    if verdict.get("id") != job["id"]:
        return {"outcome": "failed", "changed": True, "cause": NO_VERDICT % (limit_s, AGAIN_S, UNIT)}
    return verdict


def _ended(hands: Hands, told: str, job: Job) -> bool:
    """Has the unit? Where systemd cannot be asked, as with a bus that does not answer (1), by the verdict."""
    code, _ = hands.run(["systemctl", "is-active", "--quiet", UNIT])
    return code in NOT_ACTIVE or (code != 0 and noted(told).get("id") == job["id"])


def detached(folder: str) -> Optional[Job]:
    """The job that puts the manifest without us in place, of what was kept when it was proven; None where that manifest
    is not in place any more."""
    mark = _mark(folder)
    if not mark.get("files") or digest(read(mark["target"])) != mark["wanted"]:
        return None
    without = read(os.path.join(folder, "proven", "without"))
    more = {"id": "detach-" + mark["id"], "expected": mark["wanted"], "without": None, "files": {}, "configz": []}
    more.update(before_command=mark["command"], command=[], restarts=True, force=True, keep=True, trial=[], note={})
    return dict(mark, wanted=None if without is None else without.decode(), **more)


def is_detached(folder: str) -> bool:
    """Was the last that was proven here a scheduler without us, and is that in place?"""
    mark = _mark(folder)
    return mark.get("files") == {} and digest(read(mark["target"])) == mark["wanted"]


def _mark(folder: str) -> Dict[str, Any]:
    return noted(os.path.join(folder, "proven", "mark.json"))


class People:
    """What whoever typed the command sees: why it takes long, and how it ended."""

    def __init__(self) -> None:
        self._began = self._told = time.monotonic()

    def waiting(self, cause: str) -> None:
        now = time.monotonic()
        if now - self._told >= TOLD_AFTER_S:
            self._told = now
            print("%d s: %s" % (now - self._began, cause), file=sys.stderr, flush=True)

    def verdict(self, verdict: Dict[str, Any]) -> None:
        if verdict["outcome"] in DONE:
            print(verdict["cause"], flush=True)
        else:
            _complain(verdict["cause"])


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="readygate-scheduler",
        description="Changes kube-scheduler of this host. `detach` takes readygate out of it, without Ansible and"
        " without the API server; `apply` and `recover` are called by Ansible and by systemd.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--folder", default=FOLDER, help="of readygate; default: %(default)s")
    parser.add_argument("--units", default=UNITS, help="of systemd; default: %(default)s")
    parser.add_argument("--proc", default="/proc", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", choices=("text", "json"), help="default: text for detach, else json")
    parser.add_argument("command", choices=["apply", "recover", "detach"])
    parser.add_argument("job", nargs="?", help="for apply: a file")
    return parser


def main(given: List[str], hands: Optional[Hands] = None) -> int:
    parser = arguments()
    options = parser.parse_args(given)
    if (options.command == "apply") != (options.job is not None):
        parser.error("apply takes the file of a job, the others none")
    try:
        return _run(options, hands or Hands())
    except PermissionError as e:
        return _complain(NOT_ROOT % e)
    except KeyboardInterrupt:
        is_open = os.path.exists(os.path.join(options.folder, "pending"))
        _complain(CUT_OFF % (AGAIN_S, options.folder) if is_open else "interrupted; nothing was changed")
        return 130


def _run(options: argparse.Namespace, hands: Hands) -> int:
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *MORE_PATHS])
    if not os.path.isdir(options.folder):
        return _complain(NOT_HERE % options.folder)
    change = change_of(options.folder, hands, options.units, options.proc)
    if (options.output or ("text" if options.command == "detach" else "json")) == "text":
        people = People()
        change.waiting, change.say = people.waiting, people.verdict
    with locked(options.folder, 0.0 if options.command == "recover" else LOCK_LIMIT_S, change.waiting) as free:
        if not free:
            change.say({"outcome": "busy", "changed": False, "cause": BUSY})
            return 0 if options.command == "recover" else 1
        change.recover()
        if options.command == "recover":
            return 0
        if options.command == "detach" and is_detached(options.folder):
            change.say({"outcome": "unchanged", "changed": False, "cause": ALREADY})
            return 0
        try:
            job = detached(options.folder) if options.command == "detach" else _job(options.job)
        except ValueError:
            return _complain(NO_JOB % options.job)
        if job is None:
            return _complain(NOT_OURS)
        return 0 if change.apply(job)["outcome"] == "confirmed" else 1


def _job(path: str) -> Job:
    """Raises ValueError where it is none."""
    job = json.loads((read(path) or b"").decode())
    if not isinstance(job, dict):
        raise ValueError(path)
    return job


def _complain(text: str) -> int:
    print("readygate-scheduler: " + text, file=sys.stderr)
    return 1
