"""TLS as the kubelet's probes speak it: without any verification, for a probe asks whether it answers, not who it is.

Imported where it is spoken: OpenSSL is an eighth of the memory of an agent that speaks plainly.
"""

import socket
import ssl
from functools import lru_cache

from agent.probe.dial import NOT_TLS, Deadline
from agent.probe.targets import is_address

HANDSHAKE_LIMIT_S = 10.0  # net/http's transport of kubelet

# What Go offers: nothing without forward secrecy. OpenSSL's level 2 would refuse short keys even without verification.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES+SHA1:@SECLEVEL=0"


def wrap_tls(connection: socket.socket, host: str, deadline: Deadline) -> socket.socket:
    """`host`: an address, or a name as it is looked up. Raises TimeoutError, OSError."""
    wrapped = tls_context().wrap_socket(connection, server_hostname=_named(host), do_handshake_on_connect=False)
    try:
        wrapped.settimeout(min(deadline.left_s(), HANDSHAKE_LIMIT_S))
        wrapped.do_handshake()
    except BaseException:
        wrapped.close()
        raise
    return wrapped


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
    # The commonest mistake is https on a plain port.
    plain = error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
    return f"http: {NOT_TLS}" if plain else f"tls: {error.reason or error}"
