"""The cluster that is measured: readygate by its playbooks, pods and service, and what the checks look at."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.build import TAG, readygate_image
from tests.hosts.conftest import with_image
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import ansible_for
from tests.hosts.deployment.playbook import Ansible
from tools.bench.faults import cost, plan
from tools.bench.processes import MeasurementError
from tools.faults.network import DNS
from tools.faults.stalls import PROC as STALLS
from tools.faults.tables import PROC
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import chosen
from tools.testbed.shared import nameserver

UNIT = "readygate-node.service"
SITE, PLUGIN = "site.yml", "node-plugin.yml"
REMOVALS = ("node-plugin-uninstall.yml", "uninstall.yml")
_NAMES = "kubernetes.default.svc.cluster.local=10.96.0.1"
_SERVICES = "/api/v1/namespaces/kube-system/services"
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"
_DNS = "readygate-bench-dns"
_MOST = {"cap": False, "storm": False, "gates": [{"damping": False}]}


@dataclass(frozen=True)
class Stage:
    hosts: Hosts
    api: AdminApi
    ansible: Ansible

    @property
    def workers(self) -> list[str]:
        return [peer.name for peer in self.hosts.layout.workers]

    def install(self, profile: str, *, anew: bool) -> None:
        """anew: the service alone, with another profile. Raises MeasurementError."""
        if not anew:
            with_image(self.hosts)
        # The service first: pods whose condition it is to write are not Ready before, and the play waits for them.
        for playbook in (PLUGIN,) if anew else (PLUGIN, SITE):
            self._play(playbook, self._variables(profile))

    def hear_agents(self, profile: str, *, hear: bool) -> None:
        """Whether the extender minds the agents' heartbeats, which come all the same. Raises MeasurementError."""
        deaf = {"readygate_extender_configuration": {**_MOST, "heartbeat": {"agents": None}}}
        self._play(SITE, {**self._variables(profile), **({} if hear else deaf)})

    def remove(self) -> None:
        for playbook in REMOVALS:
            self.ansible.run(playbook)

    def _play(self, playbook: str, variables: dict[str, Any]) -> None:
        try:
            run = self.ansible.run(playbook, **variables)
        except subprocess.TimeoutExpired as e:
            raise MeasurementError(f"{playbook} has not ended after {e.timeout:.0f} s") from e
        if run.code != 0:
            raise MeasurementError(f"{playbook} failed: {run.told()[-600:]}")

    def _variables(self, profile: str) -> dict[str, Any]:
        """Two of three nodes may close at once, and again and again: no cap, no storm, no damping. The pods check
        nothing, so that what closes a node is the service's word."""
        addresses = {name: self.hosts.address(name) for name in self.hosts.names}
        return {
            "readygate_enforcement": "armed",
            "readygate_extender_configuration": _MOST,
            "readygate_agent_speaker": "node",
            "readygate_agent_profile": profile,
            "readygate_agent_cni_check": False,
            "readygate_agent_checks": [{"name": "nothing", "exec": {"command": ["true"]}}],
            "readygate_agent_max_unavailable": "100%",
            "readygate_node_archives": [str(readygate_image(self.hosts.progress))],
            "readygate_node_serial": ["100%"],
            "readygate_node_min_ready_seconds": 2,
            "readygate_node_heartbeat": True,
            "readygate_node_cni_check": True,
            "readygate_node_cni_bin_dirs": ["/usr/lib/cni"],
            "readygate_node_checks": plan.checks(addresses),
            "readygate_node_host_paths": [PROC, STALLS],
        }

    def cost(self, node: str, seconds: float) -> tuple[float, float]:
        """(MiB at the highest, thousandths of a core) of the service on a node, over so many seconds, with all that its
        checks start."""
        return cost.read(self.hosts.ssh(node, cost.command(UNIT, seconds), timeout_s=seconds + 60).stdout)


@contextmanager
def on_hosts(folder: Path, progress: Callable[[str], None], *, keep: bool) -> Iterator[Stage]:
    """On the hosts that are up, else on hosts made for this. keep: leaves readygate and hosts as they are."""
    hosts = Hosts(chosen(), progress=lambda text: progress(f"hosts: {text}"))
    found = hosts.running()
    if not found:
        hosts.up()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Stage(hosts, AdminApi(hosts.kubeconfig, folder), ansible_for(hosts, TAG, folder, "bench-faults"))
        try:
            _prepare(stage)
            yield stage
        finally:
            if found and not keep:
                stage.remove()
                _clear(stage)
    finally:
        if not found and not keep:
            hosts.down()


def _prepare(stage: Stage) -> None:
    """What the checks look at, on each host, and a name server behind the usual Service."""
    healed = "\n".join(line for fault in plan.TRIED.values() for line in fault.heal)
    for name in stage.hosts.names:
        stage.hosts.ssh(name, f"{healed}\nmkdir -p /var/lib/cni/networks")
    first = stage.hosts.layout.first
    stage.hosts.ssh(first.name, "cat > /root/nameserver.py", stdin=Path(nameserver.__file__).read_text())
    unit = f"systemd-run --unit={_DNS} --collect --quiet python3 /root/nameserver.py {first.address} 53 {_NAMES}"
    stage.hosts.ssh(first.name, f"systemctl stop {_DNS} 2>/dev/null; {unit}")
    stage.api.delete(f"{_SERVICES}/{_DNS}")  # of a run that was killed: its address is given out
    ports = [{"name": p.lower(), "protocol": p, "port": 53} for p in ("UDP", "TCP")]
    stage.api.create_unless_there(_SERVICES, {"metadata": {"name": _DNS}, "spec": {"clusterIP": DNS, "ports": ports}})
    stage.api.create_unless_there(
        _SLICES,
        {
            "metadata": {"name": _DNS, "labels": {"kubernetes.io/service-name": _DNS}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [first.address]}],
            "ports": ports,
        },
    )


def _clear(stage: Stage) -> None:
    try:
        stage.api.delete(f"{_SERVICES}/{_DNS}")
        stage.api.delete(f"{_SLICES}/{_DNS}")
        stage.hosts.ssh(stage.hosts.layout.first.name, f"systemctl stop {_DNS}; rm -f /root/nameserver.py", check=False)
        for name in stage.hosts.names:
            stage.hosts.ssh(name, "\n".join(line for fault in plan.TRIED.values() for line in fault.clear), check=False)
    except HostsError as e:
        stage.hosts.progress(f"not all was cleared: {e}")
