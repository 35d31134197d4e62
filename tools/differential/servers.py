"""Servers in memory that take their time, or speak TLS, as `driver/httpprobe/server.go` has them.

Time is the history's: a timeout costs none, as it passes at once where nothing else is to happen before.
"""

import contextlib
import ssl
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from agent.probe.dial import Deadline, DialError
from agent.probe.targets import join_host_port

KINDS = (
    *["self-signed"] * 4,
    *("expired", "short key", "1.2", "1.1", "without forward secrecy", "CBC", "asks who it is"),
)
_BLOCK_BYTES = 16 * 1024
_FOREVER_S = 1e9


class Part(msgspec.Struct):
    """One character a byte."""

    after: float
    text: str


class Reply(msgspec.Struct):
    """What a server does: `tls` is what kind of it, "" for none; `handshake`: seconds before it reads a ClientHello.
    Endings are close, silent, reset; with TLS drop (without a word), too."""

    tls: str
    handshake: float
    parts: list[Part]
    ending: str


class Clock:
    def __init__(self) -> None:
        self.monotonic = 0.0

    def __call__(self) -> float:
        return self.monotonic


def asked(data: bytes) -> bool:
    """Whether a request is there, or a ClientHello, which is one to a server that speaks no TLS."""
    return data.endswith(b"\r\n\r\n") or data.startswith(b"\x16")


def shown(request: bytes) -> str:
    """A ClientHello is each library's own."""
    return "ClientHello" if request.startswith(b"\x16") else request.decode("latin-1")


class Server:
    """The client's end of a connection to it."""

    def __init__(self, reply: Reply, clock: Clock) -> None:
        self.sent = ""
        self._reply, self._clock = reply, clock
        self._timeout_s = _FOREVER_S
        self._request, self._out = b"", bytearray()
        self._ahead: list[tuple[float, Callable[[], None]]] = []
        self._at, self._over, self._reset = clock(), False, False
        self._tls = _Secured(reply.tls) if reply.tls else None
        if self._tls is not None:
            self._then(reply.handshake, self._shake)

    def settimeout(self, seconds: float, /) -> None:
        self._timeout_s = seconds

    def sendall(self, data: bytes, /) -> None:
        if self._tls is None:
            self._hear(data)
            return
        self._tls.incoming.write(data)
        if not self._ahead:  # else it is read then
            self._shake()

    def recv(self, size: int, /) -> bytes:
        until = self._clock() + self._timeout_s
        while not self._out and not self._over:
            if not self._ahead or self._ahead[0][0] > until:
                self._clock.monotonic = until
                raise TimeoutError("timed out")
            at, happens = self._ahead.pop(0)
            self._clock.monotonic = max(at, self._clock())
            happens()
        if not self._out and self._reset:
            raise ConnectionResetError("connection reset by peer")
        block = bytes(self._out[:size])
        del self._out[:size]
        return block

    def close(self) -> None:
        pass

    def _then(self, after: float, happens: Callable[[], None]) -> None:
        self._at += after
        self._ahead.append((self._at, happens))

    def _shake(self) -> None:
        """TLS goes on, with what has been heard."""
        assert self._tls is not None
        try:
            heard = self._tls.go_on()
        except ssl.SSLError:
            self._over = self._reply.ending != "silent"
        else:
            if self._tls.shaken and not self.sent:
                self.sent = f"TLS for {self._tls.named}\n"
            if heard:
                self._hear(heard)
        self._out += self._tls.outgoing.read()

    def _hear(self, data: bytes) -> None:
        had = asked(self._request)
        self._request += data
        self.sent += shown(data)
        if had or not asked(self._request):
            return
        self._at = self._clock()
        for part in self._reply.parts:
            self._then(part.after, lambda text=part.text: self._say(text.encode("latin-1")))  # type: ignore[misc]
        self._then(0.0, self._end)

    def _say(self, data: bytes) -> None:
        if self._tls is None:
            self._out += data
        elif data:
            self._out += self._tls.sealed(data)

    def _end(self) -> None:
        match self._reply.ending:
            case "silent":
                return
            case "close" if self._tls is not None:
                self._out += self._tls.goodbye()
            case "reset":
                self._reset = True
        self._over = True


class _Secured:
    """The server's half of TLS."""

    def __init__(self, kind: str) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.shaken, self.named = False, ""
        context = _contexts()[kind]
        context.sni_callback = self._name
        self._tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def _name(self, _tls: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        self.named = name or ""

    def go_on(self) -> bytes:
        """What is heard. Raises SSLError."""
        try:
            if not self.shaken:
                self._tls.do_handshake()
                self.shaken = True
            return self._tls.read(_BLOCK_BYTES)
        except ssl.SSLWantReadError:
            return b""

    def sealed(self, data: bytes) -> bytes:
        self._tls.write(data)
        return self.outgoing.read()

    def goodbye(self) -> bytes:
        with contextlib.suppress(ssl.SSLError):  # the client has not said its own
            self._tls.unwrap()
        return self.outgoing.read()


class Ready:
    """The client's end, of a server that has its whole answer ready once the request is there, and then ends."""

    def __init__(self, reply: str) -> None:
        self._request = b""
        self._reply = reply.encode("latin-1")

    @property
    def sent(self) -> str:
        return shown(self._request)

    def settimeout(self, _seconds: float, /) -> None:
        pass

    def sendall(self, data: bytes, /) -> None:
        self._request += data

    def recv(self, size: int, /) -> bytes:
        block, self._reply = self._reply[:size], self._reply[size:]
        return block

    def close(self) -> None:
        pass


class Network:
    """Each connection meets the next of the replies, until nobody listens."""

    def __init__(self, replies: list[Any]) -> None:
        self.clock = Clock()
        self.dialled: list[str] = []
        self.made: list[Ready | Server] = []
        self._replies = [reply if isinstance(reply, str) else msgspec.convert(reply, Reply) for reply in replies]

    def deadline(self, timeout_s: float) -> Deadline:
        return Deadline(timeout_s, self.clock)

    def connect(self, host: str, port: int, deadline: Deadline) -> Ready | Server:
        deadline.left_s()
        self.dialled.append(join_host_port(host, port))
        if not self._replies:
            raise DialError("connect: connection refused")
        reply = self._replies.pop(0)
        self.made.append(Ready(reply) if isinstance(reply, str) else Server(reply, self.clock))
        return self.made[-1]


@cache
def _contexts() -> Mapping[str, ssl.SSLContext]:
    """By kind of TLS."""
    curve = ec.generate_private_key(ec.SECP256R1())
    short = rsa.generate_private_key(65537, 1024)  # noqa: S505 - to be found good all the same
    old = "DEFAULT:@SECLEVEL=0"
    contexts = {
        "self-signed": _context(curve),
        "expired": _context(curve, ends_in_days=-365),
        "short key": _context(short, ciphers=old),
        "1.2": _context(curve),
        "1.1": _context(curve, ciphers=old),
        "without forward secrecy": _context(short, ciphers="AES128-GCM-SHA256:@SECLEVEL=0"),
        "CBC": _context(short, ciphers="ECDHE-RSA-AES128-SHA:@SECLEVEL=0"),
        "asks who it is": _context(curve),
    }
    for kind in ("1.2", "without forward secrecy", "CBC"):
        contexts[kind].maximum_version = ssl.TLSVersion.TLSv1_2
    contexts["1.1"].minimum_version = ssl.TLSVersion.TLSv1
    contexts["1.1"].maximum_version = ssl.TLSVersion.TLSv1_1
    contexts["asks who it is"].verify_mode = ssl.CERT_REQUIRED
    return contexts


def _context(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, *, ends_in_days: int = 365, ciphers: str = "DEFAULT"
) -> ssl.SSLContext:
    nobody = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody")])
    ends = datetime.now(UTC) + timedelta(days=ends_in_days)
    builder = x509.CertificateBuilder().subject_name(nobody).issuer_name(nobody).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(ends - timedelta(days=366)).not_valid_after(ends)
    text = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    text += key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(ciphers)
    with tempfile.NamedTemporaryFile(prefix="readygate-differential-") as file:
        Path(file.name).write_bytes(text)
        context.load_cert_chain(file.name)
    return context
