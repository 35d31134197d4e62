"""The real kube-scheduler over TLS with client certificates: works, survives rotation on both sides, refuses strangers.

In mode `enforce`, so that a pod is bound only if the extender was believed.
"""

import os
import shutil
import signal
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.plane.cluster import Cluster
from tools.kit.waiting import wait_until
from tools.testbed.plane.pki import Authority
from tools.testbed.plane.programs import Extender

USER = "system:kube-scheduler"


class TlsExtender(Extender):
    """The files in `folder` may change: server.crt, server.key, clients.crt."""

    healthy_node = ""

    def __init__(self, plane, name: str, folder: Path, trusted: Authority):
        super().__init__(plane, name=name, heartbeat={"limitSeconds": 0})
        files = {"certificate": "server.crt", "key": "server.key", "clientCA": "clients.crt"}
        tls = {key: str(folder / name) for key, name in files.items()} | {"clientNames": [USER]}
        self.settings["listen"]["tls"] = tls
        self._context = ssl.create_default_context(cafile=str(trusted.certificate))

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5, context=self._context) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, ""
        except OSError:
            return 0, ""


class Files:
    """Of both sides. servers, clients: the CAs that they are checked by."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.servers, self.clients, self.strangers = (
            Authority(folder / name) for name in ("servers", "clients", "strangers")
        )
        shutil.copy(self.clients.certificate, folder / "clients.crt")
        self.renew()

    def renew(self) -> None:
        self._put("server", self.servers.serving("extender"))
        self._put("scheduler", self.clients.client(USER, ()))

    def _put(self, name: str, made: tuple[Path, Path]) -> None:
        for path, suffix in zip(made, ("crt", "key"), strict=True):
            shutil.copy(path, self.folder / f"{name}.{suffix}")

    def of_scheduler(self, certificate: tuple[Path, Path] | None = None) -> dict[str, str]:
        """Its tlsConfig."""
        crt, key = certificate or (self.folder / "scheduler.crt", self.folder / "scheduler.key")
        return {"caFile": str(self.servers.certificate), "certFile": str(crt), "keyFile": str(key)}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def extender(cluster: Cluster, files: Files):
    nodes = cluster.add_nodes(2)
    cluster.add_health_pods(nodes[:1], ready=True)
    cluster.add_health_pods(nodes[1:], ready=False)
    extender = TlsExtender(cluster.plane, f"extender-tls-{nodes[0]}", files.folder, files.servers)
    extender.healthy_node = nodes[0]
    extender.start()
    yield extender
    cluster.plane.stop_scheduler()
    extender.stop()


def test_x57_the_scheduler_is_answered_and_rotation_on_both_sides_loses_nothing(
    cluster: Cluster, extender: TlsExtender, files: Files
):
    healthy = extender.healthy_node
    cluster.use_extender(extender.url, mode="enforce", tls=files.of_scheduler())
    cluster.add_pod("tls-first")
    assert healthy == cluster.wait_bound("tls-first")
    files.renew()
    wait_until(lambda: "TLS certificates loaded again" in extender.process.text(), timeout_s=60)
    cluster.add_pod("tls-on-the-kept-connection")
    assert healthy == cluster.wait_bound("tls-on-the-kept-connection")
    os.kill(extender.process.pid, signal.SIGHUP)  # its connection is ended, the next is made with both new certificates
    wait_until(lambda: "reloaded" in extender.process.text(), timeout_s=60)
    for number in range(3):
        cluster.add_pod(f"tls-later-{number}")
        assert healthy == cluster.wait_bound(f"tls-later-{number}")


def test_x57_a_scheduler_with_a_strangers_certificate_is_not_answered(
    cluster: Cluster, extender: TlsExtender, files: Files
):
    stranger = files.strangers.client(USER, ())
    cluster.use_extender(extender.url, mode="enforce", tls=files.of_scheduler(stranger))
    cluster.add_pod("tls-stranger")
    text = cluster.wait_refused("tls-stranger")
    assert "tls" in text or "connection reset" in text or "EOF" in text or "broken pipe" in text
    other_name = files.clients.client("system:kube-controller-manager", ())
    cluster.use_extender(extender.url, mode="enforce", tls=files.of_scheduler(other_name))
    cluster.add_pod("tls-other-name")
    assert "403" in cluster.wait_refused("tls-other-name")


def test_the_scheduler_does_not_believe_who_has_another_certificate(
    cluster: Cluster, extender: TlsExtender, files: Files
):
    """As one who took the port while the extender was away."""
    believes = files.of_scheduler() | {"caFile": str(files.strangers.certificate)}
    cluster.use_extender(extender.url, mode="enforce", tls=believes)
    cluster.add_pod("tls-unbelieved")
    assert "certificate signed by unknown authority" in cluster.wait_refused("tls-unbelieved")
