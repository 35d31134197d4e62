"""Ring 3: systemd hosts on this machine, joined to one cluster by kubeadm (layout.py: which).

Guarantees:
1. `up` returns with a Ready node for each host that has joined, or raises HostsError with the cause, and then nothing
   is left running.
2. `up` and `down` remove all that an earlier run left, crashed or not, and nothing else (teardown.py).
   Each `up` gives a new cluster: nothing of an earlier one is in it, also when it starts from a snapshot.
3. One process at a time makes or removes hosts; hosts that are up are never taken away from whoever uses them.
"""

import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from tools.kit.causes import spent_on
from tools.kit.commands import BuildError, Progress
from tools.kit.pid import ProcessId
from tools.testbed.hosts import (
    access,
    kubeadm,
    layers,
    network,
    packages,
    readiness,
    snapshot,
    snapshot_cache,
    teardown,
)
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.layers import Layers
from tools.testbed.hosts.layout import ONE_CONTROL, Layout
from tools.testbed.hosts.limits import Limits
from tools.testbed.hosts.machine import Machine
from tools.testbed.hosts.network import Peer
from tools.testbed.hosts.state import RunFolder, State
from tools.testbed.shared import obstacles
from tools.testbed.shared.binaries import BinariesMissing, kube_binaries

# Long, as another set may boot beside this one: a start that fails takes every test on these hosts with it.
_BOOT_LIMIT_S = 180.0
_KUBEADM_LIMIT_S = 300.0  # above the four minutes that kubeadm waits itself: it says what for
T = TypeVar("T")


def obstacle() -> str | None:
    """Why ring 3 cannot run on this machine, in one line; None when it can."""
    if found := obstacles.of_hosts():
        return found[0]
    if wanted := packages.missing():
        return f"ring 3 lacks {', '.join(wanted)}: run python -m tools.testbed.hosts.packages"
    return None


class Hosts:
    """The cluster. `up` and `down` by whoever owns it; everything else also by who finds it up (`Hosts.found()`)."""

    def __init__(
        self,
        layout: Layout = ONE_CONTROL,
        *,
        progress: Progress = print,
        folder: Path | None = None,
        from_snapshot: bool | None = None,
        archives: Sequence[Path] = (),
    ) -> None:
        """from_snapshot: whether `up` may use what kubeadm did in an earlier start; None: what the layout says.

        archives: of images that containerd has on each host from the start.
        """
        self._archives = archives
        self._from_snapshot = layout.from_snapshot if from_snapshot is None else from_snapshot
        self.progress = progress
        self.layout = layout
        self._run = RunFolder(folder, layout.network.name)
        self.folder = self._run.path
        self.names = [peer.name for peer in layout.peers]
        self.ssh_key = self.folder / "ssh_key"
        self.ssh_config = self.folder / "ssh_config"
        self.kubeconfig = self.folder / "admin.conf"
        self._machines = {peer.name: Machine(peer, self.folder / peer.name, self._run.run_id) for peer in layout.peers}
        self._binaries: Path | None = None
        self._imported: list[Path] = []
        self.seconds: dict[str, float] = {}

    @classmethod
    def found(cls, layout: Layout = ONE_CONTROL, *, progress: Progress = print, folder: Path | None = None) -> "Hosts":
        """The hosts that are up. Raises HostsError when there are none."""
        hosts = cls(layout, progress=progress, folder=folder)
        if not hosts.running():
            raise HostsError("no hosts are up: python -m tools.testbed --ring hosts up")
        return hosts

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def running(self) -> bool:
        """Every host of a complete start still runs."""
        state = self._run.read()
        return state is not None and state.alive()

    def up(self) -> None:
        """Boots the hosts and joins them. This process owns them until `down` or `leave`. Raises HostsError."""
        if reason := obstacle():
            raise HostsError(reason)
        self._run.lock()
        try:
            if self.running():
                raise HostsError("the hosts are up already: python -m tools.testbed --ring hosts down, then try again")
            self._remove()
            self._start_or_clean()
        except BaseException:
            self._run.unlock()
            raise

    def leave(self) -> None:
        """Lets go of the hosts without ending them."""
        self._run.unlock()

    def down(self) -> None:
        """Ends the hosts, as by pulling the plug, and removes all that was made for them. May be called twice."""
        self._run.lock()
        try:
            self._remove()
        finally:
            self._run.unlock()

    def renew(self) -> None:
        """Replaces the cluster by a new one, as `down` and `up` would: nothing is left of the earlier one.

        The caller owns the hosts. Addresses, credentials and paths stay; the key for SSH is another one in its file.
        """
        self._remove()
        self._start_or_clean()

    def restart(self, name: str) -> None:
        """Pulls a host's plug and boots it again, with what it had on its disk. Also by who finds the hosts up."""
        state, machine = self._run.read(), self._machines[name]
        if state is None or not state.alive():
            raise HostsError("no hosts are up")
        teardown.pull_plug(state.processes[name], machine, state.cgroups)
        state.processes[name] = machine.boot()
        self._run.write(state)
        self._wait_booted(machine.peer, state.processes[name])

    def _timed(self, what: str, step: Callable[[], T]) -> T:
        started = time.monotonic()
        result = step()
        self.seconds[what] = time.monotonic() - started
        self.progress(f"{what}: {self.seconds[what]:.1f} s")
        return result

    def _start_or_clean(self) -> None:
        """Removes all of a start that fails."""
        started = time.monotonic()
        try:
            self._start()
        except BaseException as e:
            if isinstance(e, Exception):  # whoever interrupts it knows why it ended
                teardown.keep_consoles(self._run, self._machines.values())
            self._remove()
            raise
        self.seconds["up"] = time.monotonic() - started
        nodes = f"{len(self.layout.joined)} Ready nodes"
        self.progress(f"{len(self.names)} hosts, {nodes} after {self.seconds['up']:.1f} s")

    def _start(self) -> None:
        try:
            self._binaries = kube_binaries(self.progress)
            shared = layers.shared_layers(self._binaries, self.progress)
            key = snapshot.key(self.layout, shared)
            shared = layers.with_archives(shared, self._archives, self.progress)
            if self._from_snapshot:
                make = partial(self._make_snapshot, shared)
                files = snapshot_cache.obtain(self.layout.network.name, key, make, self.progress)
                state = self._start_from(shared, files)
            else:
                state = self._start_with_kubeadm(shared)
        except (BinariesMissing, BuildError) as e:
            raise HostsError(str(e)) from e
        self._imported = [*self._archives]
        state.phase = "up"
        self._run.write(state)

    def _start_with_kubeadm(self, shared: Layers) -> State:
        since = time.time()
        with spent_on("host start"):
            state = self._boot(shared, None)
        with spent_on("kubeadm"):
            self._timed("kubeadm", lambda: kubeadm.start(self.layout, self._shell, self.progress))
            self._wait_usable(since)
        return state

    def _start_from(self, shared: Layers, files: Path) -> State:
        """files: of a snapshot. One whose hosts do not become Ready is not used again."""
        since = time.time()
        try:
            with spent_on("host start"):
                state = self._boot(shared, files)
                self._wait_usable(since)
        except HostsError:
            snapshot_cache.discard(files)
            raise
        snapshot_cache.tidy()
        return state

    def _make_snapshot(self, shared: Layers, folder: Path) -> None:
        self.progress("making a snapshot of a new cluster, once")
        try:
            self._start_with_kubeadm(shared)
            with spent_on("kubeadm"):
                self._timed("snapshot", lambda: snapshot.seal(self.layout, self.root, self._shell, folder))
        finally:
            self._remove()

    def _boot(self, shared: Layers, files: Path | None) -> State:
        """files: of a snapshot. Returns when systemd has started everything on each host."""
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o700)  # keys
        state = State(since=datetime.now(UTC).isoformat(timespec="seconds"))
        self._run.write(state)
        Limits(self.folder.parent).raise_for(self.folder.name)
        public_key = access.make_key(self.ssh_key)
        host_key = (shared.base / "etc/ssh/ssh_host_ed25519_key.pub").read_text().strip()
        access.write_ssh_config(self.ssh_config, self.ssh_key, host_key, self.layout.peers)
        network.make(self.layout.network, self.layout.peers)
        names = kubeadm.names(self.layout)

        def prepare(peer: Peer) -> None:
            lower = [*([files / peer.name] if files else []), *shared.lower]
            self._machines[peer.name].prepare(lower, shared.store, self.layout.peers, public_key, names)

        self._timed("file systems", lambda: self._each(prepare))
        for name, machine in self._machines.items():
            state.cgroups += map(str, machine.make_groups())
            self._run.write(state)  # before the boot: what a crash leaves running is found by its control group
            state.processes[name] = machine.boot()
            self._run.write(state)
        self._timed("boot", lambda: self._each(lambda peer: self._wait_booted(peer, state.processes[peer.name])))
        return state

    def _wait_usable(self, since: float) -> None:
        """since: seconds since 1970, before the boot."""
        admin = self.root(self.layout.first.name) / "etc/kubernetes/admin.conf"
        self.kubeconfig.write_text(kubeadm.from_outside(self.layout, admin.read_text()))
        self.kubeconfig.chmod(0o600)
        names = [peer.name for peer in self.layout.joined]
        api = access.AdminApi(self.kubeconfig, self.folder)
        self._timed("nodes Ready", lambda: readiness.wait(api, names, since))

    def _each(self, action: Callable[[Peer], None]) -> None:
        with ThreadPoolExecutor(max_workers=len(self.names)) as pool:
            list(pool.map(action, self.layout.peers))

    def _wait_booted(self, peer: Peer, process: ProcessId) -> None:
        deadline = time.monotonic() + _BOOT_LIMIT_S
        said = ""
        while time.monotonic() < deadline and process.alive():
            # `degraded` is a host with a failed unit: worth a look, not worth a refusal.
            done = self.ssh(peer.name, "systemctl is-system-running --wait", timeout_s=_BOOT_LIMIT_S, check=False)
            said = done.stdout.strip() or done.stderr.strip()
            if done.stdout.strip() in {"running", "degraded"}:
                return
            time.sleep(0.2)
        console = self._machines[peer.name].console.read_text(errors="replace").strip().splitlines()[-2:]
        raise HostsError(
            f"{peer.name} did not boot: {said or 'no answer by SSH'}; its console ends: {' / '.join(console)}"
        )

    def _remove(self) -> None:
        teardown.remove(self._run, self.layout.network, list(self._machines.values()))

    def join(self, name: str) -> str:
        """Joins a spare host as a control plane, as its operator would. Returns kubeadm's words, raises HostsError."""
        return kubeadm.join_control(self._machines[name].peer, self.layout, self._shell)

    def address(self, name: str) -> str:
        return self._machines[name].peer.address

    @contextmanager
    def away(self, name: str) -> Iterator[None]:
        """Without a network meanwhile: for the others the host is dead, whatever still runs on it."""
        network.plug(self._machines[name].peer, into=False)
        try:
            yield
        finally:
            network.plug(self._machines[name].peer, into=True)

    def root(self, name: str) -> Path:
        """The host's file system as this machine sees it: for looking at files; change them by `ssh`."""
        return self._machines[name].root

    def ssh(
        self,
        name: str,
        command: str | Sequence[str],
        *,
        stdin: str | IO[bytes] | None = None,
        timeout_s: float = 60.0,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a shell command (or an argument list) as root. Raises HostsError when it fails and `check` is set."""
        line = command if isinstance(command, str) else shlex.join(command)
        argv = ["ssh", "-F", str(self.ssh_config), name, line]
        given: dict[str, Any] = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin or subprocess.DEVNULL}
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False, **given)
        except subprocess.TimeoutExpired as e:
            raise HostsError(f"{name}: {line.splitlines()[0][:80]} took longer than {timeout_s:.0f} s") from e
        if check and done.returncode != 0:
            said = " / ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
            raise HostsError(f"{name}: {line.splitlines()[0][:80]} failed with code {done.returncode}: {said[-600:]}")
        return done

    def _shell(self, peer: Peer, command: str, text: str) -> str:
        done = self.ssh(peer.name, command, stdin=text, timeout_s=_KUBEADM_LIMIT_S, check=False)
        if done.returncode != 0:
            log = self.folder.with_name("kubeadm-failed.log")
            log.write_text(f"{peer.name}: {command}\n{done.stdout}{done.stderr}")
            last = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
            raise HostsError(
                f"{peer.name}: {command[-60:]} failed with code {done.returncode}: {last} (whole output: {log})"
            )
        return done.stdout

    def kubectl(
        self, *arguments: str, stdin: str | None = None, timeout_s: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """kubectl of this machine with the admin's kubeconfig. Raises HostsError when it fails and `check` is set."""
        try:
            done = subprocess.run(
                [self.kubectl_path(), f"--kubeconfig={self.kubeconfig}", *arguments],
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as e:
            raise HostsError(f"kubectl {' '.join(arguments)[:120]} took longer than {timeout_s:.0f} s") from e
        if check and done.returncode != 0:
            raise HostsError(f"kubectl {' '.join(arguments)[:120]} failed: {done.stderr.strip()[-400:]}")
        return done

    def kubectl_path(self) -> str:
        if self._binaries is None:
            self._binaries = kube_binaries(self.progress)
        return str(self._binaries / "kubectl")

    def import_image(self, archive: Path) -> None:
        """Puts the images of a docker or OCI archive into containerd on every host, unless they began with it."""
        if archive in self._imported:
            return

        def one(peer: Peer) -> None:
            with archive.open("rb") as file:
                self.ssh(peer.name, "ctr --namespace k8s.io images import -", stdin=file, timeout_s=180.0)

        self._timed(f"import of {archive.name}", lambda: self._each(one))

    def inventory(self, controls: Sequence[str] = ()) -> str:
        """For Ansible: groups control_plane (of all that have joined, or of these) and workers, by `ssh_config`."""
        chosen = [self._machines[name].peer for name in controls] or self.layout.controls
        return access.inventory(self.ssh_config, control_plane=chosen, workers=self.layout.workers)

    def collect_logs(self, target: Path) -> None:
        """Journals, pod logs, static pod manifests and the cluster's objects, as far as they can be had."""
        target.mkdir(parents=True, exist_ok=True)

        def one(peer: Peer) -> None:
            with suppress(HostsError):
                journal = self.ssh(peer.name, "journalctl --boot --no-pager --output=short-precise").stdout
                (target / f"{peer.name}-journal.log").write_text(journal)
            for folder in ("var/log/pods", "etc/kubernetes/manifests"):
                with suppress(OSError, shutil.Error):
                    shutil.copytree(
                        self.root(peer.name) / folder,
                        target / peer.name / Path(folder).name,
                        dirs_exist_ok=True,
                        ignore_dangling_symlinks=True,
                    )

        self._each(one)
        for what in ("nodes", "pods", "events"):
            with suppress(HostsError, BinariesMissing):
                text = self.kubectl("get", what, "--all-namespaces", "--output=yaml", timeout_s=20.0).stdout
                (target / f"{what}.yaml").write_text(text)
