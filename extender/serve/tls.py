"""TLS of the verbs' listener without a socket: bytes in, bytes out; and its files, which are loaded again when they
change.

The handshake asks for a client certificate and does not require it: the kubelet's probes have none. A client without a
certificate may call /livez and /readyz and no verb. A certificate that the client CA has not signed, or that has
expired, ends the handshake.

A separate thread compares the files by content, so that they may be replaced in any way and order. A set that does not
match, such as a new certificate with the old key, leaves the previous set in force.
"""

import contextlib
import logging
import ssl
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from component.loop import Loop
from component.text import one_line
from extender.config.settings import Tls
from extender.serve import limits
from extender.serve.stream import StreamError

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
READ_BYTES = 65536
_RECORD_HEAD_BYTES = 5  # kind, version and, in the last two, the number of bytes that follow


class CertificateError(Exception):
    """The files cannot be used. The text is one line with key, cause and remedy."""


class TlsStream:
    """A TLS connection. ready: the handshake is done. done: the client has ended its direction. may_ask: the client may
    call a verb."""

    def __init__(
        self,
        context: ssl.SSLContext,
        may_ask: Callable[[Mapping[str, Any] | None], bool],
        refused: Callable[[str], None],
    ) -> None:
        """may_ask: called with the verified certificate, or None. refused: called with the cause of a failed handshake;
        must not block."""
        self.ready = False
        self.done = False
        self.may_ask = False
        self._small_records = 0  # since this side last sent something
        self._rest_bytes = 0  # bytes of a record that are still to come, without its head
        self._half_head = b""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._may_ask, self._refused = may_ask, refused

    def receive(self, data: bytes | memoryview) -> bytes:
        """Returns the plain bytes of received ones. Raises StreamError; an alert may be pending() then."""
        if self.done:
            return b""  # OpenSSL reads no more: the bytes would stay in memory
        self._count_records(data)
        self._incoming.write(data)
        pieces: list[bytes] = []
        try:
            if not self.ready:
                self._tls.do_handshake()
                self.ready = True
                self.may_ask = self._may_ask(self._tls.getpeercert())
            while piece := self._tls.read(READ_BYTES):
                pieces.append(piece)
            self._end()
        except ssl.SSLWantReadError:
            pass  # no complete record is left
        except ssl.SSLZeroReturnError:
            self._end()
        except ssl.SSLError as e:
            cause = one_line(e.reason or str(e), 100).lower().replace("_", " ")
            if not self.ready:
                self._refused(cause)
            raise StreamError(cause) from e
        if self._incoming.pending > READ_BYTES:
            raise StreamError("bytes that OpenSSL rejects")
        return b"".join(pieces)

    def _end(self) -> None:
        """The client has ended its direction, and will close."""
        self.done = True
        self._incoming.read()

    def _count_records(self, data: bytes | memoryview) -> None:
        """Limits the number of small records. A small record costs as much as a large one, and one that changes keys
        ten times as much. OpenSSL processes any number of them at once, so this counts them by their heads before.
        Bytes that are no record are left to OpenSSL. Raises StreamError."""
        if self._half_head:
            data, self._half_head = self._half_head + bytes(data), b""
        at, last = self._rest_bytes, len(data) - _RECORD_HEAD_BYTES
        while at <= last and self._small_records <= limits.SMALL_RECORDS_MAX:
            record_bytes = _RECORD_HEAD_BYTES + (data[at + 3] << 8 | data[at + 4])
            self._small_records += record_bytes < limits.SMALL_RECORD_BYTES
            at += record_bytes
        if self._small_records > limits.SMALL_RECORDS_MAX:
            raise StreamError("many small records without a request")
        if at < len(data):
            self._half_head, at = bytes(data[at:]), len(data)
        self._rest_bytes = at - len(data)

    def send(self, plain: bytes) -> bytes:
        """Returns the bytes to send for these plain ones."""
        self._small_records = 0
        left = memoryview(plain)
        while left:
            left = left[self._tls.write(left) :]  # one record at a time
        return self._outgoing.read()

    def pending(self) -> bytes:
        """Returns bytes that TLS itself sends: its part of the handshake, or an alert."""
        return self._outgoing.read()

    def ended(self) -> bytes:
        """Returns the bytes that announce the end."""
        with contextlib.suppress(ssl.SSLError):  # the client has not ended its direction yet, or there was no handshake
            self._tls.unwrap()
        return self._outgoing.read()


class Certificates:
    """The newest usable set of files, as a service. stream() makes the TLS end of a new connection. kept: why the
    present files are not used, "" if they are."""

    name = "certificates"

    def __init__(self, settings: Tls) -> None:
        """Raises CertificateError."""
        self._settings = settings
        self._names = frozenset(settings.client_names)
        self._seen = self._read()
        self._context = self._made_of(self._seen)
        self.kept = ""
        self._refusals, self._last_cause = 0, ""
        self._loop = Loop("certificates", self._look, stuck_after_s=60.0, first_pause_s=LOOK_EVERY_S)
        self.stop, self.healthy = self._loop.stop, self._loop.healthy

    def start(self) -> None:
        """Starts the thread. The object may have been made and checked before a fork: a fault of then is logged now."""
        self.look(tell=False)
        if self.kept:
            self._tell()
        self._loop.start()

    def stream(self) -> TlsStream:
        return TlsStream(self._context, self._may_ask, self._refuse)

    def look(self, *, tell: bool = True) -> None:
        """Loads the files if they have changed and can be used; logs once if they cannot."""
        found = self._read()
        if found == self._seen:
            return
        self._seen = found
        try:
            self._context = self._made_of(found)
        except CertificateError as e:
            self.kept = str(e)
        else:
            self.kept = ""
        if tell:
            self._tell()

    def _tell(self) -> None:
        if self.kept:
            log.error("keeping the previous TLS certificates", extra={"error": self.kept})
        else:
            log.info("TLS certificates loaded again")

    def _look(self) -> float:
        self.look()
        refusals, self._refusals = self._refusals, 0
        if refusals:
            log.warning("TLS handshakes refused", extra={"number": refusals, "last_cause": self._last_cause})
        return LOOK_EVERY_S

    def _refuse(self, cause: str) -> None:
        """Counts a failed handshake; called by the serving thread, which does not log. A number may be lost to a
        concurrent check and need not be exact."""
        self._refusals += 1
        self._last_cause = cause

    def _may_ask(self, certificate: Mapping[str, Any] | None) -> bool:
        if self._settings.client_ca is None:
            return True
        return bool(certificate) and (not self._names or bool(self._names & names_of(certificate or {})))

    def _read(self) -> dict[str, bytes]:
        """Returns digests by key. A file that cannot be read has one, too: the error is logged once, and again when it
        changes."""
        files = {"certificate": self._settings.certificate, "key": self._settings.key}
        if self._settings.client_ca is not None:
            files["clientCA"] = self._settings.client_ca
        return {key: _digest(path) for key, path in files.items()}

    def _made_of(self, found: Mapping[str, bytes]) -> ssl.SSLContext:
        """Makes TLS contexts of the files. Raises CertificateError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A resumed session would accept a client certificate that today's CA has not verified.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        own, remedy = self._settings, "give a PEM file that this user may read"
        try:
            key = "certificate"
            # OpenSSL would ask for the passphrase of a key on the terminal.
            context.load_cert_chain(own.certificate, own.key, password=lambda: "")
            if own.client_ca is not None:
                key = "clientCA"
                context.verify_mode = ssl.CERT_OPTIONAL
                context.load_verify_locations(own.client_ca)
        except (OSError, ValueError) as e:
            cause = getattr(e, "reason", None) or getattr(e, "strerror", None) or str(e)
            where = f"{own.certificate} with key {own.key}" if key == "certificate" else own.client_ca
            raise CertificateError(
                f"listen.tls.{key}: cannot use {where}: {one_line(str(cause), 100)}; {remedy}"
            ) from e
        if self._read() != found:
            raise CertificateError("listen.tls: the files changed while they were read; they are read again")
        return context


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """Returns common names and DNS names of a certificate in the form of ssl.getpeercert()."""
    common = {value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"}
    return frozenset(common | {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"})


def _digest(path: str) -> bytes:
    try:
        return sha256(Path(path).read_bytes()).digest()
    except OSError as e:
        return str(e.strerror).encode()
