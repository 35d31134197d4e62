"""Modules of the roles, loaded as Ansible does on a host: what they share lies below Ansible's own utilities."""

import importlib.util
import sys
from importlib import import_module
from types import ModuleType

from tests.playbooks.rendering import ROLES


def know_what_they_share() -> None:
    for role in ("readygate_objects", "readygate_scheduler_config"):
        folder = str(ROLES / role / "module_utils")
        if folder not in sys.path:
            sys.path.append(folder)
    sys.modules.setdefault("ansible.module_utils.readygate_objects", import_module("readygate_objects"))


def module(role: str, name: str) -> ModuleType:
    """Anew at each call, so that a test may change it."""
    know_what_they_share()
    spec = importlib.util.spec_from_file_location(f"{name}_module", ROLES / role / "library" / f"{name}.py")
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
