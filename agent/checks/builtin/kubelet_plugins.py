"""The check `kubeletPlugins`: do the plugins of the kubelet, drivers of volumes and devices, answer?

Each socket in `folder` is asked who it is (GetInfo), as the kubelet does when it registers a plugin; nobody is told of
a registration, and nothing else is called. What a driver does at its other sockets is not looked at, nor whether the
kubelet has registered it: a socket that answers here is one that the kubelet can register.

`expected` names plugins that the node needs, by name (`csi.example.com`) or by type and name
(`CSIPlugin/csi.example.com`). It fails where one of them is not there. Where one does not answer, and so does not say
its name, it is hung: it may be the missing one.

Without `expected` whatever lies there is needed: one that does not answer is hung. A socket where nobody listens is
what a plugin leaves behind when it is killed, so it is a warning, as is one that is hung or broken beside all of the
expected ones.

The way back is the next run with an answer; the check restarts nothing. All sockets are asked at once, at most 32.
The folder is read by a child process: where its mount hangs, that child is killed and the check says hung.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.subprocess_reader import Elsewhere, NoAnswerError, Patience
from agent.cri.base import Trouble
from agent.kubelet.plugins.base import PluginError, PluginInfo
from agent.kubelet.plugins.sockets import names_of_sockets
from agent.wire.setting_types import NonEmpty
from component.settings import Section
from component.text import one_line

DOC = "the kubelet's plugins that are there, or those that are expected, say who they are"
RIGHTS = Rights(reads=("folder",), root=True)
TIMEOUT_S = 5  # a second is short for a child process under load
MOST = 32
PATIENCE = 0.8  # of the timeout: what hangs is named before the run itself is late

Answers = Mapping[str, PluginInfo | PluginError]


class Settings(Section, frozen=True):
    """`folder`: as the agent sees it. `expected`: names, or types and names; none: whatever lies there."""

    folder: NonEmpty = "/var/lib/kubelet/plugins_registry"
    expected: tuple[NonEmpty, ...] = ()


class Check:
    def __init__(
        self,
        settings: Settings,
        timeout_s: float,
        ask: Callable[[Iterable[str], float], Answers] | None = None,
    ) -> None:
        self._settings = settings
        self._within_s = PATIENCE * timeout_s
        self._ask = ask or _ask
        self._look = Elsewhere(names_of_sockets, settings.folder, where=settings.folder)

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, HUNG with the socket, UNKNOWN where the agent lacks rights or packages to ask."""
        patience = Patience(self._within_s)
        try:
            found = self._look(patience.left_s())
        except FileNotFoundError as e:
            state = CheckState.FAILED if self._settings.expected else CheckState.UNKNOWN
            return Finding(state, f"there is no {e.filename}")
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        except NoAnswerError as e:
            return e.finding
        try:
            answers = self._ask(found[:MOST], patience.left_s()) if found else {}
        except PluginError as e:
            return Finding(CheckState.UNKNOWN, str(e))
        return judged(answers, self._settings.expected, max(0, len(found) - MOST))


def judged(answers: Answers, expected: Iterable[str], unasked: int = 0) -> Finding:
    """`answers`: by socket. `unasked`: how many sockets there are beyond those."""
    infos = [answer for answer in answers.values() if isinstance(answer, PluginInfo)]
    names = {one_line(info.name) for info in infos} | {_full(info) for info in infos}
    missing = [name for name in expected if name not in names]
    silent = {Path(socket).name: e for socket, e in answers.items() if isinstance(e, PluginError)}
    words = [f"{name}: {error}" for name, error in silent.items()]
    words += [f"{unasked} sockets more were not asked"] if unasked else []
    if missing:
        text = "; ".join([f"missing: {', '.join(missing)}", *words])
        return Finding(_of_missing([error.trouble for error in silent.values()], unasked), text)
    if any(error.trouble is Trouble.NO_RIGHTS for error in silent.values()) and not expected:
        return Finding(CheckState.UNKNOWN, "; ".join(words))
    hung = any(error.trouble is Trouble.HANGS for error in silent.values())
    if hung and not expected:
        return Finding(CheckState.HUNG, "; ".join(words))
    if words:
        return Finding(CheckState.WARNED, "; ".join(words))
    return Finding(CheckState.PASSED, ", ".join(sorted(map(_full, infos))) or "no plugins")


def _of_missing(troubles: list[Trouble], unasked: int) -> CheckState:
    """One that does not say its name may be the missing one."""
    if Trouble.NO_RIGHTS in troubles or unasked:
        return CheckState.UNKNOWN
    return CheckState.HUNG if Trouble.HANGS in troubles else CheckState.FAILED


def _full(info: PluginInfo) -> str:
    return one_line(f"{info.type}/{info.name}")


def _ask(sockets: Iterable[str], within_s: float) -> Answers:
    try:
        from agent.kubelet.plugins.client import ask_all  # late: gRPC is large
    except ImportError as e:
        raise PluginError(Trouble.NO_PACKAGES, e) from None
    return ask_all(sockets, within_s)
