"""gRPC's packages, loaded by whoever first needs them: an agent that speaks no gRPC neither needs nor loads them."""

import importlib
import os
import threading
from functools import cache
from types import ModuleType

_LOADING = threading.Lock()


def load(*names: str) -> tuple[ModuleType, ...]:
    """The modules of these names; `grpc` itself, or what stands on it. Raises ImportError where they are missing."""
    with _LOADING:  # two that are first at once
        return _load(names)


@cache
def _load(names: tuple[str, ...]) -> tuple[ModuleType, ...]:
    os.environ["GRPC_VERBOSITY"] = "NONE"  # it would write lines of its own between ours
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # with it, commands that we start die before they are executed
    return tuple(importlib.import_module(name) for name in names)
