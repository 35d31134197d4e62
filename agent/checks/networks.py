"""Which network configuration of a folder a runtime takes for new pods, and what stands in it. Reads files.

containerd (go-cni, loadFromConfDir): of the files *.conf, *.conflist and *.json the first by name counts, and when
that one is broken no other is tried. CRI-O (ocicni, loadNetworks): goes through all of them by name, passes by what
is broken or lacks a binary, and takes the network it was told the name of, else the first that is good. For both a
list's plugins may lie beside it, one a file in a folder called as the network, unless the list says otherwise (libcni
1.3).

A child process runs this for each look: it starts without what takes it as long to import as itself, `json`, `typing`,
`pathlib` and `dataclasses`.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

SUFFIXES = (".conf", ".conflist", ".json")
CONFIG_LIMIT_BYTES = 2**20


class BrokenError(Exception):
    """What is wrong with the configuration."""


def looked(
    runtime: str, conf_dir: str, bin_dirs: Sequence[str], name: str | None, with_binaries: bool = True
) -> dict[str, Any]:
    """The network of `runtime`, as JSON, or what is wrong with it: for a child process. Raises OSError."""
    try:
        network = network_of_crio(conf_dir, bin_dirs, name) if runtime == "crio" else network_of_containerd(conf_dir)
        for plugin in network.types if with_binaries else ():
            find_binary(plugin, bin_dirs)
    except BrokenError as e:
        return {"broken": str(e)}
    plugins = list(network.plugins)
    return {"file": network.file, "name": network.name, "version": network.version, "plugins": plugins}


def network_from(said: dict[str, Any]) -> Network:
    """What `looked` has found. Raises BrokenError."""
    if "broken" in said:
        raise BrokenError(said["broken"])
    return Network(said["file"], said["name"], said["version"], tuple(said["plugins"]))


class Network:
    """`plugins`: their configurations, in order, each with a type. `version`: as the file says, may be empty."""

    __slots__ = ("file", "name", "plugins", "version")

    def __init__(self, file: str, name: str, version: str, plugins: tuple[dict[str, Any], ...]) -> None:
        self.file = file
        self.name = name
        self.version = version
        self.plugins = plugins

    @property
    def types(self) -> list[str]:
        return [plugin["type"] for plugin in self.plugins]


def network_of_containerd(conf_dir: str) -> Network:
    """Raises BrokenError, and OSError where a file could not be looked at."""
    return load(config_files(conf_dir)[0])


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
        called = network.name or os.path.basename(file)  # noqa: PTH119 - as above
        if name in (None, called):
            return network
        passed_by.append(f"{file} is of network {called}")
    wanted = "no file is good" if name is None else f"no good file is of network {name}"
    raise BrokenError(f"{wanted}: {'; '.join(passed_by)}")


def config_files(conf_dir: str) -> list[str]:
    """By name; at least one. Raises BrokenError, OSError."""
    try:
        with os.scandir(conf_dir) as entries:
            # A link to a folder is taken for a file, as Go's ReadDir does.
            names = sorted(e.name for e in entries if e.name.endswith(SUFFIXES) and not e.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError) as e:
        raise BrokenError(f"no network config found: {conf_dir} is not a folder") from e
    if not names:
        raise BrokenError(f"no network config found in {conf_dir}")
    return [os.path.join(conf_dir, name) for name in names]  # noqa: PTH118 - no pathlib, see above


def load(config: str) -> Network:
    """Raises BrokenError, OSError."""
    parsed = _object(config)
    name, version = _text(parsed.get("name")), _text(parsed.get("cniVersion"))
    if not config.endswith(".conflist"):
        return Network(config, name, version, (_plugin(parsed, config, "network"),))
    plugins = parsed.get("plugins")
    if not isinstance(parsed.get("name"), str):
        raise BrokenError(f"{config} has no name")
    own = parsed.get("loadOnlyInlinedPlugins", False)
    if str(own).lower() not in ("true", "false"):
        raise BrokenError(f"{config}: loadOnlyInlinedPlugins is neither true nor false")
    if "plugins" in parsed and (not isinstance(plugins, list) or not plugins):
        raise BrokenError(f"{config} lists no plugins")
    found = [_plugin(plugin, config, f"plugin {index}") for index, plugin in enumerate(plugins or ())]
    if str(own).lower() == "false":
        found += [_plugin(_object(file), file, "plugin") for file in _beside(config, name)]
    if not found:
        raise BrokenError(f"{config} lists no plugins")
    return Network(config, name, version, tuple(found))


def find_binary(plugin: str, bin_dirs: Sequence[str]) -> str:
    """The first regular file of that name must be executable, for whom does not matter: the runtime is not our user.
    Raises BrokenError, OSError."""
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
            raise BrokenError(f"plugin {plugin}: {path} is not executable")
        return path
    raise BrokenError(f"plugin {plugin} not found in {', '.join(bin_dirs)}")


def _beside(config: str, network: str) -> list[str]:
    """The files of plugins in the folder of a network."""
    folder = f"{os.path.dirname(config)}/{network}"  # noqa: PTH120 - as above
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.name.endswith(".conf") and not e.is_dir(follow_symlinks=False))
    except (FileNotFoundError, ValueError):  # ValueError: a name that no folder can have
        return []
    except NotADirectoryError as e:
        raise BrokenError(f"{folder} is not a folder") from e
    return [f"{folder}/{name}" for name in names]


def _object(config: str) -> dict[str, Any]:
    text = _content(config)
    if len(text) > CONFIG_LIMIT_BYTES:
        raise BrokenError(f"{config} is larger than 1 MiB")
    try:
        parsed = parsed_json(text)
    except (ValueError, RecursionError) as e:
        raise BrokenError(f"{config} does not parse: {e}") from e
    if not isinstance(parsed, dict):
        raise BrokenError(f"{config} is not a JSON object")
    return parsed


def parsed_json(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """json.loads(text), by the part of it that is written in C: the rest takes four milliseconds to import, and is
    asked only what to say of a text that is not plain JSON. Raises ValueError, RecursionError."""
    try:
        from _json import make_scanner

        plain = text.decode().strip(" \t\n\r")
        value, end = make_scanner(_Plain())(plain, 0)  # type: ignore[arg-type]  # only its attributes are looked at
        if end == len(plain):
            return value
    except (ImportError, RecursionError, StopIteration, ValueError, SystemError):
        pass  # SystemError: before CPython 3.13 it does not import the class of its own errors
    import json

    return json.loads(text)


def _not_plain(word: str) -> None:
    raise ValueError(word)  # NaN, Infinity


class _Plain:
    """What json.JSONDecoder() tells the scanner."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, staticmethod(_not_plain)


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


def _plugin(plugin: Any, config: str, what: str) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    name = plugin.get("type") if isinstance(plugin, dict) else None
    if not isinstance(name, str) or not name:
        raise BrokenError(f"{config}: {what} has no type")
    if "/" in name or name in (".", "..") or not name.isprintable():
        raise BrokenError(f"{config}: invalid plugin type {name[:64]}")
    found: dict[str, Any] = plugin
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
