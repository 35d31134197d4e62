"""The cluster before readygate, Ansible, and the cluster with readygate on it; each made once per session."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube import contract
from tests.hosts.conftest import ARTEFACTS
from tests.hosts.deployment import readme, recording
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.playbook import Ansible, Run
from tests.hosts.waiting import wait_for
from tests.test_docs import YAML_FILES
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layers import CNI_BIN_DIR
from tools.testbed.shared import nameserver
from tools.testbed.shared.api import Object, condition

MANIFESTS = "/etc/kubernetes/manifests"
# For plays after the first. A node whose fault was mended opens at once, however many faults it had before.
ARMED = {"readygate_enforcement": "armed", "readygate_extender_configuration": {"gates": [{"damping": False}]}}
MIN_READY_S = 3  # a minute at each of a dozen runs
SYSTEM = "/api/v1/namespaces/kube-system"
DNS = "10.96.0.10"  # where kubeadm's clusters have their name server; the hosts have none of their own
DNS_PORT = 5353
NAMES = "kubernetes.default.svc.cluster.local=10.96.0.1"
KUBEADM_CONFIG = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"


@dataclass(frozen=True)
class SchedulerFiles:
    """`listing`: names in the manifest folder; `manifest`: of kube-scheduler; `cluster`: kubeadm's configuration."""

    listing: list[str]
    manifest: str
    cluster: str


@pytest.fixture(scope="session")
def artefacts() -> Path:
    folder = ARTEFACTS / "hosts"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def api(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> AdminApi:
    return AdminApi(hosts.kubeconfig, tmp_path_factory.mktemp("admin"))


@pytest.fixture(scope="session")
def ansible(hosts: Hosts, image: str, tmp_path_factory: pytest.TempPathFactory) -> Ansible:
    return ansible_for(hosts, image, tmp_path_factory.mktemp("ansible"), "hosts")


def ansible_for(hosts: Hosts, image: str, folder: Path, called: str, **more: Any) -> Ansible:
    """With what each play on hosts of this testbed is told. called: the folder of artefacts for the plays' outputs."""
    variables = {
        "readygate_image": image,
        "readygate_agent_cni_bin_dirs": [CNI_BIN_DIR],
        "readygate_agent_min_ready_seconds": MIN_READY_S,
        # Longer than by default: load makes a play slower, and must not fail it.
        "readygate_agent_trial_timeout_seconds": 600,
        "readygate_extender_rollout_timeout_seconds": 600,
    }
    logs = ARTEFACTS / called
    logs.mkdir(parents=True, exist_ok=True)
    return Ansible(hosts, folder, logs, variables, **more)


@pytest.fixture(scope="session")
def checkout(hosts: Hosts, image: str, artefacts: Path, tmp_path_factory: pytest.TempPathFactory) -> readme.Checkout:
    """The checkout with an inventory made as the README says and filled in for these hosts."""
    made = readme.Checkout(hosts, tmp_path_factory.mktemp("checkout"), artefacts)
    copied = made.run(readme.INVENTORY)
    assert copied.code == 0, copied.told()
    assert image in (readme.ROOT / "playbooks" / "inventory-sample.yml").read_text()
    made.edit(
        ("192.0.2.11", hosts.address("control-1")),
        (
            "# readygate_agent_cni_bin_dirs: [/opt/cni/bin]",
            f"readygate_agent_cni_bin_dirs: [{CNI_BIN_DIR}]\n    readygate_agent_min_ready_seconds: {MIN_READY_S}",
        ),
    )
    return made


def scheduler_files(hosts: Hosts, api: AdminApi) -> SchedulerFiles:
    return SchedulerFiles(
        listing=sorted(hosts.ssh("control-1", f"ls -A {MANIFESTS}").stdout.split()),
        manifest=hosts.ssh("control-1", f"cat {MANIFESTS}/kube-scheduler.yaml").stdout,
        cluster=api.get(KUBEADM_CONFIG)["data"]["ClusterConfiguration"],
    )


def namespaces(api: AdminApi) -> set[str]:
    return {each["metadata"]["name"] for each in api.items("/api/v1/namespaces")}


@pytest.fixture(scope="session")
def untouched(hosts: Hosts, api: AdminApi, ansible: Ansible) -> SchedulerFiles:
    """The control plane as kubeadm made it. Hosts that are used again are cleared first."""
    if contract.NAMESPACE in namespaces(api):
        cleared = ansible.run("uninstall.yml")
        assert cleared.code == 0, cleared.told()
    return scheduler_files(hosts, api)


@pytest.fixture(scope="session")
def rehearsed(checkout: readme.Checkout, untouched: SchedulerFiles) -> Run:  # noqa: ARG001
    """site.yml in check mode on a cluster that has never seen readygate, by the README's command."""
    return checkout.run(readme.CHECK)


@pytest.fixture(scope="session")
def deployed(checkout: readme.Checkout, rehearsed: Run) -> Run:  # noqa: ARG001
    """readygate on the cluster, with the default profile, in shadow, by the README's command."""
    run = checkout.run(readme.DEPLOY)
    if run.code != 0:
        pytest.fail(f"site.yml failed: {run.told()}", pytrace=False)
    return run


@pytest.fixture(scope="session")
def armed(hosts: Hosts, ansible: Ansible, deployed: Run) -> None:  # noqa: ARG001
    """By a second play. Whoever plays again says `ARMED` too; until then the scheduler asks through the recorder."""
    recording.start(hosts)
    run = ansible.run("site.yml", **ARMED, readygate_scheduler_config_url_prefix=recording.URL)
    assert run.code == 0, run.told()


def documented() -> dict[str, Any]:
    """The variables of the document on checks."""
    return dict(yaml.safe_load(YAML_FILES["checks.yml"]))


@pytest.fixture(scope="session")
def name_server(api: AdminApi, image: str) -> Iterator[None]:
    """A cluster DNS that knows one name, at the usual address. It stays as long as the checks that ask it."""
    labels = {"k8s-app": "kube-dns"}
    source = Path(nameserver.__file__).read_text()
    container = {
        "name": "dns",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", source, "0.0.0.0", str(DNS_PORT), NAMES],
    }
    spec = {"nodeName": "worker-2", "containers": [container], "terminationGracePeriodSeconds": 0}
    api.create(f"{SYSTEM}/pods", {"metadata": {"name": "kube-dns", "labels": labels}, "spec": spec})
    ports = [{"name": p.lower(), "protocol": p, "port": 53, "targetPort": DNS_PORT} for p in ("UDP", "TCP")]
    service = {"clusterIP": DNS, "selector": labels, "ports": ports}
    api.create(f"{SYSTEM}/services", {"metadata": {"name": "kube-dns"}, "spec": service})
    path = f"{SYSTEM}/pods/kube-dns"
    assert wait_for(lambda: condition(api.get(path), "Ready").get("status") == "True")
    yield
    api.delete(f"{SYSTEM}/services/kube-dns")
    api.delete(path, grace_s=0)


@pytest.fixture(scope="session")
def faster(ansible: Ansible, armed: None, name_server: None) -> Run:  # noqa: ARG001
    """The play by which agents run often, the documented checks as they stand too."""
    run = ansible.run("site.yml", **ARMED, readygate_agent_profile="fast", **documented())
    assert run.code == 0, run.told()
    return run


def agents(api: AdminApi) -> dict[str, Object]:
    """The agents' pods by node, without those that kube-scheduler has not bound yet."""
    selector = f"?labelSelector={contract.LABEL_NAME}%3D{contract.NAME_AGENT}"
    pods = api.items(f"/api/v1/namespaces/{contract.NAMESPACE}/pods{selector}")
    return {pod["spec"]["nodeName"]: pod for pod in pods if "nodeName" in pod["spec"]}


def save(folder: Path, name: str, content: object) -> None:
    (folder / name).write_text(json.dumps(content, indent=2) + "\n")
