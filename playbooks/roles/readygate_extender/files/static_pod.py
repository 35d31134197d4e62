"""Puts the extender's manifest in place, and the earlier one back where the new one does not answer in time.

    static_pod.py --wanted FILE --manifest FILE --earlier FILE --verdict FILE --revision WORD --ready URL --limit-s N

Runs on the host, by itself: whoever started it may be gone. Needs Python 3.6, no API server, and kubectl only where
--mirror says how it is asked about the mirror pod: then the kubelet looks again as soon as nobody answers (kubelet.py,
which lies beside it). The kubelet sees one rename, and never a third file in the folder of its manifests. What was in
place is kept as --earlier until the new one has answered: an interrupted run leaves it there, and the next one knows by
it what was proven last.
Answers means: a process of this revision runs (READYGATE_REVISION in its environment), and --ready says 200. Writes the
verdict, one JSON object: {"put": true or false, "back": whether the earlier one is in place again, "said": one line}.
"""

import argparse
import fcntl
import json
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from kubelet import Kubelet

LOOK_EVERY_S = 0.2
EVIDENCE_LINES = 5
BACK_LIMIT_S = 60.0  # nothing more can be done by then but to say so
READINESS = re.compile(r"host: ([^ ,]+), path: /readyz, port: ([0-9]+), scheme: (HTTPS?)")
LOGS = Path("/var/log/pods")
CONTAINER = "readygate-system_readygate-extender-*/extender/*.log"


def runs(revision):
    """Whether a process of that revision is there."""
    wanted = ("READYGATE_REVISION=%s" % revision).encode()
    return any(wanted in environ for environ in map(environ_of, Path("/proc").glob("[0-9]*/environ")))


def environ_of(path):
    try:
        return path.read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile
        return []


def is_ready(url):
    context = ssl.create_default_context()  # the process is known otherwise
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def command(argv, limit_s):
    """Its code and what it said; 127: it cannot be run, 124: it took too long."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        done = subprocess.run(argv, timeout=limit_s, check=False, **quiet)
    except subprocess.TimeoutExpired:
        return 124, ""
    except OSError as e:
        return 127, str(e)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def answers_within(revision, url, limit_s, mirror):
    """revision: None for whichever."""
    ends, kubelet = time.monotonic() + limit_s, Kubelet(command, mirror)
    while True:
        ready = is_ready(url)
        if ready and (revision is None or runs(revision)):
            return True
        if time.monotonic() >= ends:
            return False
        if not ready:
            kubelet.look()
        time.sleep(LOOK_EVERY_S)


def copy_over(source, target, folder):
    """A copy of source becomes target, in one step; it is made in folder: what lies in its own the kubelet reads."""
    temporary = folder / "moving"
    with temporary.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(source.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(target)


def newest_log():
    """Of the container that was started last, None if there is none."""
    try:
        return max(LOGS.glob(CONTAINER), key=lambda path: path.stat().st_mtime, default=None)
    except OSError:  # rotated meanwhile
        return None


def evidence(log):
    """The last lines of the container that did not answer."""
    if log is None or not log.exists():
        return "no log: its container was never started; look with crictl and journalctl --unit kubelet"
    lines = log.read_text(errors="replace").splitlines()[-EVIDENCE_LINES:]
    return " | ".join(line.strip()[:300] for line in lines)


def ready_of(manifest, otherwise):
    """Where the extender of a manifest says whether it is ready: an earlier one may have another port."""
    found = READINESS.search(manifest)
    return "%s://%s:%s/readyz" % (found.group(3).lower(), found.group(1), found.group(2)) if found else otherwise


def run(arguments):
    manifest, earlier = arguments.manifest, arguments.earlier
    if manifest.exists() and not earlier.exists():
        copy_over(manifest, earlier, earlier.parent)
    mirror = arguments.mirror if earlier.exists() else []  # a first one has nothing to wait for
    copy_over(arguments.wanted, manifest, earlier.parent)
    if answers_within(arguments.revision, arguments.ready, arguments.limit_s, mirror):
        if earlier.exists():
            earlier.unlink()
        return {"put": True, "back": False, "said": "the extender of the new manifest answers"}
    back, log = earlier.exists(), newest_log()
    if back:
        earlier.rename(manifest)
    else:
        manifest.unlink()
    # It is back already: what is looked at now cannot keep it from being so.
    url = ready_of(manifest.read_text(), arguments.ready) if back else ""
    answers = back and answers_within(None, url, BACK_LIMIT_S, arguments.mirror)
    said = "the extender of the new manifest did not answer within %g s; " % arguments.limit_s
    if back:
        said += "the earlier one is back in place and %s" % ("answers" if answers else "does not answer either")
    else:
        said += "there was no earlier one, so there is none"
    return {"put": False, "back": back, "said": "%s. Its last lines: %s" % (said, evidence(log))}


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("wanted", "manifest", "earlier", "verdict"):
        parser.add_argument("--" + name, type=Path, required=True)
    parser.add_argument("--revision", required=True)
    parser.add_argument("--ready", required=True)
    parser.add_argument("--limit-s", type=float, required=True)
    parser.add_argument("--mirror", type=json.loads, default=[], help="a command and the pod's name, as a JSON list")
    arguments = parser.parse_args(argv)
    folder = arguments.verdict.parent
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one that an interrupted play has left running ends first
        try:
            verdict = run(arguments)
        except OSError as e:
            verdict = {"put": False, "back": False, "said": str(e)}
        temporary = folder / "verdict.new"
        temporary.write_text(json.dumps(verdict))
        temporary.rename(arguments.verdict)
    return 0 if verdict["put"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
