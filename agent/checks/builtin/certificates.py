"""The check `certificates`: for how long are the kubelet's certificates good?

Reads the first certificate of each of `files` that is there, in a child process: a folder that hangs is hung, and
harms nobody. The private key beside it is not looked at. One that has
ended, or has not begun, is a failure: with its client certificate gone the kubelet is nobody to the API server, and
neither pods nor the Lease of this node move any more.

A certificate that is missing, a link without its file, an empty file, an unreadable one and one that has ended are
different findings:

| what is seen | verdict |
|---|---|
| a certificate has ended, or has not begun | failed |
| a link leads to a file that is not there, or in a circle; a file is empty, or of zero bytes; it is a folder | warned |
| the kubelet's link `...-current.pem` is not there, while a file that it led to is | warned |
| a file cannot be read, or holds no certificate; a link leads to a place that the agent does not see | unknown |
| a file is not there | passed by the others, and named; unknown where none of them is there |

What only warns is what a kubelet that runs has in memory, and may lack at its next start: its node works until then.

The check warns from `warnDays` before the end on, or in the last tenth of a certificate's life where that is shorter:
the kubelet renews its own well before, so one that gets there is one that is not renewed. A certificate that was
renewed in place is seen at once, as the kernel tells of it, or at the next run, which is the way back.

`kubelet.crt`, which a kubelet makes for itself and never renews, is the one it serves with where nothing else is set;
so beside `kubelet-server-current.pem`, which it has from the cluster, it is a leftover and not looked at. It ends after
a year, on all nodes of a cluster that were made on a day. Nobody can verify it, ended or not, so that only warns; one
that another CA has signed is as any.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from agent.checks.file_contents import read_files
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.subprocess_reader import Elsewhere, NoAnswerError
from agent.kernel.inotify import FolderWatch
from agent.wire.setting_types import NonEmpty
from component.settings import Section
from kube.certificates import NoCertificateError, issuer, validity
from kube.times import format_time

DOC = "the kubelet's client and serving certificates have not ended"
RIGHTS = Rights(reads=("folder",), root=True)
TIMEOUT_S = 5  # a second is short for a child process under load
CALLS = 2  # the first run looks anew once the folders are followed
DAY_S = 86_400.0
OWN, FROM_THE_CLUSTER = "kubelet.crt", "kubelet-server-current.pem"
_MADE_HERE = re.compile(rb"-ca@\d{10}")  # client-go/util/cert: the name of the CA that it makes for one certificate


class Settings(Section, frozen=True):
    """`folder`: as the agent sees it. `files`: names in it."""

    folder: NonEmpty = "/var/lib/kubelet/pki"
    files: Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="a list of one file or more")] = (
        "kubelet-client-current.pem",
        FROM_THE_CLUSTER,
        OWN,
    )
    warn_days: Annotated[int, Meta(ge=0, le=3650, description="days, 0 to 3650")] = 7


@dataclass(frozen=True, slots=True)
class Validity:
    """Of the first certificate of a file (wall). `made_here`: by the kubelet itself, for itself."""

    file: str
    begins: float
    ends: float
    made_here: bool = False


class Check:
    DOUBTS = True

    def __init__(self, settings: Settings, timeout_s: float, wall: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._wall = wall
        self._look = Elsewhere(read_files, settings.folder, settings.files, where=settings.folder)
        self._changes = FolderWatch([settings.folder])

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, HUNG, or UNKNOWN where none of the files can be read."""
        return self._changes.around(self._finding)

    def descriptor(self) -> int | None:
        return self._changes.descriptor()

    def close(self) -> None:
        self._changes.close()

    def _finding(self) -> Finding:
        found: list[Validity] = []
        blind, broken, missing = list[str](), list[str](), list[str]()
        try:
            contents = self._look(self._timeout_s)
        except NoAnswerError as e:
            return e.finding
        leftover = OWN if any(file == FROM_THE_CLUSTER and (text or why) for file, text, why, _ in contents) else ""
        for file, content, unread, wrong in contents:
            if file == leftover:
                continue
            if not content:
                (blind if unread else broken if wrong else missing).append(unread or wrong or file)
                continue
            try:
                pem = content.encode("latin-1")
                made_here = file == OWN and _MADE_HERE.search(issuer(pem)) is not None
                found.append(Validity(file, *validity(pem), made_here))
            except NoCertificateError as e:
                blind.append(f"{file}: {e}")
        return judged(found, blind, self._settings, self._wall(), broken, missing)


def judged(
    found: Sequence[Validity],
    blind: Sequence[str],
    settings: Settings,
    wall: float,
    broken: Sequence[str] = (),
    missing: Sequence[str] = (),
) -> Finding:
    """`blind`: what could not be read, in words. `broken`: what is no file with a certificate any more, in words.
    `missing`: names of files that are not there."""
    others = [one for one in found if not one.made_here]
    bad = [words for one in others if (words := _ended(one, wall))]
    past = [words for one in found if one.made_here and (words := _ended(one, wall))]
    soon = [words for one in others if (words := _ends_soon(one, wall, settings.warn_days * DAY_S))]
    if bad:
        return Finding(CheckState.FAILED, "; ".join([*bad, *broken]))
    warned = [*broken, *soon, *past]
    if blind:
        return Finding(CheckState.UNKNOWN, "; ".join([*blind, *warned]))
    if warned:
        return Finding(CheckState.WARNED, "; ".join(warned))
    if not found:
        return Finding(CheckState.UNKNOWN, f"{settings.folder} has none of {', '.join(settings.files)}")
    text = ", ".join(f"{v.file} {_days(v.ends - wall)}" for v in found)
    return Finding(CheckState.PASSED, f"{text}; not there: {', '.join(missing)}" if missing else text)


def _ended(one: Validity, wall: float) -> str:
    if wall >= one.ends:
        return f"{one.file} has ended at {format_time(one.ends)}"
    return f"{one.file} is not valid before {format_time(one.begins)}" if wall < one.begins else ""


def _ends_soon(one: Validity, wall: float, warn_s: float) -> str:
    left_s = one.ends - wall
    return f"{one.file} ends in {_days(left_s)}" if left_s < min(warn_s, (one.ends - one.begins) / 10) else ""


def _days(seconds: float) -> str:
    return f"{seconds / DAY_S:.1f} days"
