"""In every form of installation, which addresses the programs listen on: loopback, unless a value names another one."""

import ipaddress
import json
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from agent.settings import Settings as AgentSettings
from extender.config import settings as extender_settings
from tests.charts import test_roles as roles
from tests.charts.rendering import ROOT, SUPPORTED, Object, documents, objects
from tests.playbooks.rendering import ADMIN_SERVER, render
from tools.testbed.shared.tools import KUSTOMIZE, built

# Where an agent in a pod listens: in the pod's own network, behind a NetworkPolicy. The kubelet probes it there.
IN_ITS_POD = {("agent.yaml", "listen.address", "::"), ("reader.yaml", "listen.address", "::")}
METRICS = {("extender.yaml", "metrics.address", "$(HOST_IP)")}
IMAGE = 'image={"repository":"registry.example/readygate","tag":"dev"}'
KUSTOMIZE_LIMIT_S = 60


@cache
def built_of(*folders: str, components: tuple[str, ...] = ()) -> list[Object]:
    """What `kubectl apply -k` makes of an overlay of these folders of deploy/."""
    with tempfile.TemporaryDirectory(dir=ROOT / "deploy") as folder:
        overlay = {
            "resources": [f"../{name}" for name in folders],
            "components": [f"../{name}" for name in components],
        }
        Path(folder, "kustomization.yaml").write_text(json.dumps(overlay))
        command = [str(built(KUSTOMIZE)), "build", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=KUSTOMIZE_LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return documents(done.stdout)


def of_chart(*given: str) -> list[Object]:
    return list(objects(given=[IMAGE, *given]).values())


def of_role(name: str) -> list[Object]:
    return list(roles.role_objects(roles.INVENTORIES[name]).values())


@cache
def static(**given: Any) -> list[Object]:
    """The static pod, and the configuration that lies beside it on its host."""
    made = render("readygate_extender", {"readygate_extender_form": "static"} | ADMIN_SERVER | given)
    pod = yaml.safe_load(made("lookup('ansible.builtin.template', 'static-pod.yaml.j2')"))
    return [pod, {"kind": "File", "data": {"extender.yaml": made("__readygate_extender_content")}}]


def listening(found: list[Object]) -> set[tuple[str, str, str]]:
    """File, key and address of each listener that the configurations name, or their programs' defaults."""
    return {one for made in found for file, text in made.get("data", {}).items() for one in _of_file(file, text)}


def _of_file(file: str, text: str) -> Iterator[tuple[str, str, str]]:
    if file == "extender.yaml":
        settings = extender_settings.parse(text)
        yield file, "listen.address", settings.listen.address
        yield file, "statusApi.address", settings.status_api.address
        for address in settings.status_api.more_addresses:
            yield file, "statusApi.moreAddresses", address
        if settings.metrics.address is not None:
            yield file, "metrics.address", settings.metrics.address
    elif file in ("agent.yaml", "reader.yaml"):
        yield file, "listen.address", yaml.safe_load(text).get("listen", {}).get("address", "::")


def beyond_loopback(found: list[Object]) -> set[tuple[str, str, str]]:
    return {one for one in listening(found) if not _is_loopback(one[2])}


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def given(name: str) -> set[tuple[str, str, str]]:
    """Of a supported form."""
    return METRICS if name in ("monitoring", "reader") else set()


FORMS = [
    *(
        pytest.param(lambda path=path: list(objects(path).values()), given(name), id=f"chart, {name}")
        for name, path in SUPPORTED.items()
    ),
    pytest.param(lambda: built_of("base"), set(), id="deploy/base"),
    pytest.param(lambda: built_of("base", "monitoring"), set(), id="deploy/base and deploy/monitoring"),
    pytest.param(lambda: built_of("base", "monitoring", components=("metrics",)), METRICS, id="with deploy/metrics"),
    *(pytest.param(lambda name=name: of_role(name), given(name), id=f"role, {name}") for name in roles.INVENTORIES),
    pytest.param(static, set(), id="role, static pod"),
    pytest.param(
        lambda: static(readygate_extender_metrics_address="$(HOST_IP)"), METRICS, id="role, static pod with metrics"
    ),
    pytest.param(
        lambda: static(readygate_extender_status_api_address="192.0.2.7"),
        {("extender.yaml", "statusApi.moreAddresses", "192.0.2.7")},
        id="role, static pod with an address of the status API",
    ),
    pytest.param(
        lambda: of_chart('extender.statusApi.address="192.0.2.7"'),
        {("extender.yaml", "statusApi.moreAddresses", "192.0.2.7")},
        id="chart with an address of the status API",
    ),
]


@pytest.mark.parametrize(("form", "named"), FORMS)
def test_nothing_listens_beyond_loopback_unless_a_value_names_the_address(form, named):
    assert named == beyond_loopback(form()) - IN_ITS_POD


def test_the_agent_as_a_service_listens_on_loopback():
    made = render("readygate_node", {})
    assert made("readygate_node_listen_address") == "127.0.0.1"


def test_the_programs_alone_listen_on_loopback_but_the_agent_for_its_pod():
    assert set() == {one for one in _of_file("extender.yaml", "{}") if not _is_loopback(one[2])}
    assert "::" == AgentSettings(mode="pod").listen.address


def test_no_key_of_the_extender_names_a_listener_that_is_not_looked_at_here():
    """Keys with an address in their name, of all sections."""
    found = {
        f"{section}.{key}"
        for section, definition in msgspec.json.schema(extender_settings.Settings)["$defs"].items()
        for key in definition.get("properties", {})
        if "address" in key.lower()
    }
    assert {"Listen.address", "StatusApi.address", "StatusApi.moreAddresses", "Metrics.address"} == found


@pytest.mark.parametrize("form", [pytest.param(form.values[0], id=form.id) for form in FORMS])
def test_pods_of_the_hosts_network_declare_no_port_and_the_others_have_a_network_policy(form):
    found = form()
    policies = [made["spec"]["podSelector"]["matchLabels"] for made in found if made["kind"] == "NetworkPolicy"]
    for made in found:
        if made["kind"] not in ("DaemonSet", "Pod"):
            continue
        template = made["spec"]["template"] if made["kind"] == "DaemonSet" else made
        ports = [port for container in template["spec"]["containers"] for port in container.get("ports", [])]
        if template["spec"].get("hostNetwork"):
            assert [] == ports
        else:
            assert [] == [port for port in ports if "hostPort" in port]
            assert any(policy.items() <= template["metadata"]["labels"].items() for policy in policies)
