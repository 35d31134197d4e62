"""The real extender with TLS and client certificates, and clients of it."""

import http.client
import ssl
from pathlib import Path

from tests.scripted.extender_process import ExtenderProcess


class TlsExtender(ExtenderProcess):
    """Asked over TLS. trusted: the folder of the CA that its certificate is checked by."""

    trusted: Path | None = None

    def connection(self, timeout=10):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=client_of(self.trusted))


def listen_section(folder: Path):
    """Of the configuration. folder: that of an authority, see `tls`."""
    files = {"certificate": "server.crt", "key": "server.key", "clientCA": "ca.crt"}
    tls = {key: str(folder / name) for key, name in files.items()} | {"clientNames": ["system:kube-scheduler"]}
    return {"port": 0, "tls": tls}


def client_of(trusted: Path, certificate=None):
    """certificate: folder and name of its own, None for none."""
    context = ssl.create_default_context(cafile=str(trusted / "ca.crt"))
    if certificate is not None:
        folder, name = certificate
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context
