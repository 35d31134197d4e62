"""The built-in check `cni`: would the runtime find a network for new pods?

Takes the configuration as the runtime does. containerd: of the files *.conf, *.conflist and *.json the first by name
counts, and when that one is broken no other is tried. CRI-O (`runtime: crio`): goes through them by name, passes
broken ones by, and takes the network that `defaultNetwork` names, else the first good one. `runtime: auto` finds out
which of the two it is by the mounts of the containers. A list's plugins may lie
beside it, one a file in a folder called as the network, unless the list says otherwise (libcni 1.3). Files are read by
the rules of Go's encoding/json and libcni's types: a byte order mark, UTF-16, or a `cniVersion` that is a number fail.

On top, every binary that is run for a pod must be there and executable: the plugins; `loopback`, which containerd
runs for each pod (not CRI-O, and not containerd 2 with its setting `use_internal_loopback`: then set
`internalLoopback: true`); the IPAM plugins; flannel's `bridge` and `host-local`; and the networks that Multus delegates
to, in `delegates`, `clusterNetwork` and `defaultNetworks`. If the agent cannot read the
file of such a network, the check is unknown: mount its folder (`agent.hostPaths` of the chart). A network that is a
NetworkAttachmentDefinition, or that only Multus' daemon knows, is not on the host: the check warns. It also warns for a
missing IPAM plugin that may not be run.

The kernel tells of what is written, moved or removed in these folders, and the check runs at once. Whatever it finds
then is one failure: what is being replaced may be half there. The next one counts when nobody has touched anything for
0.4 s; while somebody does, at the check's own time.

What a runtime has loaded it may go on using when the file has changed; a file that was only moved into the folder it
may not have seen at all. The check `runtime` asks it.

The plugins' own word, the verb STATUS of CNI 1.1, is not asked for: a plugin has to be run with the runtime's rights,
which the agent has not. Where the runtime asks for it, it is in its `NetworkReady`, which the check `runtime` reads.
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks.executables import looked
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.checks.subprocess_reader import Elsewhere, NoAnswerError
from agent.kernel.inotify import FolderWatch
from agent.wire.setting_types import NonEmpty
from component.settings import Section

DOC = (
    "the runtime would find a network configuration that it can read, and every binary that is run for a pod is there "
    "and executable"
)
RIGHTS = Rights(reads=("confDir", "binDirs"), root=True)
TIMEOUT_S = 5  # a second is short for a child process under load
CALLS = 2  # the first run looks anew once the folders are followed


class Settings(Section, frozen=True):
    """Folders, as the agent's container sees them. `default_network`: CRI-O's cni_default_network.
    `internal_loopback`: containerd's use_internal_loopback."""

    conf_dir: NonEmpty = "/etc/cni/net.d"
    bin_dirs: Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="a list of one folder or more")] = (
        "/opt/cni/bin",
    )
    runtime: Literal["containerd", "crio", "auto"] = "containerd"
    default_network: NonEmpty | None = None
    internal_loopback: bool = False


class Check:
    DOUBTS = True

    def __init__(self, settings: Settings, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        own = (settings.default_network, settings.internal_loopback)
        words = (settings.runtime, settings.conf_dir, settings.bin_dirs, *own)
        self._look = Elsewhere(looked, *words, where=", ".join((settings.conf_dir, *settings.bin_dirs)))
        self._changes = FolderWatch((settings.conf_dir, *settings.bin_dirs))

    def __call__(self) -> Finding:
        """PASSED, WARNED, FAILED with the cause, HUNG, or UNKNOWN when files could not be looked at (rights, I/O)."""
        return self._changes.around(self._finding)

    def descriptor(self) -> int | None:
        return self._changes.descriptor()

    def close(self) -> None:
        self._changes.close()

    def _finding(self) -> Finding:
        try:
            found = self._look(self._timeout_s)
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        except NoAnswerError as e:
            return e.finding
        if "broken" in found:
            return Finding(CheckState.FAILED, found["broken"])
        if found["unseen"]:
            return Finding(CheckState.UNKNOWN, found["unseen"])
        if found["doubts"]:
            return Finding(CheckState.WARNED, "; ".join(found["doubts"]))
        return Finding(CheckState.PASSED, f"{Path(found['file']).name}: {', '.join(found['binaries'])}")
