"""TLS as the kubelet's probes speak it: without any verification, for a probe asks whether it answers, not who it is.

Imported where it is spoken: OpenSSL is an eighth of the memory of an agent that speaks plainly.
"""

import re
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from agent.probe.dial import NOT_TLS, Connection, Deadline
from agent.probe.targets import is_address

T = TypeVar("T")

HANDSHAKE_LIMIT_S = 10.0  # net/http's transport of kubelet

# What Go offers: nothing without forward secrecy. OpenSSL's level 2 would refuse short keys even without verification.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES+SHA1:@SECLEVEL=0"
_PLAIN = b"HTTP/"
_ALERT = re.compile(r"(?:SSLV3|TLSV13?)_(?:ALERT_)?(.+)")
# What a server sends that ends the handshake, where Go has other words for it (crypto/tls/alert.go).
_ALERTS = {
    "bad record mac": "bad record MAC",
    "certificate expired": "expired certificate",
    "certificate revoked": "revoked certificate",
    "certificate unknown": "unknown certificate",
    "decode error": "error decoding message",
    "decrypt error": "error decrypting message",
    "insufficient security": "insufficient security level",
    "protocol version": "protocol version not supported",
    "unknown ca": "unknown certificate authority",
    "user cancelled": "user canceled",
}
_BLOCK_BYTES = 16 * 2**10


class PlainError(ssl.SSLError):
    """The server speaks HTTP without TLS."""


class HandshakeTimeoutError(ssl.SSLError):
    """The handshake took longer than it may, and the probe has time left."""


def wrap_tls(connection: Connection, host: str, deadline: Deadline) -> Connection:
    """`host`: an address, or a name as it is looked up. Raises TimeoutError, OSError."""
    secured, left_s = _Secured(connection, _named(host), deadline.monotonic), 0.0
    try:
        left_s = deadline.left_s()
        secured.settimeout(min(left_s, HANDSHAKE_LIMIT_S))
        secured.do_handshake()
    except BaseException as e:
        secured.close()
        if isinstance(e, TimeoutError) and left_s > HANDSHAKE_LIMIT_S:
            raise HandshakeTimeoutError("net/http: TLS handshake timeout") from e
        raise
    return secured


class _Secured:
    """TLS over another connection, which closes with it. As for an SSLSocket a timeout is of a whole call, and an end
    without a word is one; but how the answer begins is seen, which OpenSSL does not tell."""

    def __init__(self, connection: Connection, named: bytes | None, monotonic: Callable[[], float]) -> None:
        self._connection = connection
        self._monotonic = monotonic
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls_context().wrap_bio(self._incoming, self._outgoing, server_side=False, server_hostname=named)
        self._timeout_s = 0.0
        self._first = b""  # of what has come, as much as tells HTTP from TLS

    def settimeout(self, seconds: float, /) -> None:
        self._timeout_s = seconds

    def do_handshake(self) -> None:
        """Raises PlainError, OSError."""
        try:
            self._whole(self._tls.do_handshake)
        except ssl.SSLError as e:
            if self._first == _PLAIN:
                raise PlainError(NOT_TLS) from e
            raise

    def sendall(self, data: bytes, /) -> None:
        self._whole(lambda: self._tls.write(data))

    def recv(self, size: int, /) -> bytes:
        try:
            return self._whole(lambda: self._tls.read(size))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def close(self) -> None:
        self._connection.close()

    def _whole(self, call: Callable[[], T]) -> T:
        """Until it needs nothing more of the server."""
        until = self._monotonic() + self._timeout_s
        while True:
            try:
                done = call()
            except ssl.SSLWantReadError:
                self._flush(until)
                self._take(until)
            else:
                self._flush(until)
                return done

    def _flush(self, until: float) -> None:
        if data := self._outgoing.read():
            self._connection.settimeout(self._left_s(until))
            self._connection.sendall(data)

    def _take(self, until: float) -> None:
        self._connection.settimeout(self._left_s(until))
        block = self._connection.recv(_BLOCK_BYTES)
        if block:
            self._incoming.write(block)
        else:
            self._incoming.write_eof()
        if len(self._first) < len(_PLAIN):
            self._first = (self._first + block)[: len(_PLAIN)]

    def _left_s(self, until: float) -> float:
        left_s = until - self._monotonic()
        if left_s <= 0:
            raise TimeoutError("deadline exceeded")
        return left_s


def _named(host: str) -> bytes | None:
    """Whom the server is told to be meant; in bytes, which Python leaves as they are. OpenSSL takes no dot in front."""
    name = host.rstrip(".")
    return None if is_address(host) or not name or name.startswith(".") else name.encode()


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    return context


def fault(error: Exception) -> str:
    """What Go says of an error of TLS itself; empty for any other."""
    if not isinstance(error, ssl.SSLError):
        return ""
    if isinstance(error, PlainError):  # the commonest mistake is https on a plain port
        return f"http: {NOT_TLS}"
    if isinstance(error, HandshakeTimeoutError):
        return str(error.args[0])
    if isinstance(error, ssl.SSLEOFError):
        return "EOF"
    if error.reason == "WRONG_VERSION_NUMBER":
        return "tls: first record does not look like a TLS handshake"
    if alert := _ALERT.fullmatch(error.reason or ""):
        words = alert[1].lower().replace("_", " ")
        return f"remote error: tls: {_ALERTS.get(words, words)}"
    return f"tls: {error.reason or error}"
