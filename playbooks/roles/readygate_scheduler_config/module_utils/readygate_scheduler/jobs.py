"""What a change is told, and what is kept of it once it worked. Pure.

A job is a JSON object:

    id               the change's own name
    target, wanted   the file that makes the scheduler run so, and its new content; None: it is to go
    expected, mode   digest of what was there when it was looked at, empty for no file; rights of a new one
    without          the content without us, for `detach`; None: no file
    files            content by path of the configuration beside it
    note             what is kept of the state before us; {}: nobody knows, an earlier note stays
    command          arguments of the new process; before_command: of the old one; empty: any
    restarts         whether a new process has to start
    restart          commands after each change of the file, where no kubelet looks at it
    trial            arguments with which the scheduler's own binary reads the configuration and ends; empty: no trial
    configz, expect  the command that reads /configz, and what it has to show; no command: it is not asked
    mirror           how kubectl is asked about the scheduler's mirror pod, and its name; empty: there is none
    lease            commands about the Lease of who leads (lease.py); empty: there is none, or nobody knows which
    healthz          URL that answers 200
    limit_s          what the new process may take to prove itself
    force            change it even where the scheduler does not work now
    keep             never put the earlier file back
    logs, evidence   pattern of log files and a command, for the last words of a scheduler that failed; UNTIL in it is
                     the time, in seconds since 1970, when the earlier one was put back
"""

import hashlib
from typing import Any, Dict, Optional

Job = Dict[str, Any]

UNTIL = "{until}"


def digest(data: Optional[bytes]) -> str:
    """Of a file's content; empty for a file that is not there."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def wanted_of(job: Job) -> str:
    """Digest of the file that the job is for; empty where it is to go."""
    return digest(job["wanted"].encode()) if job["wanted"] is not None else ""


def mark_of(job: Job) -> Dict[str, Any]:
    """What is kept of a job that worked: what was proven, by content, and how to look again."""
    kept = ("id", "target", "command", "healthz", "configz", "expect", "restart", "logs", "evidence", "limit_s", "mode")
    files = {path: digest(text.encode()) for path, text in job["files"].items()}
    # A job of an earlier release, open or proven, has no mirror.
    return dict({key: job[key] for key in kept}, mirror=job.get("mirror", []), wanted=wanted_of(job), files=files)
