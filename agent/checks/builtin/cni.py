"""The built-in check `cni`: would the runtime find a network for new pods?

Takes the configuration as containerd does (go-cni, loadFromConfDir): of the files *.conf, *.conflist and *.json the
first by name counts, and when that one is broken no other is tried. A list's plugins may lie beside it, one a file in a
folder called as the network, unless the list says otherwise (libcni 1.3). On top: every plugin's binary is there and
executable.

CRI-O chooses otherwise: it passes broken files by and may be told a network's name. And what a runtime has loaded it
goes on using when the file has gone.
"""

import errno
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from agent.checks.state import CheckState, Finding
from agent.keys import NonEmpty
from component.settings import Section

DOC = "the runtime would find a network configuration that parses, and its plugins are there and executable"
SUFFIXES = (".conf", ".conflist", ".json")
CONFIG_LIMIT_BYTES = 2**20


class _BrokenError(Exception):
    """What is wrong with the configuration."""


class Settings(Section, frozen=True):
    """Folders, as the agent's container sees them."""

    conf_dir: NonEmpty = "/etc/cni/net.d"
    bin_dirs: Annotated[tuple[NonEmpty, ...], Meta(min_length=1, description="a list of one folder or more")] = (
        "/opt/cni/bin",
    )


class Check:
    def __init__(self, settings: Settings, _timeout_s: float) -> None:
        self._conf_dir = Path(settings.conf_dir)
        self._bin_dirs = [Path(folder) for folder in settings.bin_dirs]

    def __call__(self) -> Finding:
        """PASSED, FAILED with the cause, or UNKNOWN when the files could not be looked at (rights, I/O errors)."""
        try:
            config = _first_config(self._conf_dir)
            plugins = _plugins(config)
            for plugin in plugins:
                _find_binary(plugin, self._bin_dirs)
        except _BrokenError as e:
            return Finding(CheckState.FAILED, str(e))
        except OSError as e:
            return Finding(CheckState.UNKNOWN, f"cannot look at {e.filename}: {e.strerror}")
        return Finding(CheckState.PASSED, f"{config.name}: {', '.join(plugins)}")


def _first_config(conf_dir: Path) -> Path:
    try:
        with os.scandir(conf_dir) as entries:
            # A link to a folder is taken for a file, as Go's ReadDir does.
            names = sorted(e.name for e in entries if e.name.endswith(SUFFIXES) and not e.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError) as e:
        raise _BrokenError(f"no network config found: {conf_dir} is not a folder") from e
    if not names:
        raise _BrokenError(f"no network config found in {conf_dir}")
    return conf_dir / names[0]


def _plugins(config: Path) -> list[str]:
    """The plugin types of the configuration, in order."""
    parsed = _object(config)
    if config.suffix != ".conflist":
        return [_type_of(parsed, config, "network")]
    name, plugins = parsed.get("name"), parsed.get("plugins")
    if not isinstance(name, str):
        raise _BrokenError(f"{config} has no name")
    own = parsed.get("loadOnlyInlinedPlugins", False)
    if str(own).lower() not in ("true", "false"):
        raise _BrokenError(f"{config}: loadOnlyInlinedPlugins is neither true nor false")
    if "plugins" in parsed and (not isinstance(plugins, list) or not plugins):
        raise _BrokenError(f"{config} lists no plugins")
    types = [_type_of(plugin, config, f"plugin {index}") for index, plugin in enumerate(plugins or ())]
    if str(own).lower() == "false":
        types += [_type_of(_object(file), file, "plugin") for file in _beside(config, name)]
    if not types:
        raise _BrokenError(f"{config} lists no plugins")
    return types


def _beside(config: Path, network: str) -> list[Path]:
    """The files of plugins in the folder of a network."""
    folder = Path(f"{config.parent}/{network}")
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.name.endswith(".conf") and not e.is_dir(follow_symlinks=False))
    except (FileNotFoundError, ValueError):  # ValueError: a name that no folder can have
        return []
    except NotADirectoryError as e:
        raise _BrokenError(f"{folder} is not a folder") from e
    return [folder / name for name in names]


def _object(config: Path) -> dict[str, Any]:
    text = _content(config)
    if len(text) > CONFIG_LIMIT_BYTES:
        raise _BrokenError(f"{config} is larger than 1 MiB")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise _BrokenError(f"{config} does not parse: {e}") from e
    if not isinstance(parsed, dict):
        raise _BrokenError(f"{config} is not a JSON object")
    return parsed


def _content(config: Path) -> bytes:
    """The file up to a little more than the limit. Never waits for a writer, as opening a named pipe would."""
    try:
        descriptor = os.open(config, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as e:
        if e.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            raise _BrokenError(f"{config} cannot be read: {e.strerror}") from e
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _BrokenError(f"{config} cannot be read: it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(CONFIG_LIMIT_BYTES + 1)
    except OSError as e:
        e.filename = str(config)
        raise
    finally:
        os.close(descriptor)


def _type_of(plugin: Any, config: Path, what: str) -> str:  # noqa: ANN401 - any JSON value
    name = plugin.get("type") if isinstance(plugin, dict) else None
    if not isinstance(name, str) or not name:
        raise _BrokenError(f"{config}: {what} has no type")
    if "/" in name or name in (".", "..") or not name.isprintable():
        raise _BrokenError(f"{config}: invalid plugin type {name[:64]}")
    return name


def _find_binary(plugin: str, bin_dirs: Sequence[Path]) -> None:
    """The first regular file of that name must be executable, for whom does not matter: the runtime is not our user."""
    for folder in bin_dirs:
        try:
            mode = (folder / plugin).stat().st_mode
        except OSError as e:
            if e.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
                continue
            raise
        if not stat.S_ISREG(mode):
            continue
        if not mode & 0o111:
            raise _BrokenError(f"plugin {plugin}: {folder / plugin} is not executable")
        return
    raise _BrokenError(f"plugin {plugin} not found in {', '.join(str(folder) for folder in bin_dirs)}")
