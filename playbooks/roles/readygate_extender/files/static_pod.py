"""Puts the extender's manifest in place, and puts the earlier one back if the new one does not answer in time.

    static_pod.py --folder DIR put --manifest FILE --revision WORD --ready URL
                  [--limit-s N] [--silent-s N] [--mirror JSON]
    static_pod.py --folder DIR recover

Runs on the host by itself, even if the process that started it has ended. Needs Python 3.6 and systemd, and no API
server. It uses kubectl only with --mirror, the command line for the mirror pod: then the kubelet syncs the pod again as
soon as no extender answers. The kubelet sees one rename, and never another file in its folder of manifests. In DIR:

    wanted.yaml           the new manifest
    pending/              the open change: job.json, and the earlier manifest
    verdict.json          the result of the last change
    readygate_scheduler/  modules shared with the program that changes kube-scheduler

The new extender answers if a process of this revision runs (READYGATE_REVISION in its environment) and --ready returns
200. A process that ran before (after an edit of the manifest by hand) counts only once the kubelet has left it alone
for a while. The earlier manifest is put back:

- as soon as such a process has ended;
- when nothing has answered for --silent-s, or longer if the kubelet has not started the pod or has just started it;
- after --limit-s, if the process runs but is not ready yet.

While a change is open, a timer of systemd calls `recover`, at boot too. It completes the change if the new extender
answers, and undoes it otherwise. No file records the progress: pending/ and the manifest in place are the state. The
verdict is one JSON object: {"put": true or false, "back": whether the earlier manifest is in place again, "cause": one
line}.
"""

import argparse
import contextlib
import fcntl
import http.client
import json
import os
import re
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from readygate_scheduler.dead_man import AGAIN_S, DeadMan
from readygate_scheduler.host_io import HostIO, noted, read
from readygate_scheduler.jobs import digest
from readygate_scheduler.kubelet import Kubelet

RECOVER = "readygate-extender-recover"
ENDS = "a change of readygate's static pod"
UNITS = "/etc/systemd/system"
MORE_PATHS = ["/usr/local/bin", "/opt/bin"]
LOOK_EVERY_S = 0.2
ANSWER_LIMIT_S = 1.0
READY, NOT_READY, SILENT = 200, 503, 0  # status of /readyz; SILENT: no answer
EVIDENCE_LINES = 5
NOT_STARTED, JUST_STARTED = 2.5, 1 / 3  # factors of --silent-s: the new extender does not pay for a busy kubelet
GRACE_S = 5.0  # what a `recover` allows a change whose time limit is over already
LEFT_ALONE_S = 5.0  # a kubelet that replaces a pod ends its process within a second or two
BACK_LIMIT_S = 60.0  # how long the earlier extender may take to answer
READINESS = re.compile(r"host: ([^ ,]+), path: /readyz, port: ([0-9]+), scheme: (HTTPS?)")
ANNOTATIONS = re.compile(rb"^  annotations: *\n", re.MULTILINE)
PUT_BACK = "readygate.dev/put-back"  # left out where manifests are compared
MARK = re.compile(("^    %s: .*\n" % re.escape(PUT_BACK)).encode(), re.MULTILINE)
BOOT = Path("/proc/sys/kernel/random/boot_id")
LOGS = Path("/var/log/pods")
BESIDE = "READYGATE_REVISION_BESIDE"  # of the pod's other containers, which prove nothing
CONTAINER = "readygate-system_readygate-extender-*/extender/*.log"


def processes_of(revision, variable="READYGATE_REVISION"):
    """The ids of the running processes of a revision."""
    wanted = ("%s=%s" % (variable, revision)).encode()
    return {int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if wanted in environ_of(path)}


def end(revision):
    """Kills the processes of a revision that does not answer, and those of the pod's other containers.

    The kubelet would wait for them for the pod's whole grace period. A process that has just started as the first one
    of its container ignores other signals.
    """
    for process in processes_of(revision) | processes_of(revision, BESIDE):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def environ_of(path):
    try:
        return path.read_bytes().split(b"\0")
    except OSError:  # it has ended
        return []


def status_of(url):
    """The status that the URL returns; SILENT also for an answer that is not HTTP."""
    context = ssl.create_default_context()  # the revision identifies the process
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=ANSWER_LIMIT_S) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code
    except (OSError, ValueError, http.client.HTTPException):
        return SILENT


def newest_log():
    """The log of the container that was started last. None if there is none."""
    try:
        return max(LOGS.glob(CONTAINER), key=lambda path: path.stat().st_mtime, default=None)
    except OSError:  # it was rotated
        return None


def evidence(log):
    """The last lines of the container that did not answer."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-EVIDENCE_LINES:] if log else []
    except OSError:
        lines = []
    if log and not lines:
        return "its log is empty"
    if not lines:
        return "no log: its container was never started; check crictl and journalctl --unit kubelet"
    return " | ".join(line.strip()[:300] for line in lines)


def ready_of(manifest, otherwise):
    """The URL of the readiness probe in a manifest: the earlier extender may have another port."""
    found = READINESS.search(manifest)
    return "%s://%s:%s/readyz" % (found.group(3).lower(), found.group(1), found.group(2)) if found else otherwise


def marked(manifest, milliseconds):
    """The manifest with a new annotation, so that the kubelet takes it for another pod.

    Otherwise the kubelet would take it for the pod that it has just ended, and delay a second return within ten minutes
    by ten seconds, then twenty, as for a crashing pod. A manifest without annotations stays as it is.
    """
    line = ('    %s: "%d"\n' % (PUT_BACK, milliseconds)).encode()
    return ANNOTATIONS.sub(lambda found: found.group() + line, MARK.sub(b"", manifest), count=1)


class Patience:
    """How long to wait for a new extender. Pure.

    silent_s: how long no extender may answer; in enforce nothing is placed meanwhile, if the kubelet starts it in time.
    limit_s: for the whole change.
    """

    def __init__(self, now, limit_s, silent_s):
        self._limit_s, self._silent_s = limit_s, silent_s
        self._ends, self._heard, self._started = now + limit_s, now, None
        self._seen = set()

    def cause(self, now, status, processes):
        """Why to wait no longer; None to wait on.

        status: of /readyz; processes: of the new extender. The earlier extender counts as an answer too, and so does a
        new one that is not ready yet.
        """
        if status == READY or (status == NOT_READY and processes):
            self._heard = now
        if self._seen and not self._seen & processes:
            return "the process of the new manifest has ended"
        self._seen |= processes
        if processes and self._started is None:
            self._started = now
        if now >= self._ends:
            return "the extender of the new manifest did not answer within %g s" % self._limit_s
        silent_s = now - self._heard
        if self._started is None:
            limit_s = NOT_STARTED * self._silent_s
            return (
                "the kubelet has not started it for %g s, and no extender answers" % limit_s
                if silent_s >= limit_s
                else None
            )
        if silent_s >= self._silent_s and now - self._started >= JUST_STARTED * self._silent_s:
            return "no extender has answered for %g s" % self._silent_s
        return None


class Swap:
    """One change of the manifest, from begin to verdict. The caller must hold the lock of the folder."""

    def __init__(self, folder, io, dead_man):
        self.io = io
        self.dead_man = dead_man
        self.wanted = folder / "wanted.yaml"
        self.moving = folder / "moving"  # not in the manifest's own folder, where the kubelet reads every file
        self.verdict = folder / "verdict.json"
        self.new = folder / "pending.new"
        self.pending = folder / "pending"
        self.ended = folder / "ended"
        self.earlier = self.pending / "earlier.yaml"

    def put(self, job):
        """Changes the manifest and returns the verdict. job: manifest, revision, ready, limit_s, silent_s, mirror."""
        self.recover()
        wanted = read(self.wanted)
        try:
            self._begin(job, wanted)
        except OSError as e:
            return self.report(put=False, back=False, cause="%s; nothing was changed" % e)
        try:
            self.dead_man.arm()
            self.io.write(self.moving, wanted)
            self.io.label(self.moving, job["manifest"])
            self.io.rename(self.moving, job["manifest"])
        except Exception as e:  # noqa: BLE001 - no error may leave the new manifest in place
            return self._back(job, str(e))
        return self._settle(job, job["limit_s"])

    def recover(self):
        """Ends an interrupted change and returns its verdict. None if there is none."""
        if read(self.pending / "job.json") is None:
            self._clear()
            return None
        job = noted(self.pending / "job.json")
        if not job:
            return self._set_aside()
        if digest(read(job["manifest"])) != job["wanted"]:
            return self._back(job, "the change was interrupted")
        if job["boot"] != BOOT.read_text():
            return self._back(job, "the host was restarted during the change", wait=False)
        return self._settle(job, max(GRACE_S, job["until"] - time.monotonic()))

    def _set_aside(self):
        """Sets a change aside whose job the disk has lost: its manifest is unknown."""
        lost = self.pending.with_name("unreadable")
        self.io.remove(lost)
        self.io.rename(self.pending, lost)
        self._clear()
        cause = "the job of a change that was interrupted cannot be read; it is in %s now, and the manifest" % lost
        return self.report(put=False, back=False, cause=cause + " in place was left as it is")

    def _begin(self, job, wanted):
        """Writes everything that completing or undoing the change needs, before anything changes."""
        before = read(job["manifest"])
        self.io.remove(self.verdict)
        self.io.remove(self.new)
        self.io.make(self.new)
        if before is not None:
            self.io.write(self.new / "earlier.yaml", before)
        now = time.monotonic()
        job.update(wanted=digest(wanted), expected=digest(before), boot=BOOT.read_text(), until=now + job["limit_s"])
        if job["wanted"] != job["expected"]:
            job["old"] = {"processes": sorted(processes_of(job["revision"])), "until": now + LEFT_ALONE_S}
        self.io.write(self.new / "job.json", json.dumps(job).encode())
        self.io.rename(self.new, self.pending)

    def _settle(self, job, limit_s):
        try:
            cause = self._why_not(job, limit_s)
        except Exception as e:  # noqa: BLE001 - nothing is proven
            cause = "it is unknown whether the extender of the new manifest answers: %r" % e
        if not cause:
            return self._close(put=True, back=False, cause="the extender of the new manifest answers")
        return self._back(job, cause)

    def _why_not(self, job, limit_s):
        """Empty as soon as the new extender answers, else why not to wait any longer."""
        kubelet = Kubelet(self.io.run, job["mirror"] if job["expected"] else [])  # a first pod waits for no other
        # A killed job of an earlier release has only one limit.
        patience = Patience(time.monotonic(), limit_s, job.get("silent_s", limit_s))
        while True:
            status, processes = status_of(job["ready"]), processes_of(job["revision"])
            if time.monotonic() < job.get("old", {}).get("until", 0.0):
                processes -= set(job["old"]["processes"])
            if status == READY and processes:
                return ""
            cause = patience.cause(time.monotonic(), status, processes)
            if cause:
                return cause
            if status != READY:
                kubelet.resync()
            time.sleep(LOOK_EVERY_S)

    def _back(self, job, cause, wait=True):
        """Puts the earlier manifest back first, then collects the cause, so that no error prevents the first."""
        in_place, log = digest(read(job["manifest"])), newest_log()
        swapped = in_place == job["wanted"] != job["expected"]
        if swapped and job["expected"]:
            with contextlib.suppress(OSError):  # a full disk: then the kubelet may delay it
                self.io.write(self.earlier, marked(read(self.earlier), time.time() * 1000))
            self.io.label(self.earlier, job["manifest"])
            self.io.rename(self.earlier, job["manifest"])
        elif swapped:
            self.io.remove(job["manifest"])
        lines = evidence(log) if swapped else ""  # before the kubelet removes the log with the pod
        back = bool(job["expected"]) and not self.earlier.exists()  # also by a run that was killed after that
        if back:
            state = self._after(job, wait)
            cause += "; the earlier one is back in place%s" % (" and " + state if state else "")
        elif swapped:
            cause += "; there was no earlier one, so the manifest was removed"
        elif in_place != job["expected"]:
            cause += "; another program has changed %s in the meantime, it was left as it is" % job["manifest"]
        else:
            cause += "; nothing was changed"
        last = " Its last lines: %s" % lines if swapped else ""
        return self._close(put=False, back=back, cause=cause + "." + last)

    def _after(self, job, wait):
        """The state of the earlier extender, whose manifest is back already; "" without `wait`."""
        if not wait:
            return ""
        try:
            earlier = (read(job["manifest"]) or b"").decode("utf-8", "replace")
            refused = "" if job["revision"] in earlier else job["revision"]
            answers = self._answers(ready_of(earlier, job["ready"]), refused, job["mirror"])
            return "answers" if answers else "does not answer either"
        except Exception as e:  # noqa: BLE001
            return "could not be reached: %r" % e

    def _answers(self, url, refused, mirror):
        """refused: the revision whose processes are in the way; empty for none."""
        ends, kubelet = time.monotonic() + BACK_LIMIT_S, Kubelet(self.io.run, mirror)
        while True:
            if refused:
                end(refused)  # again: the kubelet may have started one more before it saw the earlier manifest
            if status_of(url) == READY:
                return True
            if time.monotonic() >= ends:
                return False
            kubelet.resync()
            time.sleep(LOOK_EVERY_S)

    def _close(self, **verdict):
        """Ends the change in one step, then removes its files."""
        self.report(**verdict)
        self.io.remove(self.ended)
        self.io.rename(self.pending, self.ended)
        self._clear()
        return verdict

    def _clear(self):
        self.io.remove(self.ended)
        self.dead_man.disarm()

    def report(self, **verdict):
        print(json.dumps(verdict), flush=True)
        with contextlib.suppress(OSError):  # a full disk: the journal has the verdict too
            self.io.write(self.verdict, json.dumps(verdict).encode())
        return verdict


def job_of(arguments):
    return {
        "manifest": arguments.manifest,
        "revision": arguments.revision,
        "ready": arguments.ready,
        "limit_s": arguments.limit_s,
        "silent_s": arguments.silent_s,
        "mirror": arguments.mirror,
    }


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--units", default=UNITS, help="folder of systemd's units; default: %(default)s")
    parser.add_argument("command", choices=["put", "recover"])
    for name in ("manifest", "revision", "ready"):
        parser.add_argument("--" + name, help="for put")
    parser.add_argument("--limit-s", type=float, default=30.0)
    parser.add_argument("--silent-s", type=float, default=6.0)
    parser.add_argument("--mirror", type=json.loads, default=[], help="a command and the pod's name, as a JSON list")
    arguments = parser.parse_args(argv)
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *MORE_PATHS])
    io = HostIO()
    again = [sys.executable, "-B", str(Path(__file__).resolve()), "--folder=" + arguments.folder]
    dead_man = DeadMan(arguments.units, [*again, "--units=" + arguments.units], io, RECOVER, ENDS)
    swap = Swap(Path(arguments.folder), io, dead_man)
    recovers = arguments.command == "recover"
    with Path(arguments.folder, "lock").open("w") as lock:
        try:
            # A put waits for one that an interrupted play has left running.
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if recovers else 0))
        except BlockingIOError:
            return 0
        try:
            verdict = swap.recover() if recovers else swap.put(job_of(arguments))
        except OSError as e:
            cause = "%s; a timer of systemd tries again every %d s to end the change" % (e, AGAIN_S)
            swap.report(put=False, back=False, cause=cause)
            return 1
    return 0 if recovers or verdict["put"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
