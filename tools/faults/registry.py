"""All faults by name: FAULTS of each module beside this one."""

import importlib
from pathlib import Path

from tools.faults.fault import Fault

_FRAME = {"__init__", "__main__", "fault", "registry"}


def _found() -> dict[str, Fault]:
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    modules = [
        importlib.import_module(f"tools.faults.{name}")
        for name in names
        if name not in _FRAME and not name.startswith("test_")
    ]
    faults = [fault for module in modules for fault in module.FAULTS]
    if twice := {f.name for f in faults if sum(g.name == f.name for g in faults) > 1}:
        raise ValueError(f"faults that are there twice: {', '.join(sorted(twice))}")
    return {fault.name: fault for fault in faults}


FAULTS = _found()
