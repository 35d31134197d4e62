"""The interface of TLS to a connection. Types only."""

from typing import Protocol


class StreamError(Exception):
    """Received bytes end the connection. The text is the cause, in a few words."""


class Stream(Protocol):
    """One TLS connection. ready: the handshake is done. done: the client has ended its direction. may_ask: the client
    may call a verb."""

    @property
    def ready(self) -> bool: ...
    @property
    def done(self) -> bool: ...
    @property
    def may_ask(self) -> bool: ...
    def receive(self, data: bytes | memoryview, /) -> bytes:
        """Returns the plain bytes of received ones. Raises StreamError."""
        ...

    def send(self, plain: bytes, /) -> bytes:
        """Returns the bytes to send for these plain ones."""
        ...

    def pending(self) -> bytes:
        """Returns bytes that TLS itself sends. Must be called after each receive(), also after one that raised."""
        ...

    def ended(self) -> bytes:
        """Returns the bytes that announce the end."""
        ...
