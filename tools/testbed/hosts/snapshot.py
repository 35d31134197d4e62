"""A snapshot of a joined cluster: the files that `kubeadm init` and `join` left on the disk of each host.

`seal` stops a cluster that is up and copies these files, and nothing else, into one folder for each host. A host that
boots with its folder as the topmost read-only layer of its overlay is a node of the cluster again. Its containers,
pods, logs and addresses of pods belong to the boot and are not in the snapshot.

Objects that describe a moment are deleted before the cluster stops: leases, events, pods, certificate requests and the
bootstrap token. The service account `default` of the namespace `default` is deleted too: the controller manager makes
it again, which shows that it works.
"""

import os
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from images.cache import key_of, key_of_file
from tools.testbed.hosts import kubeadm
from tools.testbed.hosts.kubeadm import Shell
from tools.testbed.hosts.layers import Layers
from tools.testbed.hosts.layout import Layout
from tools.testbed.hosts.network import Peer

LIFE_S = 14 * 86400.0
"""Seconds after which a snapshot is not used any more. `seal` refuses certificates that end before twice this time."""
FILES = (
    "etc/kubernetes",
    "var/lib/etcd",
    "var/lib/kubelet/config.yaml",
    "var/lib/kubelet/instance-config.yaml",
    "var/lib/kubelet/kubeadm-flags.env",
    "var/lib/kubelet/pki",
)
"""Paths below the root folder of a host; a host that has one of them not is a worker, or of another Kubernetes."""
_SOURCE = Path(__file__).parent

_STOP_NODE = "systemctl stop kubelet kube-proxy"
# The names as the kernel cuts them. No kubelet starts them again. $1: the signal.
_END = "pkill -{signal} -x '{names}'; while pgrep -x '{names}' >/dev/null; do sleep 0.02; done"
_STOP_CONTROLLERS = _END.format(signal="TERM", names="kube-controller|kube-scheduler")
_STOP_API_SERVER = _END.format(signal="KILL", names="kube-apiserver")
# By SIGTERM: etcd closes its files.
_STOP_ETCD = _END.format(signal="TERM", names="etcd")
_CLEAN = """
set -e
export KUBECONFIG=/etc/kubernetes/admin.conf
remove() { kubectl delete --wait=false --ignore-not-found "$@"; }
remove pods,events,leases,certificatesigningrequests --all --all-namespaces --grace-period=0 --force
remove secrets --namespace=kube-system --field-selector=type=bootstrap.kubernetes.io/token
remove serviceaccount default --namespace=default
"""
_CHECK_CERTIFICATES = f"""
set -e
for file in $(find /etc/kubernetes/pki /var/lib/kubelet/pki -name '*.crt' -o -name '*.pem'); do
    openssl x509 -noout -in "$file" -checkend {2 * LIFE_S:.0f} >/dev/null || {{ echo "$file ends too soon"; exit 1; }}
done
"""


def key(layout: Layout, layers: Layers) -> str:
    """Over everything that a snapshot is made from, the source of the code that makes it included."""
    token = "0" * 6 + "." + "0" * 16
    installed = layers.base / "var/lib/dpkg/status"
    parts = [
        *layers.names(),
        key_of_file(installed) if installed.exists() else "",
        repr(layout),
        kubeadm.init_configuration(layout.first, token),
        *(kubeadm.join_configuration(peer, kubeadm.server(layout.first), token, "") for peer in layout.joined),
        *(f"{path.name}={path.read_text()}" for path in sorted(_SOURCE.glob("*.py"))),
    ]
    return key_of(parts)


def seal(layout: Layout, root: Callable[[str], Path], shell: Shell, folder: Path) -> None:
    """Stops the cluster and copies its files to `folder`/HOST. The hosts are of no use afterwards.

    root: the file system of a host, by its name.
    """
    _each(layout.joined, lambda peer: shell(peer, _STOP_NODE, ""))
    _each(layout.joined, lambda peer: shell(peer, _CHECK_CERTIFICATES, ""))
    _each(layout.controls, lambda peer: shell(peer, _STOP_CONTROLLERS, ""))
    shell(layout.first, _CLEAN, "")
    _each(layout.controls, lambda peer: shell(peer, _STOP_API_SERVER, ""))
    _each(layout.controls, lambda peer: shell(peer, _STOP_ETCD, ""))
    for peer in layout.peers:
        _copy(root(peer.name), folder / peer.name)
    _write_through(folder)


def _each(peers: list[Peer] | tuple[Peer, ...], action: Callable[[Peer], object]) -> None:
    with ThreadPoolExecutor(max_workers=len(peers)) as pool:
        list(pool.map(action, peers))


def _copy(root: Path, target: Path) -> None:
    """Without the space that etcd reserves for its log."""
    target.mkdir()
    present = [path for path in FILES if (root / path).exists()]
    if present:
        subprocess.run(["cp", "-a", "--parents", "--sparse=always", *present, str(target)], cwd=root, check=True)


def _write_through(folder: Path) -> None:
    """To the disk: a machine that loses power must not leave a folder that has its name and empty files."""
    for path in _paths(folder):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _paths(folder: Path) -> Iterable[Path]:
    yield folder
    yield from (path for path in folder.rglob("*") if not path.is_symlink() and (path.is_dir() or path.is_file()))
