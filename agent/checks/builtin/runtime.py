"""The check `runtime`: does the container runtime answer, and does it say that it can start pods?

Asks over the CRI, as the kubelet does, and starts or ends nothing: Version, Status, the list of pods, and the status
of the newest container, one after the other. A runtime may answer some of these for hours while another hangs: the
finding names the first call that has no answer. Each call has the check's timeout for itself, five seconds unless said
otherwise (with a shorter period: that): a node under load takes long. It fails where

- a call hangs (then it says hung), is refused, or nobody listens;
- the runtime itself says that it is not ready (`RuntimeReady`), or has no network for new pods (`NetworkReady`): both
  with its own words.

It warns where the runtime works with another network than its files say: it could not load the newest configuration
(containerd tells that as `lastCNILoadStatus`), or it has not seen it: with `confDir` the name of the network in the
file that counts is compared with those that the runtime has loaded. So a file that was moved into place unseen is
found before the runtime is restarted, and the check `cni` says what is wrong in the file. It warns too where a list is
larger than 8 MiB, which is not read: the runtime has answered.

`socket` may be several paths: the first that answers counts, for as long as the agent runs. One that does not, or
offers no CRI, as the containerd of a Docker beside the runtime of Kubernetes, counts only where no other answers. Where
none of several has ever been there, or offered a CRI, the check warns that it looks at nothing: one configuration is
good for nodes with different runtimes.

No sandbox is made to see whether one can be: that takes the right to make containers, which is all rights on the host,
and an address in each run. For pods that do not start though all checks pass there is the gate `podStarts`.

The kubelet finds a runtime that hangs after half a minute to three minutes. The way back is the next run with an
answer to each call; the check restarts nothing.
"""

import json
import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from msgspec import Meta

from agent.checks.executables import network_name
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.subprocess_reader import Elsewhere, NoAnswerError
from agent.cri.base import (
    CONTAINERD_SOCKET,
    NETWORK_READY,
    RUNTIME_READY,
    CriError,
    Reader,
    RuntimeStatus,
    Trouble,
    Version,
)
from agent.processes.command import RuntimeUnavailable
from agent.wire.containers import RuntimePod
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = "the container runtime answers each call in time, and says that it and its network are ready"
RIGHTS = Rights(reads=("socket", "confDir"), root=True)
TIMEOUT_S = 5  # a second is short for a node under load
CALLS = 6  # in one run, one after the other: the list of pods is two, and the files are looked at
_STATES = {
    Trouble.HANGS: CheckState.HUNG,
    Trouble.NO_PACKAGES: CheckState.UNKNOWN,
    Trouble.NO_RIGHTS: CheckState.UNKNOWN,
    Trouble.TOO_LARGE: CheckState.UNKNOWN,
}
LOADED = "lastCNILoadStatus"
CONFIGURATION = "cniconfig"


class Settings(Section, frozen=True):
    """As the agent sees them. `socket`: of several the first that answers. `conf_dir` None: what the files say is not
    compared."""

    socket: NonEmpty | Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="paths")] = CONTAINERD_SOCKET
    conf_dir: NonEmpty | None = None


class Check:
    def __init__(
        self, settings: Settings, timeout_s: float, connect: Callable[[str, float], Reader] | None = None
    ) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._connect = connect or _connected
        conf_dir = settings.conf_dir
        self._configuration = None if conf_dir is None else Elsewhere(network_name, conf_dir, where=conf_dir)
        self._reader: Reader | None = None
        # Of several sockets the one that has answered first is looked at from then on, there or not.
        self._socket = settings.socket if isinstance(settings.socket, str) else ""

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED, HUNG with the call, UNKNOWN where the agent has no right, or no packages, to ask."""
        sockets = [self._socket] if self._socket else list(filter(os.path.exists, self._settings.socket))
        if not sockets:
            return Finding(
                CheckState.WARNED, f"left out, as none of these is there: {', '.join(self._settings.socket)}"
            )
        try:
            reader, version = self._answering(sockets)
            status = reader.status(verbose=True)
            pods, too_many = _listed(reader)
            newest = max((c for pod in pods for c in pod.containers), key=lambda c: c.created_at, default=None)
            if newest is not None:
                reader.container(newest.id)  # None is an answer as well: it was removed meanwhile
        except CriError as e:
            self._leave()
            if e.trouble is Trouble.NOT_OFFERED and not self._socket:
                return Finding(CheckState.WARNED, f"left out, as none of the sockets is of a CRI: {e}")
            return Finding(_STATES.get(e.trouble, CheckState.FAILED), str(e))
        except RuntimeUnavailable as e:
            self._leave()
            return Finding(CheckState.FAILED, str(e))
        said = f"{version.name} {version.version}, {len(pods)} pods"
        found = judged(status, said, self._named_network())
        return Finding(CheckState.WARNED, too_many) if too_many and found.state is CheckState.PASSED else found

    def _answering(self, sockets: Sequence[str]) -> tuple[Reader, Version]:
        """The first that says its version. Raises CriError of the first that does not, one that offers no CRI last;
        at once of one that hangs: there is no time for another."""
        troubles = list[CriError]()
        for socket in sockets:
            try:
                reader = self._reader = self._reader or self._connect(socket, self._timeout_s)
                version = reader.version()
            except CriError as e:
                if e.trouble is Trouble.HANGS:
                    raise
                self._leave()
                troubles.append(e)
            else:
                self._socket = socket
                return reader, version
        raise min(troubles, key=lambda e: e.trouble is Trouble.NOT_OFFERED)

    def _named_network(self) -> str:
        """The name in the file that counts; empty where it cannot be told: the check `cni` says why."""
        if self._configuration is None:
            return ""
        try:
            found: str = self._configuration(self._timeout_s)
        except (OSError, NoAnswerError):
            return ""
        return found

    def _leave(self) -> None:
        """The next run connects anew: this connection would wait a second before it tries again, and so answer a run
        that comes when the runtime is back for as long as that."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def close(self) -> None:
        """After the last run."""
        self._leave()


def _listed(reader: Reader) -> tuple[Sequence[RuntimePod], str]:
    """The pods, or what is said of more than are read: that is an answer too. Raises CriError."""
    try:
        return reader.list_pods(), ""
    except CriError as e:
        if e.trouble is not Trouble.TOO_LARGE:
            raise
        return (), str(e)


def judged(status: RuntimeStatus, said: str, named: str) -> Finding:
    """`said`: where all is well. `named`: the network that the files name, empty where that is not known."""
    for kind, what in ((RUNTIME_READY, "the runtime is not ready"), (NETWORK_READY, "the runtime has no network")):
        condition = status.condition(kind)
        if condition is None:
            return Finding(CheckState.UNKNOWN, f"the runtime does not say {kind}")
        if not condition.status:
            return Finding(CheckState.FAILED, f"{what}: {condition.reason}: {condition.message}")
    loading = status.info.get(LOADED, "OK")
    if loading not in ("OK", ""):
        return Finding(CheckState.WARNED, f"the newest network configuration could not be loaded: {loading}")
    networks = loaded_networks(status.info)
    if named and networks and named not in networks:
        return Finding(CheckState.WARNED, f"the files name the network {named}, loaded is {', '.join(networks)}")
    return Finding(CheckState.PASSED, said)


def loaded_networks(info: Mapping[str, str]) -> list[str]:
    """The names of the networks that containerd has loaded, but for its own loopback; empty where it does not say."""
    try:
        networks = json.loads(info.get(CONFIGURATION, "{}")).get("Networks") or []
        names = [network["Config"]["Name"] for network in networks]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return []
    return [name for name in names if isinstance(name, str) and name != "cni-loopback"]


def _connected(socket: str, deadline_s: float) -> Reader:
    from agent.cri.connect import connect  # late: gRPC is large

    return connect(socket, deadline_s=deadline_s)
