"""Identity and address for the API server: the pod's own service account, or files that are renewed while the program
runs.

Token files are read again each minute by the monotonic clock (a wall clock that is set back would freeze an expired
token), and at once after a 401. The same holds for certificates: new connections use renewed files, and unreadable
files leave the last ones in use, which is logged once.
"""

import base64
import hashlib
import json
import logging
import math
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from component.text import one_line
from kube.certificates import not_valid
from kube.errors import CredentialsInvalid

SERVICE_ACCOUNT_ROOT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
log = logging.getLogger(__name__)

ENDING_S = 30 * 86400.0
TOLD_EVERY_S = 86400.0
_TOKEN = re.compile(r"[!-~]+")
TOKEN_READ_EVERY_S = 60.0  # client-go's period; bound tokens live an hour and are replaced at 80 % of it


class Credentials(Protocol):
    def headers(self, monotonic: float) -> Mapping[str, str]:
        """Returns headers that authenticate one request. monotonic: seconds. Raises CredentialsInvalid."""
        ...

    def refresh(self) -> None:
        """Drops cached credentials: the server has just answered 401. Raises CredentialsInvalid."""
        ...


class Tls(Protocol):
    """Certificates that may be renewed while the program runs."""

    def context(self, monotonic: float) -> ssl.SSLContext:
        """Returns the context for a new connection: another object once a file has changed. monotonic: seconds."""
        ...

    def refresh(self) -> None:
        """Checks the files: a handshake has failed, or the credentials were refreshed just now."""
        ...


@dataclass(frozen=True)
class Connection:
    """How to reach the API server. server: `https://host:port[/prefix]`. ssl_context: None for plain HTTP.
    tls_server_name: if not the host's.

    tls: instead of ssl_context, if certificates may change. dial: opens a connection within the given number of
    seconds, if the server is not reached by TCP at its address.
    """

    server: str
    ssl_context: ssl.SSLContext | None
    credentials: Credentials
    tls_server_name: str | None = None
    tls: Tls | None = None
    dial: Callable[[float], socket.socket] | None = None


class Kept:
    """Logs when files become unusable while their last content stays in use, and when they are usable again."""

    def __init__(self, what: str, files: str) -> None:
        self._what = what
        self._files = files
        self._is_wrong = False

    def wrong(self, why: str) -> None:
        if not self._is_wrong:
            facts = {"what": self._what, "files": self._files, "error": one_line(why)}
            log.warning("credentials cannot be read again, the last ones stay in use", extra=facts)
        self._is_wrong = True

    def right(self) -> None:
        if self._is_wrong:
            log.info("credentials read again", extra={"what": self._what, "files": self._files})
        self._is_wrong = False


class TokenFile:
    """A bearer token in a file that another program rotates.

    A file that cannot be read (the kubelet swaps a symlink) leaves the token in use, with one log line; the server
    decides whether it is valid. A token that nobody has renewed shortly before its end is logged once a day.
    """

    def __init__(
        self, path: Path, *, read: Callable[[Path], str] = Path.read_text, wall: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._read = read
        self._wall = wall
        self._told_at = -math.inf
        self._kept = Kept("token", str(path))
        self._remembered: tuple[float, Mapping[str, str]] | None = None
        self._last: Mapping[str, str] = {}

    def headers(self, monotonic: float) -> Mapping[str, str]:
        # One tuple, read once: several threads may read the file, and none sees a half-written state.
        remembered = self._remembered
        if remembered is not None and monotonic - remembered[0] < TOKEN_READ_EVERY_S:
            return remembered[1]
        try:
            token = self._read(self._path).strip()
        except (OSError, UnicodeDecodeError) as e:
            return self._without(f"cannot be read: {_cause(e)}")
        if not token:
            return self._without("is empty: wait for the kubelet or mount it")
        if not _TOKEN.fullmatch(token):  # half of a file that is being written, or another file
            return self._without("holds no token: more than one line, or no text")
        self._kept.right()
        self._last = {"Authorization": f"Bearer {token}"}
        self._remembered = (monotonic, self._last)
        if monotonic - self._told_at >= TOLD_EVERY_S and is_ending(token, self._wall()):
            self._told_at = monotonic
            log.warning(
                "the token ends soon and was not renewed",
                extra={"file": str(self._path), "ends": self._ends(token)},
            )
        return self._last

    def _without(self, why: str) -> Mapping[str, str]:
        """Returns the last token. Raises CredentialsInvalid if there was none."""
        if not self._last:
            raise CredentialsInvalid(f"token file {self._path} {why}")
        self._kept.wrong(why)
        return self._last

    @property
    def issued(self) -> float | None:
        """When the token in use was issued, in seconds since the epoch; None if unknown."""
        return _claimed(self._token, "iat")

    @property
    def expiry(self) -> float | None:
        """When the token in use ends, in seconds since the epoch; None if unknown."""
        return expiry_of(self._token)

    @property
    def _token(self) -> str:
        return self._last.get("Authorization", "").removeprefix("Bearer ")

    @staticmethod
    def _ends(token: str) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expiry_of(token) or 0.0))

    def refresh(self) -> None:
        self._remembered = None


class AuthorityFile:
    """A file of certificate authorities that another program renews. Unusable files leave the last ones in use."""

    def __init__(self, path: Path, *extra: Path) -> None:
        """extra: more files to check for changes. Raises OSError (ssl.SSLError among them), ValueError."""
        self._files = (path, *extra)
        self._kept = Kept("certificates", ", ".join(map(str, self._files)))
        self._looked_at: float | None = None
        self._digest = b""
        self._context = self._load()

    def context(self, monotonic: float) -> ssl.SSLContext:
        if self._looked_at is None or monotonic - self._looked_at >= TOKEN_READ_EVERY_S:
            self._looked_at = monotonic
            self.refresh()
        return self._context

    def refresh(self) -> None:
        try:
            self._context = self._load()
        except (OSError, ValueError) as e:
            self._kept.wrong(_cause_in(e))
        else:
            self._kept.right()

    def _load(self) -> ssl.SSLContext:
        contents = [path.read_bytes() for path in self._files]
        digest = hashlib.sha256()
        for content in contents:
            digest.update(len(content).to_bytes(8, "big") + content)
        if digest.digest() == self._digest:
            return self._context
        context = self._made(contents)
        self._digest = digest.digest()
        return context

    def _made(self, contents: Sequence[bytes]) -> ssl.SSLContext:
        """Makes a context of the files' contents, in their order."""
        authority = contents[0].decode("ascii")
        if not authority.strip():  # the library would fall back to the authorities of this machine
            raise ValueError("the file of authorities is empty")
        return ssl.create_default_context(cadata=authority)


class CertificateFiles(AuthorityFile):
    """A client certificate, its key and the certificate authority of the server, in files that another program renews.

    Certificate and key may be in one file, as a kubelet keeps them. New connections use renewed files. Files that do
    not match, as between the two writes of a renewal, leave the last ones in use; so does a certificate that is not
    valid yet, or no longer, as long as the last one is.
    """

    def __init__(self, *, authority: Path, certificate: Path, key: Path, wall: Callable[[], float] = time.time) -> None:
        """Raises OSError (ssl.SSLError among them), ValueError."""
        self._certificate = certificate
        self._key = key
        self._wall = wall
        self._told: tuple[str, float] = ("", -math.inf)
        self._used = b""
        super().__init__(authority, certificate, key)
        self._tell()

    def refresh(self) -> None:
        super().refresh()
        self._tell()

    def _tell(self) -> None:
        """Logs an invalid certificate once a day: a server that refuses it does not name the file."""
        problem = not_valid(self._used, self._wall())
        told, at = self._told
        if not problem:
            self._told = ("", -math.inf)
        elif not told or abs(self._wall() - at) >= TOLD_EVERY_S:
            self._told = (problem, self._wall())
            log.warning("the client certificate is not valid", extra={"file": str(self._certificate), "error": problem})

    def _made(self, contents: Sequence[bytes]) -> ssl.SSLContext:
        wall, certificate = self._wall(), contents[1]
        problem = not_valid(certificate, wall)
        if problem and self._used and not not_valid(self._used, wall):
            raise ValueError(f"the certificate is not valid: {problem}")
        context = super()._made(contents)
        context.load_cert_chain(self._certificate, self._key, password=_no_password)
        self._used = certificate
        return context


def _no_password() -> str:
    """OpenSSL would ask for the password of a key on the terminal."""
    raise ValueError("the key is encrypted")


class NoToken:
    """Credentials of a client that has a certificate."""

    def headers(self, monotonic: float) -> Mapping[str, str]:  # noqa: ARG002 - of Credentials
        return {}

    def refresh(self) -> None:
        """The certificate itself is refreshed by Tls."""


def in_cluster(root: Path = SERVICE_ACCOUNT_ROOT, environ: Mapping[str, str] = os.environ) -> Connection:
    """Returns the connection of a pod by its service account. Raises CredentialsInvalid if this is no pod, or has no
    token."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise CredentialsInvalid(
            "not inside a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
            "name a kubeconfig file (kubernetes.kubeconfig)"
        )
    if not (root / "token").is_file():
        raise CredentialsInvalid(
            f"no service account token at {root / 'token'}: set automountServiceAccountToken or name a kubeconfig file"
        )
    bracketed = f"[{host}]" if ":" in host else host
    return by_files(f"https://{bracketed}:{port}", token_file=root / "token", ca_file=root / "ca.crt")


def by_files(server: str, *, token_file: Path, ca_file: Path) -> Connection:
    """Returns the connection by a token and a certificate authority, each in a file that may be renewed.

    Raises CredentialsInvalid if the authority cannot be used; the token is read with the first request.
    """
    try:
        authority = AuthorityFile(ca_file)
    except (OSError, ValueError) as e:
        raise CredentialsInvalid(f"certificate authority {ca_file} cannot be used: {_cause(e)}") from e
    return Connection(server, ssl_context=None, credentials=TokenFile(token_file), tls=authority)


def by_certificate(server: str, *, authority: Path, certificate: Path, key: Path) -> Connection:
    """Returns the connection by a client certificate, as a kubelet's, whose files may be renewed.

    Raises CredentialsInvalid, whose text is one line with cause and remedy.
    """
    try:
        files = CertificateFiles(authority=authority, certificate=certificate, key=key)
    except (OSError, ValueError) as e:
        raise CredentialsInvalid(
            f"client certificate {certificate}, key {key} or authority {authority} cannot be used: {_cause_in(e)}; "
            "has the kubelet joined, and may this user read them?"
        ) from e
    return Connection(server, ssl_context=None, credentials=NoToken(), tls=files)


def by_credentials(server: str, *, authority: Path, credentials: Credentials) -> Connection:
    """Returns the connection of an account whose token the caller requests. Raises CredentialsInvalid."""
    try:
        return Connection(server, ssl_context=None, credentials=credentials, tls=AuthorityFile(authority))
    except (OSError, ValueError) as e:
        raise CredentialsInvalid(f"certificate authority {authority} cannot be used: {_cause(e)}") from e


def expiry_of(token: str) -> float | None:
    """Returns when a service account's token ends, in seconds since the epoch; None for a token without an end. Pure.

    Every holder of a token may read this; only the API server can verify it.
    """
    return _claimed(token, "exp")


def is_ending(token: str, wall: float) -> bool:
    """Returns whether a tenth of its time is left, or a month of a longer time. The kubelet renews its tokens earlier.
    Pure."""
    issued, ends = _claimed(token, "iat"), _claimed(token, "exp")
    return issued is not None and ends is not None and ends - wall < min((ends - issued) / 10, ENDING_S)


def _claimed(token: str, name: str) -> float | None:
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims[name])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _cause_in(error: Exception) -> str:
    """Returns the cause with the file, if it is known."""
    file = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    return f"{file}{_cause(error)}"


def _cause(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
