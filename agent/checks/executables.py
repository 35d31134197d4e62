"""Which binaries a runtime and its CNI plugins run for a new pod, and whether they are there. Reads files.

Besides the plugins of the network these are: `loopback`, which containerd runs for each pod and CRI-O does not; IPAM
plugins; and the plugins of networks that Multus or flannel delegate to, wherever these stand (`delegates` has the
rules). A network that cannot be read is unknown. That is one of the API server's (a NetworkAttachmentDefinition), and
a file that is not seen from here.

A child process runs this for each look, see `networks`.
"""

from __future__ import annotations

import os

from agent.checks.delegates import BIN_DIR, WrongError, followed
from agent.checks.go_json import Object, folded
from agent.checks.networks import (
    BrokenError,
    Network,
    beside,
    check_name,
    config_files,
    find_binary,
    listed,
    load,
    network_of,
    plugin_of,
    type_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

CONTAINERD, CRIO, AUTO = "containerd", "crio", "auto"
MOUNTINFO = "/proc/self/mountinfo"
_SIGNS = ((CONTAINERD, "/io.containerd."), (CRIO, "/containers/storage/"))
CONF_DIR = "/etc/cni/net.d"
LEVELS = 8  # of networks that delegate to networks
_HOST = "/host"  # where multus' daemon sees the host's files
_CONF = (".conf", ".conflist")


class UnseenError(Exception):
    """Which network cannot be read from here."""


class NotOnHostError(UnseenError):
    """Which network no agent on the host can read, so that it must not keep the node closed."""


def looked(
    runtime: str,
    conf_dir: str,
    bin_dirs: Sequence[str],
    name: str | None,
    internal_loopback: bool,
    mountinfo: str = MOUNTINFO,
) -> dict[str, Any]:
    """The network of `runtime`, and the binaries that are run for a pod, in order, as JSON; or what is wrong with it.
    `unseen`, `doubts`: what is not known, and what is not known but does no harm. For a child process. Raises
    OSError."""
    is_known = runtime != AUTO
    runtime = runtime if is_known else runtime_of(mountinfo)
    walk = _Walk(conf_dir)
    try:
        network = network_of(runtime, conf_dir, bin_dirs, name)
        for plugin in network.plugins:
            walk.plugin(plugin, list(bin_dirs), network.file)
        check_name(network)
        if runtime != CRIO and not internal_loopback:
            walk.loopback(bin_dirs, is_run=runtime == CONTAINERD)
    except BrokenError as e:
        return {"broken": str(e)}
    return {"file": network.file, "binaries": walk.binaries, "unseen": walk.unseen, "doubts": walk.doubts}


def runtime_of(mountinfo: str) -> str:
    """By the mounts of this container, or of the host's containers: empty where they are of no runtime, or of both."""
    try:
        with open(mountinfo, errors="replace") as lines:  # noqa: PTH123 - no pathlib
            mounts = lines.read()
    except OSError:
        return ""
    found = [runtime for runtime, sign in _SIGNS if sign in mounts]
    return found[0] if len(found) == 1 else ""


def network_name(conf_dir: str) -> str:
    """Of the network that containerd takes; empty where there is none. For a child process. Raises OSError."""
    try:
        return network_of(CONTAINERD, conf_dir, (), None).name
    except BrokenError:
        return ""


def pod_network(conf_dir: str) -> dict[str, Any]:
    """The network that gives pods their address, as JSON: its name, and of its plugins the type and `ipam`. Where the
    runtime's network delegates to others, that is the first of these. For a child process. Raises OSError."""
    try:
        network = network_of(CONTAINERD, conf_dir, (), None)
        walk = _Walk(conf_dir)
        for _ in range(LEVELS):
            inner = walk.inner(network)
            if inner is None:
                break
            network = inner
        plugins = [{"type": type_of(plugin), "ipam": _ipam_of(plugin)} for plugin in network.plugins]
    except BrokenError as e:
        return {"broken": str(e)}
    except UnseenError as e:
        return {"unseen": str(e)}
    return {"name": network.name, "plugins": plugins}


class _Walk:
    """From plugin to plugin. `binaries`: those that are there. `unseen`, `doubts`: what is not known."""

    def __init__(self, conf_dir: str) -> None:
        self._conf_dir = conf_dir.rstrip("/") or "/"
        self.binaries: list[str] = []
        self.unseen = ""
        self.doubts: list[str] = []

    def binary(self, name: str, bin_dirs: Sequence[str], by: str = "") -> None:
        """Raises BrokenError, OSError."""
        find_binary(name, bin_dirs, by)
        if name not in self.binaries:
            self.binaries.append(name)

    def loopback(self, bin_dirs: Sequence[str], *, is_run: bool) -> None:
        try:
            self.binary("loopback", bin_dirs, ", which containerd runs for each pod,")
        except BrokenError as e:
            if is_run:
                raise
            self.doubts.append(f"{e}: which runtime this node has is not known")

    def plugin(self, plugin: Object, bin_dirs: list[str], file: str, by: str = "", level: int = 0) -> None:
        """What a plugin runs, itself first. Raises BrokenError, OSError."""
        kind = type_of(plugin)
        self.binary(kind, bin_dirs, by)
        try:
            runs = followed(kind, plugin)
        except WrongError as e:
            raise BrokenError(f"{file}: plugin {kind}: {e}") from e
        if runs.ipam:
            self._ipam(kind, runs.ipam, bin_dirs, is_run=runs.runs_ipam)
        if level == LEVELS:
            self.unseen = self.unseen or f"{file}: more than {LEVELS} networks delegate one to another"
            return
        if not runs.is_known:
            self.doubts.append(f"{file}: what {kind} runs is in the configuration of its daemon, and is not checked")
        inner = [*bin_dirs]
        if runs.folder and runs.folder.rstrip("/") not in [folder.rstrip("/") for folder in bin_dirs]:
            inner = [runs.folder, *bin_dirs] if os.path.isdir(runs.folder) else inner  # noqa: PTH112 - no pathlib
        for delegate in self._delegates(runs.delegates, runs.names, runs.chain, kind, file):
            for one in delegate.plugins:
                self._delegate(one, inner, runs.folder, delegate.file, kind, level)

    def _delegate(self, plugin: Object, bin_dirs: list[str], folder: str, file: str, by: str, level: int) -> None:
        """Where the plugin looks in a folder of its own that is not seen from here, no binary is missing for sure."""
        try:
            self.plugin(plugin, bin_dirs, file, f", which {by} runs,", level + 1)
        except BrokenError as e:
            plain = folder.rstrip("/")
            if not plain or plain == BIN_DIR or any(one.rstrip("/").endswith(plain) for one in bin_dirs):
                raise
            self.unseen = self.unseen or f"{e}; its folder {folder} is not seen from here"

    def _ipam(self, kind: str, ipam: str, bin_dirs: list[str], *, is_run: bool) -> None:
        try:
            self.binary(ipam, bin_dirs, f", which {kind} {'runs' if is_run else 'names'},")
        except BrokenError as e:
            if is_run:
                raise
            self.doubts.append(f"{e}: whether it is run is not known")

    def _delegates(
        self, inline: tuple[Any, ...], names: tuple[str, ...], chain: str, kind: str, file: str
    ) -> list[Network]:
        """Those that can be read. Raises BrokenError, OSError."""
        found = [_inline(one, file) for one in inline]
        for name in names:
            try:
                found.append(self._named(name, kind))
            except NotOnHostError as e:
                self.doubts.append(f"{e}: its binaries are not checked")
            except UnseenError as e:
                self.unseen = self.unseen or str(e)
        if names and chain:
            for folder in self._seen_at(os.path.dirname(names[0])):  # noqa: PTH120 - as above
                if plugins := _chained(folder, chain):
                    found.append(Network(f"{folder}/{chain}", chain, tuple(plugins)))
                    break
        return found

    def inner(self, network: Network) -> Network | None:
        """The first network that this one delegates to, which gives a pod its address. Raises BrokenError, OSError,
        UnseenError."""
        for plugin in network.plugins:
            kind = type_of(plugin)
            try:
                runs = followed(kind, plugin)
            except WrongError as e:
                raise BrokenError(f"{network.file}: plugin {kind}: {e}") from e
            if not runs.is_known:
                raise UnseenError(f"what {kind} runs is in the configuration of its daemon")
            if runs.names:
                return self._named(runs.names[0], kind)
            if runs.delegates and runs.folder:  # not flannel, which fills in what stands nowhere
                return _inline(runs.delegates[0], network.file)
        return None

    def _named(self, name: str, by: str) -> Network:
        """A network that does not stand in the configuration. Raises BrokenError, OSError, UnseenError."""
        if "/" not in name:
            raise NotOnHostError(f"{by} runs the network {name}, which may be one of the API server's")
        for path in self._seen_at(name):
            if os.path.isdir(path):  # noqa: PTH112 - as above
                config_files(path, _CONF)  # at least one
                return load(config_files(path)[0])
            if os.path.exists(path):  # noqa: PTH110 - as above
                return load(path)
        raise UnseenError(f"{by} runs the network in {name}, which is not seen from here")

    def _seen_at(self, path: str) -> list[str]:
        """Where a path of the host, or of multus' daemon, may be seen: the folder of the runtime's configuration has a
        name of its own here, and is the host's."""
        path = path.rstrip("/")
        plain = path.removeprefix(_HOST) if path.startswith(f"{_HOST}/") else path
        found = [
            self._conf_dir + plain[len(folder) :]
            for folder in (plain, os.path.dirname(plain))  # noqa: PTH120 - as above
            if folder == CONF_DIR or (folder.count("/") > 1 and self._conf_dir.endswith(folder))
        ]
        if self._conf_dir.endswith(CONF_DIR):
            found.append(self._conf_dir[: -len(CONF_DIR)] + plain)
        return [*found, path, plain, _HOST + plain]


def _inline(value: Any, file: str) -> Network:  # noqa: ANN401 - any JSON value
    """A list where it has no type of its own. Raises BrokenError, OSError."""
    has_type = any(folded(key) == "type" and one for key, one in value.items())
    return plugin_of(value, file) if has_type else listed(value, file)


def _chained(folder: str, chain: str) -> list[Object]:
    """The plugins of a chain of multus': none where one of them does not parse, as it leaves them out then."""
    try:
        plugins = beside(folder, chain)
    except (BrokenError, OSError):
        return []
    first = Object()
    first.add("type", "passthru")
    return [first, *plugins] if plugins else []


_IPAM_KEYS = ("type", "subnet", "ranges", "rangeStart", "rangeEnd", "gateway", "dataDir")


def _ipam_of(plugin: Object) -> Any:  # noqa: ANN401 - any JSON value
    """As host-local reads it: keys in any case."""
    found: Any = None
    for key, value in sorted(plugin.items()):
        found = value if folded(key) == "ipam" and value is not None else found
    return _plain(found)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The keys of host-local alone, as it spells them."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, Object):
        return value
    spelled = {folded(key): key for key in _IPAM_KEYS}
    kept = ((spelled.get(folded(key)), one) for key, one in sorted(value.items()) if one is not None)
    return {key: _plain(one) for key, one in kept if key is not None}
