"""The check `certificates`: for how long are the kubelet's certificates good?

Reads the first certificate of each of `files` that is there; the private key beside it is not looked at. One that has
ended, or has not begun, is a failure: with its client certificate gone the kubelet is nobody to the API server, and
neither pods nor the Lease of this node move any more.

The check warns from `warnDays` before the end on, or in the last tenth of a certificate's life where that is shorter:
the kubelet renews its own well before, so one that gets there is one that is not renewed. A certificate that was
renewed in place is seen at the next run, which is the way back.

`kubelet.crt`, which a kubelet makes for itself and never renews, is the one it serves with where nothing else is set.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.keys import NonEmpty
from component.settings import Section
from kube.certificates import NoCertificateError, validity
from kube.times import format_time

DOC = "the kubelet's client and serving certificates have not ended"
RIGHTS = Rights(reads=("folder",), root=True)
LIMIT_BYTES = 2**20
DAY_S = 86_400.0


class Settings(Section, frozen=True):
    """`folder`: as the agent sees it. `files`: names in it."""

    folder: NonEmpty = "/var/lib/kubelet/pki"
    files: Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="a list of one file or more")] = (
        "kubelet-client-current.pem",
        "kubelet-server-current.pem",
        "kubelet.crt",
    )
    warn_days: Annotated[int, Meta(ge=0, le=3650, description="days, 0 to 3650")] = 7


@dataclass(frozen=True, slots=True)
class Validity:
    """Of the first certificate of a file (wall)."""

    file: str
    begins: float
    ends: float


class Check:
    def __init__(self, settings: Settings, _timeout_s: float, wall: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._wall = wall

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, or UNKNOWN where none of the files can be read."""
        found: list[Validity] = []
        blind: list[str] = []
        for file in self._settings.files:
            try:
                with _resolved(Path(self._settings.folder, file)).open("rb") as opened:
                    begins, ends = validity(opened.read(LIMIT_BYTES))
                found.append(Validity(file, begins, ends))
            except FileNotFoundError:
                continue
            except OSError as e:
                blind.append(f"cannot read {e.filename}: {e.strerror}")
            except NoCertificateError as e:
                blind.append(f"{file}: {e}")
        return judged(found, blind, self._settings, self._wall())


def judged(found: Sequence[Validity], blind: Sequence[str], settings: Settings, wall: float) -> Finding:
    """`blind`: what could not be read, in words."""
    bad = [words for one in found if (words := _ended(one, wall))]
    soon = [words for one in found if (words := _ends_soon(one, wall, settings.warn_days * DAY_S))]
    if bad:
        return Finding(CheckState.FAILED, "; ".join(bad))
    if blind or not found:
        return Finding(
            CheckState.UNKNOWN, "; ".join(blind) or f"{settings.folder} has none of {', '.join(settings.files)}"
        )
    if soon:
        return Finding(CheckState.WARNED, "; ".join(soon))
    return Finding(CheckState.PASSED, ", ".join(f"{v.file} {_days(v.ends - wall)}" for v in found))


def _resolved(file: Path) -> Path:
    """The kubelet's links are absolute, and lead nowhere where the host's folder is mounted at another place."""
    return file.parent / Path(os.readlink(file)).name if file.is_symlink() else file  # noqa: PTH115 - str is enough


def _ended(one: Validity, wall: float) -> str:
    if wall >= one.ends:
        return f"{one.file} has ended at {format_time(one.ends)}"
    return f"{one.file} is not valid before {format_time(one.begins)}" if wall < one.begins else ""


def _ends_soon(one: Validity, wall: float, warn_s: float) -> str:
    left_s = one.ends - wall
    return f"{one.file} ends in {_days(left_s)}" if left_s < min(warn_s, (one.ends - one.begins) / 10) else ""


def _days(seconds: float) -> str:
    return f"{seconds / DAY_S:.1f} days"
