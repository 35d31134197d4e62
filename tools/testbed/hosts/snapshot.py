"""A snapshot of a joined cluster: the files that `kubeadm init` and `join` left on the disk of each host.

`seal` stops a cluster that is up and copies these files, and nothing else, into one folder for each host. A host that
boots with its folder as the topmost read-only layer of its overlay is a node of the cluster again. Its containers,
pods, logs and addresses of pods belong to the boot and are not in the snapshot. Certificates, etcd and manifests name
the addresses of the hosts, so each layout has snapshots of its own (2 MB each).

Objects that describe a moment are deleted before the cluster stops: leases, events, pods, certificate requests and the
bootstrap token. The service account `default` of the namespace `default` is deleted too: the controller manager of
the next boot makes it again, and by that readiness.py knows that it works.
"""

import os
import subprocess
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.kit.cache import key_of, key_of_file
from tools.testbed.hosts import kubeadm
from tools.testbed.hosts.kubeadm import Shell
from tools.testbed.hosts.layers import Layers
from tools.testbed.hosts.layout import Layout

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
"""Paths below the root folder of a host. Workers have fewer of them, and some versions of Kubernetes too."""
_SOURCE = Path(__file__).parent

# On each host.
_STOP_NODE = f"""
set -e
systemctl stop kubelet kube-proxy
for file in $(find /etc/kubernetes/pki /var/lib/kubelet/pki -name '*.crt' -o -name '*.pem'); do
    if ! openssl x509 -noout -in "$file" -checkend {2 * LIFE_S:.0f} >/dev/null; then
        echo "$file ends too soon" >&2
        exit 1
    fi
done
"""
# On the control plane. No kubelet starts again what ends here. The names of processes are as the kernel cuts them.
_STOP_CONTROL = """
set -e
export KUBECONFIG=/etc/kubernetes/admin.conf
end() { pkill -"$1" -x "$2" || true; while pgrep -x "$2" >/dev/null; do sleep 0.02; done; }
remove() { kubectl delete --wait=false --ignore-not-found "$@"; }
end TERM 'kube-controller|kube-scheduler'
remove pods,events,leases,certificatesigningrequests --all --all-namespaces --grace-period=0 --force
remove secrets --namespace=kube-system --field-selector=type=bootstrap.kubernetes.io/token
remove serviceaccount default --namespace=default
for node in $(kubectl get nodes --output=name); do  # else each kubelet reports that its node has been rebooted
    kubectl patch "$node" --subresource=status --type=merge --patch='{"status":{"nodeInfo":{"bootID":""}}}'
done
end KILL kube-apiserver
end TERM etcd  # it closes its files
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
    """Stops the cluster, which has one control plane, and copies its files to `folder`/HOST.

    root: the file system of a host, by its name.
    """
    with ThreadPoolExecutor(max_workers=len(layout.joined)) as pool:
        list(pool.map(lambda peer: shell(peer, _STOP_NODE, ""), layout.joined))
    shell(layout.first, _STOP_CONTROL, "")
    for peer in layout.peers:
        _copy(root(peer.name), folder / peer.name)
    _write_through(folder)


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
