"""The built-in check `cni`: would the runtime find a network for new pods?

Takes the configuration as the runtime does. containerd: of the files *.conf, *.conflist and *.json the first by name
counts, and when that one is broken no other is tried. CRI-O (`runtime: crio`): goes through them by name, passes
broken ones by, and takes the network that `defaultNetwork` names, else the first good one. A list's plugins may lie
beside it, one a file in a folder called as the network, unless the list says otherwise (libcni 1.3). On top: every
plugin's binary is there and executable.

What a runtime has loaded it may go on using when the file has changed; a file that was only moved into the folder it
may not have seen at all. The check `runtime` asks it.
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from agent.checks.networks import BrokenError, Network, find_binary, network_of_containerd, network_of_crio
from agent.checks.rights import Rights
from agent.checks.state import CheckState, Finding
from agent.keys import NonEmpty
from component.settings import Section

DOC = "the runtime would find a network configuration that parses, and its plugins are there and executable"
RIGHTS = Rights(reads=("confDir", "binDirs"), root=True)


class Settings(Section, frozen=True):
    """Folders, as the agent's container sees them. `default_network`: CRI-O's cni_default_network."""

    conf_dir: NonEmpty = "/etc/cni/net.d"
    bin_dirs: Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="a list of one folder or more")] = (
        "/opt/cni/bin",
    )
    runtime: Literal["containerd", "crio"] = "containerd"
    default_network: NonEmpty | None = None


class Check:
    def __init__(self, settings: Settings, _timeout_s: float) -> None:
        self._settings = settings
        self._conf_dir = Path(settings.conf_dir)
        self._bin_dirs = [Path(folder) for folder in settings.bin_dirs]

    def __call__(self) -> Finding:
        """PASSED, FAILED with the cause, or UNKNOWN when the files could not be looked at (rights, I/O errors)."""
        try:
            network = self._network()
            for plugin in network.types:
                find_binary(plugin, self._bin_dirs)
        except BrokenError as e:
            return Finding(CheckState.FAILED, str(e))
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        return Finding(CheckState.PASSED, f"{network.file.name}: {', '.join(network.types)}")

    def _network(self) -> Network:
        if self._settings.runtime == "crio":
            return network_of_crio(self._conf_dir, self._bin_dirs, self._settings.default_network)
        return network_of_containerd(self._conf_dir)
