"""What all hosts share: the base file system, Kubernetes binaries, units, containerd's configuration and images.

Three cached folders: the base file system, an overlay layer with the files, and a containerd store in which the images
are imported already.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from tools.kit.cache import cached, forget_older, key_of, key_of_file
from tools.kit.commands import Progress, run
from tools.kit.mmdebstrap import SUITE, mmdebstrap
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.images import PAUSE, Image, kubeadm_images, write_archive

# A host: what a server installed for Kubernetes has, and python3 for Ansible.
HOST_PACKAGES = (
    "ca-certificates",
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "curl",
    "dbus",
    "iproute2",
    "ipset",
    "iptables",
    "kmod",
    "nftables",
    "openssh-server",
    "openssl",
    "procps",
    "python3",
    "runc",
    "systemd",
    "systemd-sysv",
)
HOST_BINARIES = ("kubeadm", "kubectl", "kubelet", "kube-proxy")
CNI_BIN_DIR = "/usr/lib/cni"
CNI_CONF_DIR = "/etc/cni/net.d"
_WITH_ARCHIVES = "host-store"
_SMALL = (
    "--variant=minbase",
    '--aptopt=Acquire::Languages "none"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)

# restrict_oom_score_adj: a machine without CAP_SYS_RESOURCE cannot lower it, and runc then dies with "can't get final
# child's PID from pipe". Debian keeps the CNI plugins in /usr/lib/cni.
_CONTAINERD = f"""\
version = 2

[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE}"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_BIN_DIR}"
    conf_dir = "{CNI_CONF_DIR}"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""

_KUBELET = """\
[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target containerd.service
# kubeadm writes it; before that there is nothing to start.
ConditionPathExists=/var/lib/kubelet/config.yaml

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=2

[Install]
WantedBy=multi-user.target
"""

# The drop-in of the kubeadm package.
_KUBELET_KUBEADM = """\
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \
--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""

# As a unit and with the node's identity: in a DaemonSet it would need an image with nft inside.
_KUBE_PROXY = """\
[Unit]
Description=kube-proxy
After=kubelet.service
ConditionPathExists=/etc/kubernetes/kubelet.conf

[Service]
ExecStart=/usr/bin/kube-proxy --config=/etc/kube-proxy.yaml --hostname-override=%H
Restart=always
StartLimitInterval=0
RestartSec=2

[Install]
WantedBy=multi-user.target
"""

# conntrack: the limits of the machine are not the hosts' to change.
_KUBE_PROXY_CONFIGURATION = """\
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: /etc/kubernetes/kubelet.conf}
clusterCIDR: 10.244.0.0/16,fd00:10:244::/56
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
"""

_WHERE = "needs ext4, xfs or btrfs, not a container's overlay; set READYGATE_TESTBED_DIR and XDG_CACHE_HOME"
# Arguments: options, the mount point, and the words of a command.
_MOUNT_AND_RUN = f"""
options=$1 root=$2
shift 2
mount -t overlay overlay -o "$options" "$root" || {{ echo "cannot mount an overlay on $root: {_WHERE}" >&2; exit 1; }}
exec "$@"
"""
_IMPORT = """
set -e
containerd >/dev/null 2>/tmp/containerd.log &
for _ in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.1; done
for archive in /images-*.tar; do ctr --namespace k8s.io images import "$archive"; done
kill %1; wait
"""

_FILES = {
    "etc/containerd/config.toml": _CONTAINERD,
    "etc/crictl.yaml": "runtime-endpoint: unix:///run/containerd/containerd.sock\n",
    "etc/kube-proxy.yaml": _KUBE_PROXY_CONFIGURATION,
    "etc/resolv.conf": "",  # nobody answers: a name server listed here costs a time-out per look-up
    "etc/sysctl.d/90-kubernetes.conf": "net.ipv4.ip_forward = 1\nnet.ipv6.conf.all.forwarding = 1\n",
    "etc/systemd/journald.conf.d/persistent.conf": "[Journal]\nStorage=persistent\n",
    "etc/systemd/system/kubelet.service": _KUBELET,
    "etc/systemd/system/kubelet.service.d/10-kubeadm.conf": _KUBELET_KUBEADM,
    "etc/systemd/system/kube-proxy.service": _KUBE_PROXY,
}
_LINKS = {
    f"etc/systemd/system/multi-user.target.wants/{unit}": f"/etc/systemd/system/{unit}"
    for unit in ("kubelet.service", "kube-proxy.service")
} | {
    f"etc/systemd/system/{unit}": "/dev/null"  # masked: nothing they do is wanted on a machine that lives for minutes
    for unit in (
        "apt-daily.timer",
        "apt-daily-upgrade.timer",
        "dpkg-db-backup.timer",
        "e2scrub_all.timer",
        "e2scrub_reap.service",
        "fstrim.timer",
    )
}


@dataclass(frozen=True)
class Layers:
    """Cached folders: the base file system, the layer above it, and the containerd store that hosts begin with."""

    base: Path
    kubernetes: Path
    store: Path

    @property
    def lower(self) -> list[Path]:
        """For an overlay, topmost first."""
        return [self.kubernetes, self.base]

    def names(self) -> list[str]:
        """Names of the cached folders, which contain the hash of what each is made from."""
        return [folder.parent.name for folder in (self.base, self.kubernetes, self.store)]


def shared_layers(binaries: Path, progress: Progress) -> Layers:
    """Makes those that the cache lacks. Raises BuildError."""
    base = base_layer(progress)
    return Layers(base, kubernetes_layer(binaries, progress), containerd_store(base, binaries, progress))


def base_layer(progress: Progress) -> Path:
    """Root folder of a systemd machine with sshd and containerd. Shared by all hosts: never written to."""
    settings = [*_SMALL, f"--include={','.join(HOST_PACKAGES)}"]

    def build(folder: Path) -> None:
        progress(f"making the hosts' file system (Debian {SUITE}), once")
        options, log = ["--mode=root", *settings], folder / "mmdebstrap.log"
        mmdebstrap(options, folder / "root", what="the hosts' file system", log=log, progress=progress)

    return cached("host-base", key_of([SUITE, *settings]), build, progress) / "root"


def kubernetes_layer(binaries: Path, progress: Progress) -> Path:
    """An overlay layer for a base file system: binaries, units, configuration that is the same on each host."""
    sources = {name: (binaries / name).resolve() for name in HOST_BINARIES}
    digests = {source: _digest(source) for source in set(sources.values())}
    parts = [f"{name}={digests[source]}" for name, source in sources.items()]
    key = key_of([*parts, *(f"{path}={text}" for path, text in (_FILES | _LINKS).items())])

    def build(folder: Path) -> None:
        root = folder / "root"
        first: dict[Path, str] = {}
        (root / "usr/bin").mkdir(parents=True)
        for name, source in sources.items():
            if source in first:
                (root / "usr/bin" / name).symlink_to(first[source])
            else:
                shutil.copy(source, root / "usr/bin" / name)
                first[source] = name
        for path, text in _FILES.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        for path, points_to in _LINKS.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(points_to)

    return cached("host-kubernetes", key, build, progress) / "root"


def containerd_store(base: Path, binaries: Path, progress: Progress) -> Path:
    """A /var/lib/containerd that holds kubeadm's images, unpacked by the containerd of the file system `base`."""
    images = kubeadm_images(binaries)
    key = key_of([base.parent.name, _CONTAINERD, *(_described(image) for image in images)])

    def build(folder: Path) -> None:
        progress("importing the control plane's images into a containerd store, once")
        archive = folder / "images.tar"
        write_archive(archive, images)
        (folder / "store").mkdir()
        _import(base, folder, [archive], progress)
        archive.unlink()

    return cached("host-images", key, build, progress) / "store"


def with_archives(layers: Layers, archives: Sequence[Path], progress: Progress) -> Layers:
    """The same, with a containerd store that also holds the images of these archives. Raises BuildError."""
    if not archives:
        return layers
    key = key_of([*layers.names(), *map(_digest, archives)])

    def build(folder: Path) -> None:
        progress(f"importing {', '.join(archive.name for archive in archives)} into a containerd store, once")
        copy_store(layers.store, folder / "store")
        _import(layers.base, folder, archives, progress)

    store = cached(_WITH_ARCHIVES, key, build, progress) / "store"
    forget_older(_WITH_ARCHIVES, kept=3)
    return replace(layers, store=store)


def _digest(path: Path) -> str:
    """Of the content; a file of the same size and time is not read twice."""
    about = path.stat()
    return _digest_of(path, about.st_size, about.st_mtime_ns)


@lru_cache
def _digest_of(path: Path, _size: int, _mtime_ns: int) -> str:
    return key_of_file(path)


def _described(image: Image) -> str:
    files = ", ".join(f"{path}={_digest(source)}" for path, source in image.files.items())
    return f"{image.tags} {files} {image.links} {image.entrypoint}"


def _import(base: Path, folder: Path, archives: Sequence[Path], progress: Progress) -> None:
    """Runs the containerd of `base` for a moment, with folder/store as its store, on an overlay that is thrown away."""
    for name in ("upper", "work", "root"):
        (folder / name).mkdir()
    (folder / "upper/etc/containerd").mkdir(parents=True)
    (folder / "upper/etc/containerd/config.toml").write_text(_CONTAINERD)
    options = f"lowerdir={base},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    run(
        # A mount namespace of its own that ends with this process: also where it is killed, nothing stays mounted.
        [
            *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount"),
            *("sh", "-c", _MOUNT_AND_RUN, "sh", options, str(folder / "root")),
            "systemd-nspawn",
            "--quiet",
            f"--directory={folder / 'root'}",
            f"--machine=rg-import-{folder.name[-12:-5]}",
            "--register=no",
            "--keep-unit",
            "--link-journal=no",  # else it needs this machine's ID, which containers often lack
            "--private-network",
            "--capability=all",
            "--console=pipe",
            f"--bind={folder / 'store'}:/var/lib/containerd",
            *(f"--bind-ro={archive}:/images-{number}.tar" for number, archive in enumerate(archives)),
            "/bin/bash",
            "-c",
            _IMPORT,
        ],
        what="importing images",
        log=folder / "import.log",
        progress=progress,
    )
    for name in ("upper", "work", "root"):
        shutil.rmtree(folder / name)


def copy_store(source: Path, target: Path) -> None:
    """Hard links for blobs and unpacked layers, which containerd only adds or removes; copies of its data bases."""
    linked = subprocess.run(["cp", "-al", str(source), str(target)], capture_output=True, check=False)
    if linked.returncode != 0:  # the cache is on another file system
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(target)], check=True)
        return
    for data_base in source.rglob("*.db"):
        copy = target / data_base.relative_to(source)
        copy.unlink()
        shutil.copy2(data_base, copy)


def mount_overlay(target: Path, options: str) -> None:
    """Raises HostsError, naming the likely cause."""
    done = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise HostsError(f"cannot mount an overlay on {target} ({' '.join(done.stderr.split())[-200:]}): {_WHERE}")
