"""What may stand between a socket and HTTP: TLS, or nothing. Types only."""

from typing import Protocol


class StreamError(Exception):
    """What came off the wire ends the connection. The text is the cause, in a few words."""


class Stream(Protocol):
    """One connection. ready: the handshake is done. done: the client has said that it sends no more. may_ask: it is one
    that may ask a verb.
    """

    @property
    def ready(self) -> bool: ...
    @property
    def done(self) -> bool: ...
    @property
    def may_ask(self) -> bool: ...
    def receive(self, data: bytes | memoryview, /) -> bytes:
        """What of the bytes off the wire is for us. Raises StreamError."""
        ...

    def send(self, plain: bytes, /) -> bytes:
        """What to write to the wire for it."""
        ...

    def pending(self) -> bytes:
        """What the stream itself has to say; to be asked for after each receive(), also one that raised."""
        ...

    def ended(self) -> bytes:
        """The word that nothing more will come, for the wire."""
        ...
