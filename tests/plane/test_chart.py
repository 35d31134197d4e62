"""The chart on a real API server: it takes every supported form; helm installs, upgrades, rolls back and removes it.

Monitors and rules are kinds of the Prometheus operator, which this server does not know; promtool has tried the rules.
"""

import os
import subprocess

import pytest
import yaml

from kube import contract
from tests.charts.rendering import CHART, SUPPORTED, Refused, documents, helm, rendered
from tests.plane.cluster import Cluster
from tools.testbed.shared.api import ApiError

NS = "gates-of-ours"
RELEASE = "ours"
OF_THE_OPERATOR = ("PodMonitor", "PrometheusRule")
NAMESPACES = (NS, "storage", contract.NAMESPACE_NODE_LEASE)
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
SETS = f"/apis/apps/v1/namespaces/{NS}/daemonsets"

# As the playbooks register a DaemonSet's extender.
REGISTRATION = {
    "urlPrefix": f"http://127.0.0.1:{contract.PORT_DAEMON_SET}",
    "filterVerb": "filter",
    "preemptVerb": "preempt",
    "nodeCacheCapable": True,
    "ignorable": True,
    "httpTimeout": "1s",
}


@pytest.fixture
def there(cluster: Cluster) -> Cluster:
    for name in NAMESPACES:
        cluster.api.create_unless_there("/api/v1/namespaces", {"metadata": {"name": name}})
    return cluster


@pytest.mark.parametrize("form", SUPPORTED)
def test_the_server_takes_each_supported_form_to_the_field(there, form):
    text = rendered(SUPPORTED[form], given=["namespace.create=false"], namespace=NS, release=RELEASE)
    known = [each for each in documents(text) if each["kind"] not in OF_THE_OPERATOR]
    done = subprocess.run(
        [
            there.plane.kubectl,
            f"--kubeconfig={there.plane.kubeconfig}",
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "--filename=-",
        ],
        input=yaml.safe_dump_all(known),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(known) == done.stdout.count("serverside-applied (server dry run)")


@pytest.fixture
def environ(tmp_path):
    """helm's, with folders of its own."""
    return {**os.environ, **{f"HELM_{kind}_HOME": str(tmp_path) for kind in ("CACHE", "CONFIG", "DATA")}}


@pytest.mark.parametrize("way", [[], ["--create-namespace"]], ids=["alone", "with the namespace made before"])
def test_a_namespace_as_an_object_is_refused_by_helm_before_anything_is_made(there, environ, way):
    """Else helm would fail half way, and `helm uninstall` of what failed take the namespace with it."""
    where = [f"--kubeconfig={there.plane.kubeconfig}", "--namespace=of-nobody"]
    with pytest.raises(Refused, match=r"namespace\.create is for helm template"):
        helm("install", RELEASE, str(CHART), *where, *way, f"--values={SUPPORTED['default']}", environ=environ)
    assert "of-nobody" not in {each["metadata"]["name"] for each in there.api.items("/api/v1/namespaces")}


def test_helm_installs_upgrades_rolls_back_and_removes_it(there, environ):
    where = [f"--kubeconfig={there.plane.kubeconfig}", f"--namespace={NS}"]
    given = [f"--values={SUPPORTED['default']}", "--set=namespace.create=false"]

    def probe_period_s() -> int:
        (agent,) = there.api.get(f"{SETS}/{contract.NAME_AGENT}")["spec"]["template"]["spec"]["containers"]
        return agent["readinessProbe"]["periodSeconds"]

    def ours() -> set[str]:
        policies = {each["metadata"]["name"] for each in there.api.items(POLICIES)}
        return {name for name in policies if name.startswith(RELEASE)}

    said = helm("install", RELEASE, str(CHART), *where, *given, environ=environ)
    try:
        assert yaml.safe_load(said[said.index("extenders:") : said.index("   Keep")])["extenders"] == [REGISTRATION]
        assert (2, True) == (probe_period_s(), bool(ours()))
        helm("upgrade", RELEASE, str(CHART), *where, *given, "--set=agent.profile=fast", environ=environ)
        assert probe_period_s() == 1
        helm("rollback", RELEASE, "1", *where, environ=environ)
        assert probe_period_s() == 2
    finally:
        # No node runs anything here; what removal asks before is in test_chart_documented.py.
        helm("uninstall", RELEASE, "--no-hooks", *where, environ=environ)
    assert ours() == set()
    with pytest.raises(ApiError, match="404"):
        there.api.get(f"{SETS}/{contract.NAME_AGENT}")
