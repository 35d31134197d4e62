"""What the hosts promise to everything that is tested on them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared.binaries import kubernetes_version

MANIFESTS = "/etc/kubernetes/manifests"


def test_all_three_nodes_are_ready_and_run_the_same_kubernetes(hosts):
    nodes = json.loads(hosts.kubectl("get", "nodes", "--output=json").stdout)["items"]
    ready = {
        node["metadata"]["name"]: (condition["status"], node["status"]["nodeInfo"]["kubeletVersion"])
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    }
    assert dict.fromkeys(hosts.names, ("True", kubernetes_version())) == ready


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"])
def test_the_control_plane_is_static_pods_of_the_kubelet(hosts, component):
    assert hosts.ssh("control-1", f"test -f {MANIFESTS}/{component}.yaml", check=False).returncode == 0
    hosts.kubectl(
        "wait", "pod", f"{component}-control-1", "--namespace=kube-system", "--for=condition=Ready", "--timeout=60s"
    )
    pod = json.loads(
        hosts.kubectl("get", "pod", f"{component}-control-1", "--namespace=kube-system", "--output=json").stdout
    )
    assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"


@pytest.mark.parametrize("name", ["control-1", "worker-1", "worker-2"])
def test_a_host_is_a_systemd_machine_that_knows_its_peers(hosts, name):
    assert hosts.ssh(name, "systemctl is-system-running", check=False).stdout.strip() == "running"
    assert name == hosts.ssh(name, "hostname").stdout.strip()
    for peer in hosts.names:
        assert hosts.address(peer) in hosts.ssh(name, f"getent ahostsv4 {peer}").stdout


def test_hosts_reach_one_another_and_this_machine_and_nothing_else(hosts):
    hosts.ssh("worker-1", f"timeout 5 bash -c '</dev/tcp/{hosts.address('worker-2')}/22'")
    routes = hosts.ssh("worker-1", "ip -4 route show default").stdout.split()
    assert hosts.layout.network.bridge_address in routes
    outside = hosts.ssh("worker-1", "timeout 2 bash -c '</dev/tcp/192.0.2.1/80'", check=False)
    assert outside.returncode != 0


def test_a_service_address_leads_to_the_api_server_from_every_host(hosts):
    for name in hosts.names:
        version = json.loads(hosts.ssh(name, "curl --silent --insecure --max-time 10 https://10.96.0.1/version").stdout)
        assert version["gitVersion"] == kubernetes_version()


def test_restarting_a_service_of_one_host_leaves_the_others_alone(hosts):
    def started(name: str) -> str:
        return hosts.ssh(name, "systemctl show --property=ExecMainStartTimestampMonotonic kube-proxy").stdout

    before = {name: started(name) for name in hosts.names}
    hosts.ssh("worker-1", "systemctl restart kube-proxy")
    changed = {name for name in hosts.names if started(name) != before[name]}
    assert {"worker-1"} == changed


def test_ansible_reaches_every_host_through_the_inventory(hosts, tmp_path):
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(hosts.inventory())
    done = subprocess.run(
        [
            Path(sys.executable).with_name("ansible"),
            "all",
            "--inventory",
            inventory,
            "--module-name",
            "ansible.builtin.ping",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(hosts.names) == done.stdout.count('"ping": "pong"')


def test_hosts_that_are_up_are_not_taken_away_by_a_second_start(hosts):
    with pytest.raises(HostsError, match=r"in use by process|up already"):
        Hosts(hosts.layout).up()
    assert hosts.running()


def test_a_failed_command_is_told_in_one_line(hosts):
    with pytest.raises(HostsError, match=r"^worker-1: false failed with code 1: $"):
        hosts.ssh("worker-1", "false")
