"""Which network configuration of a folder a runtime takes for new pods, and what stands in it. Reads files.

containerd (go-cni, loadFromConfDir): of the files *.conf, *.conflist and *.json the first by name counts, and when
that one is broken no other is tried. CRI-O (ocicni, loadNetworks): goes through all of them by name, passes by what
is broken or lacks a binary, and takes the network it was told the name of, else the first that is good. For both a
list's plugins may lie beside it, one a file in a folder called as the network, unless the list says otherwise (libcni
1.3). Types are libcni's (libcni/conf.go, pkg/types/types.go).

A child process runs this for each look: it starts without what takes it as long to import as itself, `json`, `typing`,
`pathlib` and `dataclasses`.
"""

from __future__ import annotations

import errno
import os
import stat

from agent.checks.go_json import (
    DEPTH_LIMIT,
    REPLACEMENT,
    Object,
    anything,
    as_marshalled,
    as_written,
    decoded,
    flag,
    list_of,
    map_of,
    struct,
    text,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.checks.go_json import Order

SUFFIXES = (".conf", ".conflist", ".json")
CONFIG_LIMIT_BYTES = 2**20
_ADDED_LEVELS = 2  # a single plugin is put into a list, which is read again
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_DNS = struct({"nameservers": list_of(text), "domain": text, "search": list_of(text), "options": list_of(text)})
_PLUGIN = struct(
    {
        "cniversion": text,
        "name": text,
        "type": text,
        "capabilities": map_of(flag),
        "ipam": struct({"type": text}),
        "dns": _DNS,
        "prevresult": map_of(anything),
    }
)


class BrokenError(Exception):
    """What is wrong with the configuration."""


class Network:
    """`plugins`: their configurations, in order, each with a type."""

    __slots__ = ("file", "name", "plugins")

    def __init__(self, file: str, name: str, plugins: tuple[Object, ...]) -> None:
        self.file = file
        self.name = name
        self.plugins = plugins

    @property
    def types(self) -> list[str]:
        return [type_of(plugin) for plugin in self.plugins]


def network_of(runtime: str, conf_dir: str, bin_dirs: Sequence[str], name: str | None) -> Network:
    """The network that the runtime takes. Raises BrokenError, and OSError where a file could not be looked at."""
    return network_of_crio(conf_dir, bin_dirs, name) if runtime == "crio" else load(config_files(conf_dir)[0])


def network_of_crio(conf_dir: str, bin_dirs: Sequence[str], name: str | None) -> Network:
    """`name`: of the default network, where CRI-O is configured with one. Raises BrokenError, OSError."""
    passed_by: list[str] = []
    for file in config_files(conf_dir):
        try:
            network = load(file)
            for plugin in network.types:
                find_binary(plugin, bin_dirs)
        except BrokenError as e:
            passed_by.append(str(e))
            continue
        network.name = network.name or os.path.basename(file)  # noqa: PTH119 - no pathlib
        if name in (None, network.name):
            return network
        passed_by.append(f"{file} is of network {network.name}")
    wanted = "no file is good" if name is None else f"no good file is of network {name}"
    raise BrokenError(f"{wanted}: {'; '.join(passed_by)}")


def config_files(conf_dir: str, suffixes: tuple[str, ...] = SUFFIXES) -> list[str]:
    """By name; at least one. Raises BrokenError, OSError."""
    try:
        with os.scandir(conf_dir) as entries:
            # A link to a folder is taken for a file, as Go's ReadDir does.
            names = sorted(e.name for e in entries if e.name.endswith(suffixes) and not e.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError) as e:
        raise BrokenError(f"no network config found: {conf_dir} is not a folder") from e
    if not names:
        raise BrokenError(f"no network config found in {conf_dir}")
    return [os.path.join(conf_dir, name) for name in names]  # noqa: PTH118 - no pathlib, see above


def load(config: str) -> Network:
    """Raises BrokenError, OSError."""
    return network_in(_content(config), config, os.path.dirname(config))  # noqa: PTH120 - no pathlib, see above


def network_in(content: bytes, config: str, folder: str = "") -> Network:
    """What a file of that name holds, and the plugins that lie beside it in `folder`. Raises BrokenError, OSError."""
    if config.endswith(".conflist"):
        return listed(_value(content, config), config, folder)
    value = _value(content, config, DEPTH_LIMIT - _ADDED_LEVELS)
    name, plugin = _plugin(value, config, "network", as_written)
    return Network(config, name, (plugin,))


def listed(value: object, config: str, folder: str = "") -> Network:
    """The network of a list, with the plugins that lie beside it in `folder`. Keys of the list count as they are
    written, those of its plugins in any case. Raises BrokenError, OSError."""
    if not isinstance(value, Object):
        raise BrokenError(f"{config} is not a JSON object")
    name = value.get("name")
    if not isinstance(name, str):
        raise BrokenError(f"{config} has no name" if name is None else f"{config}: name is no text")
    _check_versions(value, config)
    _switch(value, "disableCheck", config)
    _switch(value, "disableGC", config)
    is_alone = _switch(value, "loadOnlyInlinedPlugins", config)
    inlined = value.get("plugins")
    if ("plugins" in value or is_alone) and (not isinstance(inlined, list) or not inlined):
        raise BrokenError(f"{config} lists no plugins")
    plugins = [_plugin(one, config, f"plugin {index}", as_marshalled)[1] for index, one in enumerate(inlined or ())]
    if folder and not is_alone:
        plugins += beside(folder, name)
    if not plugins:
        raise BrokenError(f"{config} lists no plugins")
    return Network(config, name, tuple(plugins))


def beside(folder: str, network: str) -> list[Object]:
    """The plugins that lie in the folder of a network, one a file. Raises BrokenError, OSError."""
    folder = f"{folder}/{network}"
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.name.endswith(".conf") and not e.is_dir(follow_symlinks=False))
    except (FileNotFoundError, ValueError):  # ValueError: a name that no folder can have
        return []
    except NotADirectoryError as e:
        raise BrokenError(f"{folder} is not a folder") from e
    files = [f"{folder}/{name}" for name in names]
    return [_plugin(_value(_content(file), file), file, "plugin", as_written)[1] for file in files]


def plugin_of(value: object, config: str) -> Network:
    """The network of one plugin. Raises BrokenError."""
    name, plugin = _plugin(value, config, "network", as_marshalled)
    return Network(config, name, (plugin,))


def check_name(network: Network) -> None:
    """libcni refuses each pod where a network has no name, or one with other characters (ValidateNetworkName). Raises
    BrokenError."""
    name = network.name
    if not name:
        raise BrokenError(f"{network.file} has no name")
    if not _NAME_CHARACTERS.issuperset(name) or name[0] in "_.-":
        raise BrokenError(f"{network.file}: invalid network name {name[:64]}")


def type_of(plugin: Object) -> str:
    found: str = _PLUGIN(None, plugin, as_marshalled)["type"]
    return found


def find_binary(plugin: str, bin_dirs: Sequence[str], by: str = "") -> str:
    """The first regular file of that name must be executable, for whom does not matter: the runtime is not our user.
    `by`: what runs it, for people. Raises BrokenError, OSError."""
    if "/" in plugin or plugin in (".", "..") or not plugin.isprintable() or REPLACEMENT in plugin:
        raise BrokenError(f"invalid plugin type {plugin[:64]}{by}")
    for folder in bin_dirs:
        path = os.path.join(folder, plugin)  # noqa: PTH118 - as above
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 - as above
        except OSError as e:
            if e.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
                continue
            raise
        if not stat.S_ISREG(mode):
            continue
        if not mode & 0o111:
            raise BrokenError(f"plugin {plugin}{by}: {path} is not executable")
        return path
    raise BrokenError(f"plugin {plugin}{by} not found in {', '.join(bin_dirs)}")


def _plugin(value: object, config: str, what: str, order: Order) -> tuple[str, Object]:
    """The name that it gives its network, and its configuration. Raises BrokenError."""
    try:
        fields = _PLUGIN(None, value, order)
    except TypeError as e:
        raise BrokenError(f"{config}: {what}: {e}") from e
    if not fields.get("type") or not isinstance(value, Object):
        raise BrokenError(f"{config}: {what} has no type")
    if order is as_written:  # and again as it is written into a list, whose name it has by now
        _plugin(value, config, what, as_marshalled)
    return fields.get("name") or "", value


def _switch(value: Object, key: str, config: str) -> bool:
    found = value.get(key, False)
    word = found.lower() if isinstance(found, str) else found
    if word is True or word == "true":
        return True
    if key in value and word is not False and word != "false":
        raise BrokenError(f"{config}: {key} is neither true nor false")
    return False


def _check_versions(value: Object, config: str) -> None:
    version = value.get("cniVersion", "")
    if not isinstance(version, str):
        raise BrokenError(f"{config}: cniVersion is no text")
    if "cniVersions" not in value:
        return
    versions = value["cniVersions"]
    if not isinstance(versions, list) or not all(isinstance(one, str) for one in versions):
        raise BrokenError(f"{config}: cniVersions is no list of texts")
    if any(one and not _is_version(one) for one in (version, *versions)):
        raise BrokenError(f"{config}: cniVersions has an entry that is no version")


def _is_version(text: str) -> bool:
    parts = [part[part[:1] in ("+", "-") :] for part in text.split(".")]
    return len(parts) <= 3 and all(part.isascii() and part.isdigit() and int(part) < 2**63 for part in parts)


def _value(content: bytes, config: str, depth_limit: int = DEPTH_LIMIT) -> object:
    if len(content) > CONFIG_LIMIT_BYTES:
        raise BrokenError(f"{config} is larger than 1 MiB")
    try:
        found: object = decoded(content, depth_limit)
    except ValueError as e:
        raise BrokenError(f"{config} does not parse: {e}") from e
    return found


def _content(config: str) -> bytes:
    """The file up to a little more than the limit. Never waits for a writer, as opening a named pipe would."""
    try:
        descriptor = os.open(config, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            raise BrokenError(f"{config} cannot be read: {e.strerror}") from e
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BrokenError(f"{config} cannot be read: it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(CONFIG_LIMIT_BYTES + 1)
    except OSError as e:
        e.filename = config
        raise
    finally:
        os.close(descriptor)
