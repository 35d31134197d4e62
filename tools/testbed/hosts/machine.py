"""One host: Debian with systemd, booted by systemd-nspawn on an overlay, with its own network and control groups."""

import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from tools.kit.pid import ProcessId
from tools.testbed.hosts import cgroups
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.layers import CNI_CONF_DIR, copy_store, mount_overlay
from tools.testbed.hosts.network import Peer

_NSPAWN_STATE = Path("/run/systemd/nspawn")
# Enters each group, then becomes systemd-nspawn: so nothing but the host is ever inside.
_ENTER_AND_RUN = (
    'for group; do [ "$group" = -- ] && break; echo $$ > "$group/cgroup.procs" || exit 1; shift; done; shift; exec "$@"'
)


class Machine:
    """The folders of one host below `folder`; `run_id` keeps the names of two runs on one machine apart."""

    def __init__(self, peer: Peer, folder: Path, run_id: str) -> None:
        self.peer = peer
        self.folder = folder
        self.root = folder / "root"
        self.console = folder / "console.log"
        self._run_id = run_id
        self._groups: cgroups.Groups | None = None

    def make_groups(self) -> list[Path]:
        """Creates the control groups and returns their folders: whatever of this host runs is in them."""
        self._groups = cgroups.make(f"readygate-{self._run_id}/{self.peer.name}", self.folder / "cgroup")
        return self._groups.folders

    def find_groups(self, known: list[str]) -> list[Path]:
        """The groups of an earlier boot, of all those that a run has made."""
        bind = self.folder / "cgroup"
        mine = [Path(folder) for folder in known if Path(folder).name == self.peer.name]
        self._groups = cgroups.Groups(mine, bind if bind.exists() else None)
        return mine

    @property
    def name(self) -> str:
        return f"rg-{self._run_id}-{self.peer.name}"

    def prepare(
        self, layers: list[Path], store: Path, peers: list[Peer], public_key: str, names: Mapping[str, str]
    ) -> None:
        """Mounts the file system (topmost layer first) and writes what is this host's own.

        names: what it calls by name beside `peers` -> address.
        """
        upper, work, containerd = self.folder / "upper", self.folder / "work", self.folder / "containerd"
        for folder in (upper, work, self.root):
            folder.mkdir(parents=True)
        lower = ":".join(map(str, layers))
        mount_overlay(self.root, f"lowerdir={lower},upperdir={upper},workdir={work}")
        copy_store(store, containerd)
        known = {**{peer.name: peer.address for peer in peers}, **names}
        lines = "".join(f"{address} {name}\n" for name, address in known.items())
        self._write("etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{lines}")
        self._write("etc/hostname", f"{self.peer.name}\n")
        self._write("etc/machine-id", f"{uuid.uuid5(uuid.NAMESPACE_DNS, self.name).hex}\n")
        # For root alone, as Calico and Cilium write theirs.
        conflist = cni_configuration(self.peer)
        self._write(f"{CNI_CONF_DIR.lstrip('/')}/10-bridge.conflist", conflist, mode=0o600)
        self._write("root/.ssh/authorized_keys", public_key, mode=0o600)

    def _write(self, path: str, text: str, mode: int = 0o644) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def boot(self) -> ProcessId:
        """Starts systemd-nspawn, which outlives this process. After `prepare` and `make_groups`."""
        if self._groups is None:
            raise HostsError(f"{self.peer.name} has no control groups yet")
        binds = ["--bind=/dev/kmsg", f"--bind={self.folder / 'containerd'}:/var/lib/containerd"]
        if self._groups.bind:
            binds.append(f"--bind={self._groups.bind}:/sys/fs/cgroup")
        nspawn = [
            "systemd-nspawn",
            f"--directory={self.root}",
            f"--machine={self.name}",
            f"--hostname={self.peer.name}",
            "--boot",
            "--register=no",
            "--keep-unit",
            "--link-journal=no",  # else it needs this machine's ID, which containers often lack
            f"--network-namespace-path=/run/netns/{self.peer.namespace}",
            "--capability=all",
            "--system-call-filter=@keyring bpf perf_event_open",
            "--console=pipe",
            *binds,
        ]
        with self.console.open("wb") as console:
            started = subprocess.Popen(
                ["/bin/sh", "-c", _ENTER_AND_RUN, "sh", *map(str, self._groups.folders), "--", *nspawn],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                env={**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "yes"},
                start_new_session=True,
            )
        process = ProcessId.of(started.pid)
        if process is None:
            raise HostsError(f"{self.peer.name} ended as it began: see {self.console}")
        return process

    def forget(self) -> None:
        """Removes what systemd-nspawn leaves of a machine whose plug was pulled."""
        for folder in ("propagate", "unix-export"):
            shutil.rmtree(_NSPAWN_STATE / folder / self.name, ignore_errors=True)


def cni_configuration(peer: Peer) -> str:
    ranges, routes = f'[[{{"subnet": "{peer.pod_subnet}"}}]]', f'[{{"dst": "{peer.network.everywhere}"}}]'
    return f"""{{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [
    {{
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "ipMasq": true,
      "hairpinMode": true,
      "ipam": {{"type": "host-local", "ranges": {ranges}, "routes": {routes}}}
    }},
    {{"type": "portmap", "capabilities": {{"portMappings": true}}}}
  ]
}}
"""
