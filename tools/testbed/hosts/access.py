"""The way into the hosts of one run: SSH by a key made for it, and the administrator's client of the API server."""

import base64
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import urllib3
import yaml

from tools.testbed.hosts.network import Peer
from tools.testbed.shared.api import Api


class AdminApi(Api):
    """By the client certificate of a kubeadm kubeconfig, whose parts are put into `folder`."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.ca = folder / "ca.crt"
        certificate, key = folder / "admin.crt", folder / "admin.key"
        for path, data in (
            (self.ca, cluster["certificate-authority-data"]),
            (certificate, user["client-certificate-data"]),
            (key, user["client-key-data"]),
        ):
            path.write_bytes(base64.b64decode(data))
        super().__init__(cluster["server"], ca=self.ca, token="")
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(certificate, key)
        self._pool = urllib3.PoolManager(
            maxsize=8, ssl_context=context, retries=False, timeout=urllib3.Timeout(total=15)
        )
        key.unlink()

    def by_token(self, token: str) -> Api:
        """The same API server for the holder of a token."""
        return Api(self.server, ca=self.ca, token=token)


def make_key(key: Path) -> str:
    """An SSH key pair in `key` and `key`.pub. Returns the public key."""
    keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "readygate testbed", "-f", str(key)]
    subprocess.run(keygen, check=True, capture_output=True)
    return key.with_suffix(".pub").read_text()


def write_ssh_config(config: Path, key: Path, host_key: str, peers: Sequence[Peer]) -> None:
    """For `ssh -F`. host_key: the public key that all hosts have."""
    known = config.with_name("known_hosts")
    known.write_text("".join(f"{peer.name},{peer.address} {host_key}\n" for peer in peers))
    entries = "".join(f"Host {peer.name}\n  HostName {peer.address}\n  HostKeyAlias {peer.name}\n" for peer in peers)
    config.write_text(
        f"{entries}Host *\n  User root\n  IdentityFile {key}\n  IdentitiesOnly yes\n  BatchMode yes\n"
        f"  UserKnownHostsFile {known}\n  StrictHostKeyChecking yes\n  ConnectTimeout 20\n  LogLevel ERROR\n"
    )


def inventory(ssh_config: Path, **groups: Sequence[Peer]) -> str:
    """For Ansible: hosts by the name of their group."""
    lines = ["all:", "  children:"]
    for group, peers in groups.items():
        lines += [f"    {group}:", "      hosts:"]
        lines += [f"        {peer.name}: {{ansible_host: '{peer.address}'}}" for peer in peers]
    lines += [
        "  vars:",
        "    ansible_user: root",
        f"    ansible_ssh_common_args: -F {ssh_config}",
        "    ansible_ssh_pipelining: true",
        "    ansible_python_interpreter: /usr/bin/python3",
    ]
    return "\n".join(lines) + "\n"
