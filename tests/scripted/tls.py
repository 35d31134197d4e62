"""Certificates for a server and a client on 127.0.0.1, made once per test run by the openssl command."""

import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType


@dataclass(frozen=True)
class Authority:
    """Files in `folder`: ca.crt, server.crt, server.key, client.crt, client.key."""

    folder: Path

    def server_context(self, *, ask_for_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.crt", self.folder / "server.key")
        if ask_for_client:
            context.load_verify_locations(self.folder / "ca.crt")
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "ca.crt"))


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=20)


def make_authority(
    folder: Path, *, address: str = "IP:127.0.0.1", clients: Mapping[str, str] = MappingProxyType({})
) -> Authority:
    """clients: more of them, common name by the name of the files. Beside them: `expired`, and `locked.key`."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    own = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    _openssl(folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test-ca", *own)
    (folder / "extensions").write_text(f"subjectAltName={address},DNS:client.example\n")
    for name, common_name in {"server": "server", "client": "client", "expired": "expired", **clients}.items():
        _openssl(folder, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={common_name}")
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extensions")
        days = ("-days", "-1" if name == "expired" else "2")
        _openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.crt", *signed, *days)
    _openssl(folder, "ec", "-in", "server.key", "-out", "locked.key", "-aes128", "-passout", "pass:x")
    return Authority(folder)
