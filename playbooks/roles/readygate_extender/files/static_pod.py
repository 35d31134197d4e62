"""Puts the extender's manifest in place, and the earlier one back where the new one does not answer in time.

    static_pod.py --folder DIR put --manifest FILE --revision WORD --ready URL
                  [--limit-s N] [--silent-s N] [--mirror JSON]
    static_pod.py --folder DIR recover

Runs on the host, by itself: whoever started it may be gone. Needs Python 3.6, systemd, no API server, and kubectl only
where --mirror says how it is asked about the mirror pod: then the kubelet looks again as soon as nobody answers. The
kubelet sees one rename, and never a third file in the folder of its manifests. In DIR:

    wanted.yaml           the new manifest
    pending/              the open change: job.json, and the earlier manifest
    verdict.json          what came of the last one
    readygate_scheduler/  what this program shares with the one that changes kube-scheduler

Answers means: a process of this revision runs (READYGATE_REVISION in its environment), and --ready says 200. One that
ran before (somebody has edited the manifest by hand) counts only when the kubelet leaves it alone for a while. It goes
back as soon as such a process has ended, when nobody has answered for --silent-s (for longer where the kubelet has not
started it, or just now), and at the latest after --limit-s, which is for one that is there and not ready yet. While a
change is open a timer of systemd calls `recover`, at boot
too: so a run that was killed is ended by the host, forwards where the new extender answers, else backwards. Where it
stands is never noted: it is what lies in pending/ and in place. The verdict is one JSON object: {"put": true or false,
"back": whether the earlier one is in place again, "said": one line}.
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
READY, NOT_READY, SILENT = 200, 503, 0  # what /readyz says; SILENT: nothing at all
EVIDENCE_LINES = 5
NOT_STARTED, JUST_STARTED = 2.5, 1 / 3  # of the silence: a kubelet that is busy is not the new one's fault
GRACE_S = 5.0  # what a `recover` gives a change whose time is over already
LEFT_ALONE_S = 5.0  # by a kubelet that sees nothing to change: it ends a process within a second or two
BACK_LIMIT_S = 60.0  # nothing more can be done by then but to say so
READINESS = re.compile(r"host: ([^ ,]+), path: /readyz, port: ([0-9]+), scheme: (HTTPS?)")
ANNOTATIONS = re.compile(rb"^  annotations: *\n", re.MULTILINE)
PUT_BACK = "readygate.dev/put-back"  # left out where manifests are compared
MARK = re.compile(("^    %s: .*\n" % re.escape(PUT_BACK)).encode(), re.MULTILINE)
BOOT = Path("/proc/sys/kernel/random/boot_id")
LOGS = Path("/var/log/pods")
BESIDE = "READYGATE_REVISION_BESIDE"  # of the pod's other containers, which prove nothing
CONTAINER = "readygate-system_readygate-extender-*/extender/*.log"


def processes_of(revision, variable="READYGATE_REVISION"):
    """The ids of those that are there."""
    wanted = ("%s=%s" % (variable, revision)).encode()
    return {int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if wanted in environ_of(path)}


def end(revision):
    """Of what answers nothing nothing is lost; the kubelet would wait for it for the pod's whole grace period. So it
    would for whoever runs beside it: a container that has only just been started does not hear a signal yet, as its
    process is the first one there."""
    for process in processes_of(revision) | processes_of(revision, BESIDE):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


def environ_of(path):
    try:
        return path.read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile
        return []


def status_of(url):
    """What is answered there; SILENT too for what is no HTTP."""
    context = ssl.create_default_context()  # the process is known otherwise
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
    """Of the container that was started last, None if there is none."""
    try:
        return max(LOGS.glob(CONTAINER), key=lambda path: path.stat().st_mtime, default=None)
    except OSError:  # rotated meanwhile
        return None


def evidence(log):
    """The last lines of the container that did not answer."""
    try:
        lines = log.read_text(errors="replace").splitlines()[-EVIDENCE_LINES:] if log else []
    except OSError:
        lines = []
    if log and not lines:
        return "it has said nothing"
    if not lines:
        return "no log: its container was never started; look with crictl and journalctl --unit kubelet"
    return " | ".join(line.strip()[:300] for line in lines)


def ready_of(manifest, otherwise):
    """Where the extender of a manifest says whether it is ready: an earlier one may have another port."""
    found = READINESS.search(manifest)
    return "%s://%s:%s/readyz" % (found.group(3).lower(), found.group(1), found.group(2)) if found else otherwise


def marked(manifest, milliseconds):
    """As another pod: the kubelet would take it for the one that it has just ended, and let who is put back a second
    time within ten minutes wait ten seconds, then twenty, as one that crashes again and again. Without annotations it
    stays as it is."""
    line = ('    %s: "%d"\n' % (PUT_BACK, milliseconds)).encode()
    return ANNOTATIONS.sub(lambda found: found.group() + line, MARK.sub(b"", manifest), count=1)


class Patience:
    """How long a new one is waited for. Pure. silent_s: how long nobody may answer, so also how long nothing is placed
    in enforce, where the kubelet starts it in time; limit_s: of all of it."""

    def __init__(self, now, limit_s, silent_s):
        self._limit_s, self._silent_s = limit_s, silent_s
        self._ends, self._heard, self._started = now + limit_s, now, None
        self._seen = set()

    def cause(self, now, status, processes):
        """Why it is not waited for any longer; None while it is. status: of /readyz, not that of a new one that is
        ready; processes: of the new one. The earlier one, and who is not ready yet, answers as well."""
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
                "the kubelet has not started it for %g s, and nobody answers" % limit_s if silent_s >= limit_s else None
            )
        if silent_s >= self._silent_s and now - self._started >= JUST_STARTED * self._silent_s:
            return "nobody has answered for %g s" % self._silent_s
        return None


class Swap:
    """One change of the manifest, from begin to verdict. Whoever holds the lock may call it."""

    def __init__(self, folder, io, dead_man):
        self.io = io
        self.dead_man = dead_man
        self.wanted = folder / "wanted.yaml"
        self.moving = folder / "moving"  # what lies in the manifest's own folder the kubelet reads
        self.told = folder / "verdict.json"
        self.new = folder / "pending.new"
        self.pending = folder / "pending"
        self.ended = folder / "ended"
        self.earlier = self.pending / "earlier.yaml"

    def put(self, job):
        """The verdict. job: manifest, revision, ready, limit_s, silent_s, mirror."""
        self.recover()
        wanted = read(self.wanted)
        try:
            self._begin(job, wanted)
        except OSError as e:
            return self.tell(put=False, back=False, said="%s; nothing was changed" % e)
        try:
            self.dead_man.arm()
            self.io.write(self.moving, wanted)
            self.io.label(self.moving, job["manifest"])
            self.io.rename(self.moving, job["manifest"])
        except Exception as e:  # noqa: BLE001 - whatever it is, it must not leave the new one in place
            return self._back(job, str(e))
        return self._settle(job, job["limit_s"])

    def recover(self):
        """Ends what was interrupted: the verdict, None where there is nothing to end."""
        if read(self.pending / "job.json") is None:
            self._clear()
            return None
        job = noted(self.pending / "job.json")
        if not job:
            return self._set_aside()
        if digest(read(job["manifest"])) != job["wanted"]:
            return self._back(job, "the change was interrupted")
        if job["boot"] != BOOT.read_text():
            return self._back(job, "the host was restarted in the middle", wait=False)
        return self._settle(job, max(GRACE_S, job["until"] - time.monotonic()))

    def _set_aside(self):
        """A change whose job a disk has lost: nobody knows which manifest it was about."""
        lost = self.pending.with_name("unreadable")
        self.io.remove(lost)
        self.io.rename(self.pending, lost)
        self._clear()
        said = "the job of a change that was interrupted cannot be read; it lies in %s now, and the manifest" % lost
        return self.tell(put=False, back=False, said=said + " in place was left as it is")

    def _begin(self, job, wanted):
        """All that is needed to end it either way is on the disk before the first thing changes."""
        before = read(job["manifest"])
        self.io.remove(self.told)
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
        except Exception as e:  # noqa: BLE001 - whatever it is, nothing is proven
            cause = "whether the extender of the new manifest answers could not be seen: %r" % e
        if not cause:
            return self._close(put=True, back=False, said="the extender of the new manifest answers")
        return self._back(job, cause)

    def _why_not(self, job, limit_s):
        """Empty as soon as the new one answers."""
        kubelet = Kubelet(self.io.run, job["mirror"] if job["expected"] else [])  # a first one waits for nothing
        # A job of an earlier release, which was killed, knows one limit only.
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
                kubelet.look()
            time.sleep(LOOK_EVERY_S)

    def _back(self, job, cause, wait=True):
        """The earlier one first, then what can be told of the cause: nothing keeps the first from happening."""
        in_place, log = digest(read(job["manifest"])), newest_log()
        swapped = in_place == job["wanted"] != job["expected"]
        if swapped and job["expected"]:
            with contextlib.suppress(OSError):  # a full disk: then it may wait
                self.io.write(self.earlier, marked(read(self.earlier), time.time() * 1000))
            self.io.label(self.earlier, job["manifest"])
            self.io.rename(self.earlier, job["manifest"])
        elif swapped:
            self.io.remove(job["manifest"])
        said = evidence(log) if swapped else ""  # the kubelet removes it with the pod
        back = bool(job["expected"]) and not self.earlier.exists()  # also by a run that was killed after that
        if back:
            state = self._after(job, wait)
            cause += "; the earlier one is back in place%s" % (" and " + state if state else "")
        elif swapped:
            cause += "; there was no earlier one, so there is none"
        elif in_place != job["expected"]:
            cause += "; somebody else has written %s meanwhile, it was left as it is" % job["manifest"]
        else:
            cause += "; nothing was changed"
        last = " Its last lines: %s" % said if swapped else ""
        return self._close(put=False, back=back, said=cause + "." + last)

    def _after(self, job, wait):
        """What is seen of the earlier one; "" where nobody waited. It is back already: nothing seen now undoes that."""
        if not wait:
            return ""
        try:
            earlier = (read(job["manifest"]) or b"").decode("utf-8", "replace")
            refused = "" if job["revision"] in earlier else job["revision"]
            answers = self._answers(ready_of(earlier, job["ready"]), refused, job["mirror"])
            return "answers" if answers else "does not answer either"
        except Exception as e:  # noqa: BLE001
            return "could not be asked: %r" % e

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
            kubelet.look()
            time.sleep(LOOK_EVERY_S)

    def _close(self, **verdict):
        """First the change is over in one step, then it is tidied up."""
        self.tell(**verdict)
        self.io.remove(self.ended)
        self.io.rename(self.pending, self.ended)
        self._clear()
        return verdict

    def _clear(self):
        self.io.remove(self.ended)
        self.dead_man.disarm()

    def tell(self, **verdict):
        print(json.dumps(verdict), flush=True)
        with contextlib.suppress(OSError):  # a full disk: it is in the journal too
            self.io.write(self.told, json.dumps(verdict).encode())
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
    parser.add_argument("--units", default=UNITS, help="of systemd; default: %(default)s")
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
            said = "%s; a timer of systemd tries again every %d s to end the change" % (e, AGAIN_S)
            swap.tell(put=False, back=False, said=said)
            return 1
    return 0 if recovers or verdict["put"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
