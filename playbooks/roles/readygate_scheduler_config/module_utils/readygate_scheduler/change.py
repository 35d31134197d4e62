"""One change of the scheduler, from begin to verdict."""

import contextlib
import errno
import json
import os
import time
from typing import Any, Callable, Dict, List, Optional, Set

from .dead_man import DeadMan
from .errors import RefusedError
from .host_io import HostIO, noted, read
from .jobs import UNTIL, Job, digest, mark_of, wanted_of
from .kubelet import Kubelet
from .lease import Lease
from .proof import configuration_of, differences
from .scheduler import Process, Scheduler

POLL_S = 0.2
GRACE_S = 5.0  # what a `recover` allows a change whose time limit is over already
TRIAL_LIMIT_S = 30


def ignore_cause(_cause: str) -> None:
    """Shows no progress."""


def ignore_verdict(_verdict: Dict[str, Any]) -> None:
    """Prints no verdict: the caller gets it as the return value."""


def to_the_journal(verdict: Dict[str, Any]) -> None:
    print(json.dumps(verdict), flush=True)


class Change:
    """One change of one file, `job["target"]`, from begin to verdict. The caller must hold the lock of the folder.

    While it waits it calls `waiting` with the cause, again and again. It calls `report` with the verdict.
    """

    def __init__(self, folder: str, scheduler: Scheduler, io: HostIO, dead_man: "DeadMan") -> None:
        self.folder = folder
        self.scheduler = scheduler
        self.io = io
        self.dead_man = dead_man
        self.pending = os.path.join(folder, "pending")
        self.absent_s = 0.0
        self.lease = ""
        self.waiting: Callable[[str], None] = ignore_cause
        self.report: Callable[[Dict[str, Any]], None] = to_the_journal

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def is_in_place(self, job: Job) -> bool:
        """Whether everything is as the job wants it, and was proven with this very content. Changes nothing."""
        mark = noted(self.path("proven", "mark.json"))
        files = {path: digest(read(path)) for path in job["files"]}
        if mark.get("wanted") != wanted_of(job) or mark.get("files") != files or os.path.exists(self.pending):
            return False
        if files != mark_of(job)["files"]:
            return False
        return not self._missing(dict(job, restarts=False), set())

    # Forwards

    def apply(self, job: Job) -> Dict[str, Any]:
        try:
            self._may_begin(job)
            self._write_configuration(job)
            self._begin(job)
        except RefusedError as e:
            return self._report(job, e.outcome, str(e), changed=False)
        except OSError as e:
            what = "the disk is full" if e.errno == errno.ENOSPC else str(e)
            with contextlib.suppress(OSError):
                self.io.remove(self.path("pending.new"))
            return self._report(job, "failed", what + "; nothing was changed", changed=False)
        try:
            self.dead_man.arm()
            self._swap(job)
        except (OSError, RefusedError) as e:
            return self._back(job, str(e))
        return self._settle(job, job["limit_s"])

    def _may_begin(self, job: Job) -> None:
        if digest(read(job["target"])) != job["expected"]:
            raise RefusedError("changed-meanwhile", job["target"] + " has changed since it was read; run again")
        where = os.path.dirname(job["target"])
        if os.path.exists(where) and os.stat(self.folder).st_dev != os.stat(where).st_dev:
            raise RefusedError("refused", where + " is a separate file system: a file cannot be renamed into it")
        # Two seconds, because a busy host is no broken scheduler.
        if not job["force"] and not self._wait_for(job["before_command"], job["healthz"], 2.0):
            output = self._evidence(job, time.time())
            text = "kube-scheduler did not work before the change; nothing was changed. Repair it first"
            raise RefusedError("broken-before", text + (": " + " / ".join(output) if output else ""))

    def _wait_for(self, command: List[str], healthz: str, limit_s: float, kubelet: Optional[Kubelet] = None) -> bool:
        end = time.monotonic() + limit_s
        while not (self.scheduler.running(command) and self.scheduler.healthy(healthz)):
            if time.monotonic() > end:
                return False
            if kubelet and not self.scheduler.running(command):
                kubelet.resync()
            self.waiting("kube-scheduler does not answer yet")
            time.sleep(POLL_S)
        return True

    def _write_configuration(self, job: Job) -> None:
        """Writes the configuration, and lets the scheduler's own binary read it before anything depends on it.

        The file's name has a digest of its content, so no file is ever overwritten by another configuration.
        """
        written = []
        for path, text in sorted(job["files"].items()):
            if read(path) != text.encode():
                written += [] if os.path.exists(path) else [path]
                self.io.write(path, text.encode(), 0o644)
        running = self.scheduler.running(job["before_command"])
        if job["trial"] and running:
            binary = os.path.join(self.scheduler.proc, str(running[0][0]), "exe")
            code, output = self.io.run(["kube-scheduler", *job["trial"]], TRIAL_LIMIT_S, binary)
            if code != 0:
                for path in written:
                    self.io.remove(path)
                text = "kube-scheduler does not accept its new configuration; nothing was changed: "
                raise RefusedError("refused", text + " / ".join(output.strip().splitlines()[-3:])[-900:])

    def _begin(self, job: Job) -> None:
        """Writes everything that completing or undoing the change needs, before anything changes."""
        before = read(job["target"])
        mode = job["mode"] if before is None else os.stat(job["target"]).st_mode & 0o777
        self._keep_original(job, before)
        new = self.path("pending.new")
        self.io.remove(new)
        self.io.make(os.path.join(new, "proven"))
        if before is not None:
            self.io.write(os.path.join(new, "before"), before, mode)
        if job["wanted"] is not None:
            self.io.write(os.path.join(new, "wanted"), job["wanted"].encode(), mode)
            self.io.write(os.path.join(new, "proven", "target"), job["wanted"].encode())
        if job["without"] is not None:
            self.io.write(os.path.join(new, "proven", "without"), job["without"].encode())
        self.io.write(os.path.join(new, "proven", "mark.json"), json.dumps(mark_of(job)).encode())
        holder = self._holder(job)  # before the processes: the holder is one of them or has ended
        job["opened"] = {
            "boot": self.scheduler.boot(),
            "until": time.monotonic() + job["limit_s"],
            "old": [list(who) for who in self.scheduler.processes()],
            "holder": holder,
        }
        self.io.write(os.path.join(new, "job.json"), json.dumps(job).encode())
        self.io.rename(new, self.pending)

    def _holder(self, job: Job) -> str:
        """The holder of the Lease, if this change may have to release it; empty else.

        Empty also for a process whose end would not be detected.
        """
        if not job["restarts"] or not self.scheduler.running(job["before_command"]):
            return ""
        return Lease(self.io.run, job.get("lease", {})).holder()

    def _keep_original(self, job: Job, before: Optional[bytes]) -> None:
        """Saves the original file once, and the note whenever it has changed.

        Saves nothing if the state before readygate is unknown: on a host that joined with readygate's file, and for a
        job that only removes readygate.
        """
        if not job["note"]:
            return
        noted = self.path("original", "noted.json")
        if not os.path.exists(noted):
            self.io.make(self.path("original"))
            if before is not None:
                self.io.write(self.path("original", os.path.basename(job["target"])), before)
        if read(noted) != json.dumps(job["note"]).encode():
            self.io.write(noted, json.dumps(job["note"]).encode())

    def _swap(self, job: Job) -> None:
        if wanted_of(job) == job["expected"]:
            # The file is right and the process is not, so the process has read another file.
            for pid, _ in self.scheduler.running(job["command"]):
                self.io.run(["kill", str(pid)])
        elif job["wanted"] is None:
            self.io.remove(job["target"])
        else:
            self.io.make(os.path.dirname(job["target"]))
            self.io.label(os.path.join(self.pending, "wanted"), job["target"])
            self.io.rename(os.path.join(self.pending, "wanted"), job["target"])
        self._restart(job)

    def _restart(self, job: Job) -> None:
        for argv in job["restart"]:
            code, output = self.io.run(argv, 60.0)
            if code != 0:
                raise RefusedError("put-back", " ".join(argv) + " failed: " + output.strip()[-300:])

    def _settle(self, job: Job, limit_s: float) -> Dict[str, Any]:
        cause = self._proof(job, limit_s)
        if not cause:
            return self._confirm(job, "kube-scheduler works with its new configuration")
        return self._confirm(job, cause + "; the new manifest stays") if job["keep"] else self._back(job, cause)

    def _proof(self, job: Job, limit_s: float) -> str:
        """Empty as soon as the scheduler works with the wanted configuration, else what is missing at the end."""
        old = {(pid, start) for pid, start in job["opened"]["old"]}
        last_old = time.monotonic()
        end = last_old + limit_s
        kubelet = Kubelet(self.io.run, job.get("mirror", []))
        lease = Lease(self.io.run, job.get("lease", {}), job["opened"].get("holder", ""))
        while True:
            now = time.monotonic()
            running = set(self.scheduler.running(job["before_command"]))
            last_old = now if old & running else last_old
            if not running and not self.scheduler.running(job["command"]):
                kubelet.resync()
            cause = self._missing(job, old)
            absent_s = round(time.monotonic() - last_old, 1)
            if all(self.scheduler.ended(who) for who in old):
                lease.give_up()
            if not cause:
                self.absent_s, self.lease = absent_s, lease.given_up
                return ""
            if now >= end:
                return "within %d s %s" % (round(job["limit_s"]), cause)
            self.waiting("%s, %d s at most" % (cause, max(0, end - now)))
            time.sleep(POLL_S)

    def _missing(self, job: Job, old: Set[Process]) -> str:
        if digest(read(job["target"])) != wanted_of(job):
            return "its manifest did not stay in place"
        if not [who for who in self.scheduler.running(job["command"]) if who not in old or not job["restarts"]]:
            return "no new kube-scheduler started"
        if not self.scheduler.healthy(job["healthz"]):
            return "kube-scheduler did not answer at " + job["healthz"]
        if not job["configz"]:
            return ""
        return configz_differences(self.io, job["configz"], job["expect"])

    def _confirm(self, job: Job, text: str) -> Dict[str, Any]:
        """Confirms the change. After the first rename it cannot be undone."""
        committed, proven = self.path("proven.new"), self.path("proven")
        if os.path.exists(os.path.join(self.pending, "proven")):
            self.io.remove(committed)
            self.io.rename(os.path.join(self.pending, "proven"), committed)
        if os.path.exists(committed):
            self.io.remove(proven)
            self.io.rename(committed, proven)
        return self._close(job, "confirmed", text, changed=True)

    # Backwards

    def _back(self, job: Job, cause: str, wait: bool = True) -> Dict[str, Any]:
        """Puts the old file back first, then collects the cause, so that no error prevents the first."""
        until = time.time()  # what the scheduler logs after that comes from the one that works
        in_place = digest(read(job["target"]))
        changed = in_place == wanted_of(job) != job["expected"]
        if changed:
            before = os.path.join(self.pending, "before")
            if os.path.exists(before):
                self.io.label(before, job["target"])
                self.io.rename(before, job["target"])
            else:
                self.io.remove(job["target"])
            with contextlib.suppress(RefusedError):
                self._restart(job)
            cause += "; the earlier manifest is back in place"
        elif in_place != job["expected"]:
            cause += "; another program has changed %s in the meantime, it was left as it is" % job["target"]
        elif in_place and not os.path.exists(os.path.join(self.pending, "before")):
            changed = True
            cause += "; the earlier manifest is back in place"
        else:
            cause += "; the manifest was not changed"
        output = self._evidence(job, until)
        if changed and wait:
            kubelet = Kubelet(self.io.run, job.get("mirror", []))
            works = self._wait_for(job["before_command"], job["healthz"], job["limit_s"], kubelet)
            cause += " and works" if works else ", but kube-scheduler does not answer yet"
        text = cause + (". Last log lines: " + " / ".join(output) if output else "")
        return self._close(job, "put-back" if changed else "failed", text, changed)

    def _evidence(self, job: Job, until: float) -> List[str]:
        try:
            output = self.scheduler.last_lines(job["logs"])
            argv = [word.replace(UNTIL, "%.6f" % until) for word in job["evidence"]]
            return output or (self.io.run(argv, 5.0)[1].splitlines()[-3:] if argv else [])
        except Exception as e:  # noqa: BLE001 - no error may prevent that the old file is put back
            return ["its log cannot be read: " + str(e)]

    # Ends

    def recover(self) -> Optional[Dict[str, Any]]:
        """Ends a change that a kill or a reboot has left open. None if there was none."""
        self.io.remove(self.path("pending.new"))
        where = os.path.join(self.pending, "job.json")
        if read(where) is None:
            self._clear()
            return None
        job = noted(where)
        if not job:
            return self._recover_by_the_mark()
        if not os.path.exists(os.path.join(self.pending, "proven")):
            return self._confirm(job, "kube-scheduler works with its new configuration")
        swapped = digest(read(job["target"])) == wanted_of(job)
        if job["opened"]["boot"] != self.scheduler.boot() and not (swapped and job["keep"]):
            return self._back(job, "the host was restarted during the change", wait=False)
        if not swapped:
            return self._back(job, "the change was interrupted")
        with contextlib.suppress(RefusedError):
            self._restart(job)
        return self._settle(job, max(GRACE_S, job["opened"]["until"] - time.monotonic()))

    def _recover_by_the_mark(self) -> Dict[str, Any]:
        """Ends a change whose job the disk has lost. It is not proven; what undoing it needs is saved twice."""
        cause = "the job of a change that was interrupted cannot be read"
        unproven = os.path.join(self.pending, "proven")
        places = [unproven] if os.path.exists(unproven) else [self.path("proven.new"), self.path("proven")]
        mark = next(filter(None, (noted(os.path.join(place, "mark.json")) for place in places)), {})
        if not mark.get("target"):
            lost = self.path("unreadable")
            self.io.remove(lost)
            self.io.rename(self.pending, lost)
            self._clear()
            cause += "; it is in " + lost + " now, and kube-scheduler's files were left as they are"
            return self._report({"id": ""}, "failed", cause, changed=False)
        before, wanted = read(os.path.join(self.pending, "before")), read(os.path.join(unproven, "target"))
        text = None if wanted is None else wanted.decode("utf-8", "replace")
        job = dict(mark, wanted=text, expected=digest(before), before_command=[])
        if unproven in places:
            return self._back(job, cause, wait=False)
        return self._confirm(job, "kube-scheduler works with its new configuration")

    def _close(self, job: Job, outcome: str, cause: str, changed: bool) -> Dict[str, Any]:
        where = os.path.dirname(job["target"])
        if where.endswith(".d"):  # a folder of a unit's drop-ins, which readygate made
            self.io.remove_empty(where)
        verdict = self._report(job, outcome, cause, changed)
        self._clear()
        return verdict

    def _clear(self) -> None:
        """Ends the change in one step, then removes its files."""
        ended = self.path("ended")
        if os.path.exists(self.pending):
            self.io.remove(ended)
            self.io.rename(self.pending, ended)
        self.io.remove(ended)
        self.dead_man.disarm()

    def _report(self, job: Job, outcome: str, cause: str, changed: bool) -> Dict[str, Any]:
        wall = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        verdict = {"id": job["id"], "outcome": outcome, "cause": cause, "changed": changed, "at": wall}
        verdict.update(absent_s=self.absent_s, lease=self.lease)
        self.report(verdict)
        with contextlib.suppress(OSError):  # a full disk: the journal has the verdict too
            self.io.write(self.path("verdict.json"), json.dumps(verdict).encode(), 0o644)
        return verdict


def configz_differences(io: HostIO, argv: List[str], expect: Dict[str, Any]) -> str:
    """How the loaded configuration differs from the expected one, in one line; empty if it does not."""
    code, output = io.run(argv, 10.0)
    try:
        if code == 0:
            found = differences(expect, configuration_of(output))
            return "/configz did not show the new configuration: " + "; ".join(found[:5]) if found else ""
    except (ValueError, AttributeError) as e:
        output = str(e)
    return "/configz could not be read: " + " ".join(output.split())[-300:]
