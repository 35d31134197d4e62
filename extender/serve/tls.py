"""TLS of the verbs' listener, for an event loop: bytes in, bytes out, no socket; and the files that it is made of.

A client certificate is asked for but not insisted on in the handshake: the kubelet's probes have none. Who came without
one may ask how we are and no verb; one that our CA has not signed, or that has expired, ends the handshake.

The files are looked at by a thread of their own, by content: what rotates them may replace them in any way and order. A
set that does not fit together, such as a new certificate beside the old key, leaves the one before in force.
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
_RECORD_HEAD_BYTES = 5  # kind, version and, in the last two, how many bytes follow


class CertificateError(Exception):
    """The files cannot be used. The text is one line: key, cause and remedy."""


class TlsStream:
    """One connection. ready: the handshake is done. done: the client has said that it sends no more. may_ask: it is one
    that may ask a verb.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        may_ask: Callable[[Mapping[str, Any] | None], bool],
        refused: Callable[[str], None],
    ) -> None:
        """may_ask: is given the verified certificate, or None. refused: is told why a handshake failed."""
        self.ready = False
        self.done = False
        self.may_ask = False
        self._small_records = 0  # since we last had something to say
        self._rest_bytes = 0  # how much of a record is still to come, beside its head
        self._half_head = b""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._may_ask, self._refused = may_ask, refused

    def receive(self, data: bytes | memoryview) -> bytes:
        """What of the bytes off the wire is for us. Raises StreamError; an alert may be pending() then."""
        if self.done:
            return b""  # OpenSSL reads nothing any more: it would be kept
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
            pass  # no whole record more
        except ssl.SSLZeroReturnError:
            self._end()
        except ssl.SSLError as e:
            cause = one_line(e.reason or str(e), 100).lower().replace("_", " ")
            if not self.ready:
                self._refused(cause)
            raise StreamError(cause) from e
        if self._incoming.pending > READ_BYTES:
            raise StreamError("bytes that OpenSSL does not take")
        return b"".join(pieces)

    def _end(self) -> None:
        """The client has said that it is done, and will close."""
        self.done = True
        self._incoming.read()

    def _count_records(self, data: bytes | memoryview) -> None:
        """A small record costs as much as a large one, and one that changes keys ten times as much: OpenSSL takes any
        number of them at once, so they are counted before it has them, by what all records begin with. What is no
        record it finds itself. Raises StreamError.
        """
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
        """What to write to the wire for it."""
        self._small_records = 0
        left = memoryview(plain)
        while left:
            left = left[self._tls.write(left) :]  # a record at a time
        return self._outgoing.read()

    def pending(self) -> bytes:
        """What TLS itself has to say: its part of the handshake, an alert."""
        return self._outgoing.read()

    def ended(self) -> bytes:
        """The word that nothing more will come, for the wire."""
        with contextlib.suppress(ssl.SSLError):  # the client has not said so yet, or there never was a handshake
            self._tls.unwrap()
        return self._outgoing.read()


class Certificates:
    """The newest usable set of files, as a service. stream() makes the end of a new connection of it. kept: why it is
    not the one that is there, "" if it is."""

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
        """It may have been made, and looked at, before a fork: what was found wrong then is said here."""
        self.look(tell=False)
        if self.kept:
            self._tell()
        self._loop.start()

    def stream(self) -> TlsStream:
        return TlsStream(self._context, self._may_ask, self._refuse)

    def look(self, *, tell: bool = True) -> None:
        """Take the files if they have changed and can be used; say it once if they cannot."""
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
            log.error("keeping the TLS certificates of before", extra={"error": self.kept})
        else:
            log.info("TLS certificates loaded anew")

    def _look(self) -> float:
        self.look()
        refusals, self._refusals = self._refusals, 0
        if refusals:
            log.warning("TLS handshakes refused", extra={"number": refusals, "last_cause": self._last_cause})
        return LOOK_EVERY_S

    def _refuse(self, cause: str) -> None:
        """Told by the thread that serves, which does not log. A number may be lost to a look, and need not be exact."""
        self._refusals += 1
        self._last_cause = cause

    def _may_ask(self, certificate: Mapping[str, Any] | None) -> bool:
        if self._settings.client_ca is None:
            return True
        return bool(certificate) and (not self._names or bool(self._names & names_of(certificate or {})))

    def _read(self) -> dict[str, bytes]:
        """Digests by key. What cannot be read has one too: it is said once, and again when it has changed."""
        files = {"certificate": self._settings.certificate, "key": self._settings.key}
        if self._settings.client_ca is not None:
            files["clientCA"] = self._settings.client_ca
        return {key: _digest(path) for key, path in files.items()}

    def _made_of(self, found: Mapping[str, bytes]) -> ssl.SSLContext:
        """Raises CertificateError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A resumed session would go on with a client certificate that the CA of today has not seen.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        own, remedy = self._settings, "give a PEM file that this user may read"
        try:
            key = "certificate"
            # A key with a passphrase would be asked for on the terminal.
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
            raise CertificateError("listen.tls: the files changed while they were read; they are looked at again")
        return context


def names_of(certificate: Mapping[str, Any]) -> frozenset[str]:
    """Common names and DNS names of a certificate in the form of ssl.getpeercert()."""
    common = {value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"}
    return frozenset(common | {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"})


def _digest(path: str) -> bytes:
    try:
        return sha256(Path(path).read_bytes()).digest()
    except OSError as e:
        return str(e.strerror).encode()
