"""gRPC's packages, loaded by whoever first needs them: an agent that speaks no gRPC neither needs nor loads them.

Nobody imports them otherwise, for what they make of the environment they make of it once, when they are loaded.
"""

import importlib
import os
import threading
from contextlib import suppress
from functools import cache, wraps
from types import ModuleType
from typing import Any
from urllib.parse import quote

_LOADING = threading.Lock()


def load(*names: str) -> tuple[ModuleType, ...]:
    """The modules of these names; `grpc` itself, or what stands on it. Raises ImportError where they are missing."""
    with _LOADING:  # two that are first at once
        return _load(names)


@cache
def _load(names: tuple[str, ...]) -> tuple[ModuleType, ...]:
    os.environ["GRPC_VERBOSITY"] = "NONE"  # it would write lines of its own between ours
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # with it, commands that we start die before they are executed
    loaded = tuple(importlib.import_module(name) for name in names)
    _let_watches_end(importlib.import_module("grpc._channel"))
    return loaded


def _let_watches_end(library: Any) -> None:  # noqa: ANN401 - the library's, loaded late
    """A thread of the library's looks at a channel whose state somebody wants to know. One that is closed before it
    looks kills it, with a traceback in our log; nobody but that thread is told."""
    watch = getattr(library, "_poll_connectivity", None)
    if watch is None or hasattr(watch, "__wrapped__"):
        return

    @wraps(watch)
    def quietly(*of: object) -> None:
        with suppress(ValueError):
            watch(*of)

    library._poll_connectivity = quietly  # noqa: SLF001


def channel(grpc: ModuleType, socket: str, *, most_bytes: int) -> Any:  # noqa: ANN401 - the library's, loaded late
    """To a socket of this node; connects when it is first asked, and again when it has to. most_bytes: of an answer."""
    options = (
        ("grpc.default_authority", "localhost"),  # else the path, which servers in Go refuse
        ("grpc.enable_http_proxy", 0),
        ("grpc.enable_retries", 0),
        ("grpc.max_receive_message_length", most_bytes),
        ("grpc.use_local_subchannel_pool", 1),  # else two clients of one socket share a connection
        # Else a stream is read by a thread of the library's. Where none could be had for it that channel never reads
        # one again, and its close() waits for ever.
        ("SingleThreadedUnaryStream", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 20_000),  # how long one attempt may take; a call's deadline comes first
        ("grpc.max_reconnect_backoff_ms", 1000),
    )
    return grpc.insecure_channel(f"unix:{quote(os.fsencode(socket))}", options=options)
