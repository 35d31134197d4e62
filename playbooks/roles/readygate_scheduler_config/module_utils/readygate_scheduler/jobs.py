"""The job of a change, and the mark that is saved of it once it worked. Pure.

A job is a JSON object:

    id               the change's own name
    target, wanted   the file that determines how the scheduler runs, and its new content; None: remove the file
    expected, mode   digest of the content when it was read, empty for no file; rights of a new file
    without          the content without readygate, for `detach`; None: no file
    files            content of the scheduler's configuration files, by path
    note             the state before readygate; {}: unknown, an earlier note stays
    command          arguments of the new process; before_command: of the old one; empty: any
    restarts         whether a new process must start
    restart          commands to run after each change of the file, if no kubelet reads it
    trial            arguments with which the scheduler's own binary reads the configuration and exits; empty: no trial
    configz, expect  the command that reads /configz, and what it must show; no command: it is not read
    mirror           kubectl's command line for the scheduler's mirror pod, its name last; empty: there is none
    lease            commands for the Lease of the leader (lease.py); empty: there is none, or it is unknown
    healthz          URL that answers 200
    limit_s          how long the new process may take to be proven
    force            change the scheduler even if it does not work now
    keep             never put the earlier file back
    logs, evidence   pattern of log files and a command, for the last log lines of a scheduler that failed; UNTIL in it
                     is the time, in seconds since 1970, at which the earlier file was put back
"""

import hashlib
from typing import Any, Dict, Optional

Job = Dict[str, Any]

UNTIL = "{until}"


def digest(data: Optional[bytes]) -> str:
    """The digest of a file's content; empty for a missing file."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def wanted_of(job: Job) -> str:
    """The digest of the wanted content of the job's file; empty if the job removes it."""
    return digest(job["wanted"].encode()) if job["wanted"] is not None else ""


def mark_of(job: Job) -> Dict[str, Any]:
    """What is saved of a job that worked: digests of the proven files, and how to check the scheduler again."""
    keys = ("id", "target", "command", "healthz", "configz", "expect", "restart", "logs", "evidence", "limit_s", "mode")
    files = {path: digest(text.encode()) for path, text in job["files"].items()}
    # A job of an earlier release, open or proven, has no mirror.
    return dict({key: job[key] for key in keys}, mirror=job.get("mirror", []), wanted=wanted_of(job), files=files)
