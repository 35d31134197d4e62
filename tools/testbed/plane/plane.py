"""Ring 2: a real control plane on loopback, without root.

etcd, kube-apiserver, kube-controller-manager and kube-scheduler, each a process of this user on free ports, in a folder
of their own: several planes may run at once. Nodes are whoever registers: agents in `kubelet` mode, or bare Node
objects.
"""

import contextlib
import json
import re
import signal
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.kit import kubeconfig
from tools.kit.causes import spent_on
from tools.kit.child import Child, ProcessError
from tools.kit.ports import free_port
from tools.kit.waiting import wait_for
from tools.testbed.plane import identities, scheduler_config
from tools.testbed.plane.loopback import answers, read
from tools.testbed.plane.pki import Authority
from tools.testbed.shared.api import Api, ApiError
from tools.testbed.shared.binaries import Progress, kube_binaries
from tools.testbed.shared.runs import Run

READY_WITHIN_S = 150.0
ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER = CONTROL_PLANE = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
)
# Measured with a hundred nodes: a fifth less processor time, a quarter more memory.
THRIFTY = {"GOGC": "400", "GOMAXPROCS": "1"}
ETCD_BYTES = 512 << 20
NODE_NAMES = tuple(f"node-{number}" for number in range(1, 17))


class Plane:
    """One control plane. `with Plane() as plane`, or up() and down(); both may be called twice.

    nodes: names that have a node identity by token; other identities get a certificate (`kubeconfig_for`).
    node_lifecycle: the controller manager taints nodes whose Lease is not renewed for `node_monitor_grace_s`; without
    it, bare Node objects stay as they were made, untainted.
    without_controllers: of the controller manager, such as those whose work a test does itself.
    scheduler: False leaves its start to start_scheduler().
    lasting: the plane stays when this process ends, under `name`, until the next up() or down() of that name.
    thrifty: its programs trade memory and parallelism for processor time. Not for benchmarks.
    etcd_bytes: the most that etcd may store.
    """

    def __init__(
        self,
        name: str = "plane",
        *,
        nodes: Sequence[str] = NODE_NAMES,
        node_lifecycle: bool = False,
        node_monitor_grace_s: int = 50,
        without_controllers: Sequence[str] = (),
        scheduler: bool = True,
        lasting: bool = False,
        thrifty: bool = False,
        etcd_bytes: int = ETCD_BYTES,
        progress: Progress = lambda _: None,
    ):
        self.run = Run(name, lasting=lasting)
        self.folder = self.run.folder
        self.kubeconfig = self.folder / f"{identities.ADMIN}.kubeconfig"
        self.start_s = 0.0
        self._nodes = nodes
        self._node_lifecycle = node_lifecycle
        self._node_monitor_grace_s = node_monitor_grace_s
        self._without_controllers = tuple(without_controllers)
        self._scheduler = scheduler
        self._scheduler_config = ""
        self._environ = THRIFTY if thrifty else {}
        self._etcd_bytes = etcd_bytes
        self.scheduler_url = ""  # of the one that runs, where it serves /configz and /metrics
        self._progress = progress
        self._processes: dict[str, Child] = {}
        self._tokens: dict[str, str] = {}

    @property
    def logs(self) -> Path:
        return self.run.logs

    # ---- life

    def up(self) -> Self:
        """Returns when pods can be created and scheduled. Raises ProcessError, BinariesMissing."""
        if self._processes:
            return self
        self._bin = kube_binaries(self._progress)
        started = time.monotonic()
        with spent_on("control plane start"):
            self.run.begin()
            try:
                self._start()
            except BaseException:
                self.down()
                raise
        self.start_s = time.monotonic() - started
        self._progress(f"control plane ready after {self.start_s:.1f} s: {self.server}")
        return self

    def down(self) -> None:
        """Ends all that this plane started, first what was started through its run (agents, an extender)."""
        self.run.end_all_but(CONTROL_PLANE)
        self.run.kill(CONTROL_PLANE)  # their data are thrown away with them
        for process in self._processes.values():
            process.stop()
        self._processes.clear()
        self.run.finish()

    def __enter__(self) -> Self:
        return self.up()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    def stands(self) -> bool:
        """All components run, whoever started them."""
        processes = self.run.ledger.processes
        return all(name in processes and processes[name].alive() for name in CONTROL_PLANE)

    def check(self) -> None:
        """Raises ProcessError when a component ended by itself."""
        for process in self._processes.values():
            process.check()

    # ---- use

    @property
    def kubectl(self) -> Path:
        return kube_binaries(self._progress) / "kubectl"

    def kubeconfig_for(self, user: str, groups: Sequence[str] = (), *, server: str | None = None) -> Path:
        """A kubeconfig file of that user; by token for those known at the start, else by a client certificate.

        server: another address of the same API server, such as a proxy's.
        """
        if user in self._tokens:
            credential = kubeconfig.token_user(self._tokens[user])
        else:
            credential = kubeconfig.certificate_user(*self._authority.client(user, tuple(groups)))
        name = user.replace(":", "-") + ("" if server is None else f"-{server.rpartition(':')[2]}")
        return kubeconfig.write(
            self.folder / f"{name}.kubeconfig",
            server=server or self.server,
            cluster=kubeconfig.authority_file(self._authority.certificate),
            user=credential,
        )

    def token_of(self, user: str) -> str:
        """Of a user known at the start."""
        return self._tokens[user]

    def kubeconfig_for_node(self, name: str) -> Path:
        identity = identities.node(name)
        return self.kubeconfig_for(identity.user, identity.groups)

    def kubeconfig_for_extender(self, *, server: str | None = None) -> Path:
        return self.kubeconfig_for(identities.EXTENDER, server=server)

    # ---- kube-scheduler

    def scheduler_config(self, extenders: list[dict[str, object]], name: str = "scheduler", **options: object) -> Path:
        """A configuration file for start_scheduler; options as of scheduler_config.write."""
        return scheduler_config.write(
            self.folder / f"{name}.json",
            kubeconfig=self.kubeconfig_for("system:kube-scheduler"),
            extenders=extenders,
            **options,
        )

    def start_scheduler(self, config: Path | None = None, name: str = SCHEDULER) -> None:
        """Returns when it is ready. Without a configuration: the one of no extender. name: another one's, beside it."""
        port = free_port()
        config = config or self.scheduler_config([], "scheduler-plain")
        certificate, key = self._serving
        process = self._launch(
            name,
            [
                f"--config={config}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                "--authentication-skip-lookup=true",
                # Nobody can show who they are to it, so what tests read is for all.
                "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics,/configz",
            ],
            SCHEDULER,
        )
        self.scheduler_url = f"https://127.0.0.1:{port}"
        if name == SCHEDULER:
            self._scheduler_config = config.read_text()
        process.wait_ready(lambda: answers(f"{self.scheduler_url}/readyz"), timeout_s=READY_WITHIN_S)

    def scheduler_metrics(self) -> str:
        """What kube-scheduler serves at /metrics, "" without an answer."""
        return read(f"{self.scheduler_url}/metrics") or ""

    def scheduler_knows(self) -> tuple[int, int]:
        """How many nodes, and how many pods that are bound, kube-scheduler knew at most a second ago."""
        text = self.scheduler_metrics()
        nodes, pods = (
            re.search(rf'^scheduler_cache_size{{type="{kind}"}} (\d+)$', text, re.MULTILINE)
            for kind in ("nodes", "pods")
        )
        return int(nodes[1]) if nodes else 0, int(pods[1]) if pods else 0

    def scheduler_log(self) -> str:
        """What kube-scheduler has logged since the plane's start."""
        return (self.logs / f"{SCHEDULER}.log").read_text(errors="replace")

    def stop_scheduler(self, name: str = SCHEDULER) -> None:
        process = self._processes.pop(name, None)
        if process:
            process.stop()

    def kill_scheduler(self, name: str = SCHEDULER) -> None:
        """As a crash would."""
        self._processes.pop(name).kill()

    def scheduler_has(self, config: Path) -> bool:
        """Whether it runs, by a configuration that is the same."""
        return SCHEDULER in self._processes and self._scheduler_config == config.read_text()

    def restart_scheduler(self, config: Path | None = None) -> None:
        self.stop_scheduler()
        self.start_scheduler(config)

    # ---- faults

    def stop_api_server(self) -> None:
        """At once, as a crash would: nobody is told, all connections break."""
        self._processes.pop(API_SERVER).kill()

    def start_api_server(self) -> None:
        """Again, at the same address, with what etcd holds. Returns when it is ready."""
        self._launch(API_SERVER, self._api_server_arguments).wait_ready(self.api.ready, timeout_s=READY_WITHIN_S)

    def compact_etcd(self) -> None:
        """etcd forgets all history: a list's next page and a watch from an older version are answered with 410."""
        self._ask_etcd("kv/compaction", {"revision": self._ask_etcd("kv/range", {"key": "AA=="})["header"]["revision"]})

    @contextlib.contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """A component that is there and does nothing (SIGSTOP)."""
        process = self._processes[name]
        process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.signal(signal.SIGCONT)

    def _ask_etcd(self, what: str, question: dict[str, object]) -> dict[str, Any]:
        request = urllib.request.Request(f"{self._etcd}/v3/{what}", json.dumps(question).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)

    # ---- the other components

    def _start(self) -> None:
        self._authority = Authority(self.folder / "pki")
        self._serving = self._authority.serving("serving")
        self._etcd = self._start_etcd()
        self._prepare_api_server(self._etcd)
        self.start_api_server()
        with ThreadPoolExecutor(2) as pool:  # both need a second or two to read what there is
            starts = [self._start_controller_manager, *([self.start_scheduler] if self._scheduler else [])]
            for done in [pool.submit(start) for start in starts]:
                done.result()
        identities.grant_extender(self.api)
        # Without it no pod can be created in that namespace; the controller manager makes it.
        if not wait_for(lambda: self._has_service_account("default"), timeout_s=READY_WITHIN_S):
            raise ProcessError(f"the controller manager made no service account ({self.logs})")

    def _launch(self, name: str, arguments: Sequence[str], program: str = "") -> Child:
        """A component, started and not yet ready; known by its name from now on. program: where it has another one."""
        argv = [self._bin / (program or name), *arguments]
        process = self._processes[name] = self.run.process(name, argv, environ=self._environ)
        process.start()
        return process

    def _start_etcd(self) -> str:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        process = self._launch(
            ETCD,
            [
                f"--data-dir={self.run.volatile() / 'etcd'}",
                "--unsafe-no-fsync",
                # Its data may be in memory. What it keeps for a server that lags behind is for nobody here.
                f"--quota-backend-bytes={self._etcd_bytes}",
                "--snapshot-count=1000",
                "--max-wals=1",
                "--max-snapshots=1",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--log-level=warn",
            ],
        )
        process.wait_ready(lambda: answers(f"{client}/readyz"), timeout_s=READY_WITHIN_S)
        return client

    def _prepare_api_server(self, etcd: str) -> None:
        port = free_port()
        self.server = f"https://127.0.0.1:{port}"
        text, self._tokens = identities.token_file(identities.standard(self._nodes))
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(text)
        public, self._service_account_key = self._authority.service_account_keys()
        certificate, key = self._serving
        arguments = [
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self._authority.certificate}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={public}",
            f"--service-account-signing-key-file={self._service_account_key}",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
        ]
        if not self._node_lifecycle:
            # It taints every new node as not ready, for the node lifecycle controller to lift: here nobody would.
            arguments.append("--disable-admission-plugins=TaintNodesByCondition")
        self._api_server_arguments = arguments
        self.kubeconfig_for(identities.ADMIN)
        self.api = Api(self.server, ca=self._authority.certificate, token=self._tokens[identities.ADMIN])

    def use_controllers(self, *, without: Sequence[str] = ()) -> None:
        """Restarts the controller manager without these controllers, unless it runs so."""
        if tuple(without) == self._without_controllers:
            return
        self._processes.pop(CONTROLLER_MANAGER).stop()
        self._without_controllers = tuple(without)
        self._start_controller_manager()

    def _start_controller_manager(self) -> None:
        port = free_port()
        certificate, key = self._serving
        without = [*self._without_controllers, *([] if self._node_lifecycle else ["node-lifecycle-controller"])]
        process = self._launch(
            CONTROLLER_MANAGER,
            [
                f"--kubeconfig={self.kubeconfig_for('system:kube-controller-manager')}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--tls-cert-file={certificate}",
                f"--tls-private-key-file={key}",
                "--authentication-skip-lookup=true",
                f"--root-ca-file={self._authority.certificate}",
                f"--service-account-private-key-file={self._service_account_key}",
                "--use-service-account-credentials=true",
                "--leader-elect=false",
                # By default 20: seconds pass until it has made its controllers' accounts and the namespaces'.
                "--kube-api-qps=300",
                "--kube-api-burst=600",
                f"--controllers={','.join(['*', *(f'-{name}' for name in without)])}",
                "--node-monitor-period=1s",
                f"--node-monitor-grace-period={self._node_monitor_grace_s}s",
            ],
        )
        process.wait_ready(lambda: answers(f"https://127.0.0.1:{port}/healthz"), timeout_s=READY_WITHIN_S)

    def _has_service_account(self, namespace: str) -> bool:
        try:
            self.api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        except ApiError as e:
            if e.status == 404:
                return False
            raise
        return True

    def wait_namespace(self, namespace: str, *, timeout_s: float = 60.0) -> None:
        """Until pods can be created there."""
        if not wait_for(lambda: self._has_service_account(namespace), timeout_s=timeout_s):
            raise ProcessError(f"namespace {namespace} has no service account after {timeout_s:.0f} s ({self.logs})")
