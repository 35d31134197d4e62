"""What can be asked of it: apply, start, settle, recover, detach."""

import argparse
import contextlib
import fcntl
import json
import os
import sys
import time
from typing import Any, Dict, Iterator, List, Optional

from .change import POLL_S, Change
from .dead_man import DeadMan
from .hands import Hands, read
from .jobs import Job, digest
from .scheduler import Scheduler

FOLDER = "/etc/kubernetes/readygate"
UNIT = "readygate-scheduler"
UNITS = "/etc/systemd/system"
MORE_PATHS = ["/usr/local/bin", "/opt/bin"]
LOCK_LIMIT_S = 60.0
SETTLE_LIMIT_S = 240.0
BUSY = "another run changes kube-scheduler of this host now"
NOT_OURS = (
    "the manifest is not the one that readygate has put there: playbooks/detach.yml mends any; or take --config and the"
    " volume `readygate` out of it by hand"
)


@contextlib.contextmanager
def locked(folder: str, wait_s: float) -> Iterator[bool]:
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
                time.sleep(POLL_S)
        yield True


def program(folder: str, units: str, proc: str) -> List[str]:
    """How it is called on its host."""
    where = os.path.join(folder, "bin", "readygate_scheduler")
    return [sys.executable, "-B", where, "--folder", folder, "--units", units, "--proc", proc]


def change_of(folder: str, hands: Hands, units: str = UNITS, proc: str = "/proc") -> Change:
    return Change(folder, Scheduler(proc), hands, DeadMan(units, program(folder, units, proc), hands))


def settle(folder: str) -> Optional[Dict[str, Any]]:
    """Waits for a change that runs, ends one that was interrupted; None where there was none."""
    if not os.path.isdir(folder):
        return None
    with locked(folder, SETTLE_LIMIT_S) as free:
        if not free:
            return {"outcome": "busy", "changed": False, "cause": BUSY}
        return change_of(folder, Hands()).recover()


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
    while hands.run(["systemctl", "is-active", "--quiet", UNIT])[0] in (0, 124):
        time.sleep(POLL_S)
    verdict = _verdict(told)
    if verdict.get("id") != job["id"]:  # it was killed
        hands.run([*command, "recover"], limit_s)
        verdict = _verdict(told)
    if verdict.get("id") != job["id"]:
        return {"outcome": "failed", "changed": True, "cause": "no verdict: see journalctl --unit " + UNIT}
    return verdict


def _verdict(path: str) -> Dict[str, Any]:
    return dict(json.loads((read(path) or b"{}").decode()))


def detached(folder: str) -> Optional[Job]:
    """The job that puts the manifest without us in place, of what was kept when it was proven; None where that manifest
    is not in place any more."""
    mark = json.loads((read(os.path.join(folder, "proven", "mark.json")) or b"{}").decode())
    if not mark.get("files") or digest(read(mark["target"])) != mark["wanted"]:
        return None
    without = read(os.path.join(folder, "proven", "without"))
    more = {"id": "detach-" + mark["id"], "expected": mark["wanted"], "without": None, "files": {}, "configz": []}
    more.update(before_command=mark["command"], command=[], restarts=True, force=True, keep=True, trial=[], note={})
    return dict(mark, wanted=None if without is None else without.decode(), **more)


def main(given: List[str], hands: Optional[Hands] = None) -> int:
    parser = argparse.ArgumentParser(prog="readygate-scheduler", description="Changes kube-scheduler of this host.")
    parser.add_argument("--folder", default=FOLDER)
    parser.add_argument("--units", default=UNITS)
    parser.add_argument("--proc", default="/proc")
    parser.add_argument("command", choices=["apply", "recover", "detach"])
    parser.add_argument("job", nargs="?", help="for apply: a file")
    options = parser.parse_args(given)
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *MORE_PATHS])
    change = change_of(options.folder, hands or Hands(), options.units, options.proc)
    with locked(options.folder, 0.0 if options.command == "recover" else LOCK_LIMIT_S) as free:
        if not free:
            print(json.dumps({"outcome": "busy", "changed": False, "cause": BUSY}))
            return 0 if options.command == "recover" else 1
        change.recover()
        if options.command == "recover":
            return 0
        job = (
            detached(options.folder) if options.command == "detach" else json.loads((read(options.job) or b"").decode())
        )
        if job is None:
            print(NOT_OURS, file=sys.stderr)
            return 1
        return 0 if change.apply(job)["outcome"] == "confirmed" else 1
