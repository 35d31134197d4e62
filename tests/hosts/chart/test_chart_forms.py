"""Every supported form of the chart, with real pods on real hosts, from `helm install` to a cluster with nothing of it.

The forms are the files of charts/readygate/ci: a new one is tried without being named here. Each has a namespace of its
own, whose name is as long as names may be and begins with a digit. What a form needs of the cluster is made (labels,
folders, Secrets, other namespaces, kinds of the Prometheus operator); what of its values cannot be had here is another
one, and said, with the reason (needs.py).
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest
import yaml

from tests.charts.rendering import SUPPORTED, documents, rendered
from tests.hosts.chart.needs import OPERATOR, Needs, definition, needs, of, overrides, ready_words
from tests.hosts.chart.release import Release, there
from tests.hosts.deployment.api import AdminApi
from tests.hosts.waiting import wait_until
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layers import CNI_CONF_DIR
from tools.testbed.plane.pki import Authority

CONTROL = "control-1"
CHANGED = "changed"  # a check and a gate that the upgrade adds


@dataclass
class Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[step] = time.monotonic() - began


@pytest.fixture(scope="module")
def api(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> AdminApi:
    return AdminApi(hosts.kubeconfig, tmp_path_factory.mktemp("admin"))


@pytest.fixture(scope="module")
def digest(hosts: Hosts, image: str) -> str:
    """Of the image, by which it is known to each host as well."""
    repository, _, _ = image.rpartition(":")
    ctr = "ctr --namespace k8s.io images"
    (found,) = {hosts.ssh(name, f"{ctr} ls name=={image} | awk 'NR == 2 {{print $3}}'").stdout for name in hosts.names}
    for name in hosts.names:
        hosts.ssh(name, f"{ctr} tag --force {image} {repository}@{found.strip()}")
    return found.strip()


@pytest.fixture
def release(
    request: pytest.FixtureRequest, hosts: Hosts, api: AdminApi, image: str, digest: str, tmp_path_factory
) -> Iterator[Release]:
    """Of the form, not installed yet; all that it needs is there."""
    form = request.param
    values = yaml.safe_load(SUPPORTED[form].read_text())
    repository, _, tag = image.rpartition(":")
    server = f"https://{hosts.address(CONTROL)}:6443"
    others = overrides(values, repository=repository, tag=tag, digest=digest, server=server)
    given = [one.given for one in others]
    for one in others:
        hosts.progress(f"{form}: {one.given}: {one.why}")
    namespace = f"{list(SUPPORTED).index(form)}-{form}".ljust(63, "x")
    needed = needs(values, documents(rendered(SUPPORTED[form], given=given, namespace=namespace)), namespace)
    home = tmp_path_factory.mktemp("helm")
    made = Release(hosts, api, form, namespace, SUPPORTED[form], given, ready_words(values), home)
    with ExitStack() as stack:
        for name in (namespace, *needed.namespaces):
            stack.enter_context(a_namespace(hosts, name))
        prepare(hosts, stack, needed, namespace, Authority(tmp_path_factory.mktemp("pki") / "ca"))
        yield made


@contextmanager
def a_namespace(hosts: Hosts, name: str) -> Iterator[None]:
    """Gone in the end, if it was not there before."""
    if hosts.kubectl("get", "namespace", name, check=False).returncode == 0:
        yield
        return
    hosts.kubectl("create", "namespace", name)
    hosts.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=privileged")
    wanted = ("get", "--namespace", name, "serviceaccount/default", "configmap/kube-root-ca.crt")
    wait_until(lambda: hosts.kubectl(*wanted, check=False).returncode == 0, "what is in each")
    try:
        yield
    finally:
        hosts.kubectl("delete", "namespace", name, "--timeout=120s", timeout_s=150.0)


def prepare(hosts: Hosts, stack: ExitStack, needed: Needs, namespace: str, authority: Authority) -> None:
    """Makes what the form needs; taken back with the stack."""
    for name in hosts.names:
        labels = {**needed.labels, **(needed.extender_labels if name == CONTROL else {})}
        for key, value in labels.items():
            if "not labeled" not in hosts.kubectl("label", "node", name, f"{key}={value}").stdout:
                stack.callback(hosts.kubectl, "label", "node", name, f"{key}-")
        hosts.ssh(name, f"mkdir -p {' '.join(('/tmp', *needed.folders))}")
        if needed.cni_configuration:
            hosts.ssh(name, f"mkdir -p {needed.cni_configuration} && cp {CNI_CONF_DIR}/* {needed.cni_configuration}/")
    for kind in needed.kinds:
        hosts.kubectl("apply", "-f-", stdin=json.dumps(definition(kind)))
        resource = f"{kind.lower()}s.{OPERATOR}"
        stack.callback(hosts.kubectl, "delete", "customresourcedefinition", resource)
        hosts.kubectl("wait", "--for=condition=Established", f"customresourcedefinition/{resource}")
    for name in needed.tls_secrets:
        certificate, key = authority.serving("extender")
        files = {"tls.crt": certificate, "tls.key": key, "ca.crt": authority.certificate}
        data = {entry: base64.b64encode(path.read_bytes()).decode() for entry, path in files.items()}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "data": data,
        }
        hosts.kubectl("apply", "-f-", stdin=json.dumps(secret))


def removed(release: Release) -> None:
    """As docs/helm.md says."""
    release.helm("uninstall", release.name)


def one_more_of_each(release: Release) -> list[str]:
    """The form's checks with another one, and its gates; lists are replaced as a whole."""
    values = yaml.safe_load(release.values.read_text())
    checks = [*(of(values, "agent", "checks") or ()), {"name": CHANGED, "exec": {"command": ["/bin/true"]}}]
    pods = {"namespace": release.namespace, "labelSelector": "app=none"}
    gate = {"name": CHANGED, "enforcement": "shadow", "healthPods": pods}
    starts = {"name": "starts", "severity": "warn", "healthPods": None, "podStarts": {}}
    gates = [*(of(values, "extender", "configuration", "gates") or [{}, starts]), gate]
    return [f"agent.checks={json.dumps(checks)}", f"extender.configuration.gates={json.dumps(gates)}"]


@pytest.mark.parametrize("release", SUPPORTED, indirect=True)
def test_a_form_comes_up_is_changed_changed_back_and_removed_without_a_trace(hosts: Hosts, release: Release) -> None:
    well = release.well(extenders=[CONTROL])

    def wait_well() -> None:
        wait_until(lambda: release.how() == well, lambda: f"{well}, but: {release.how()}")

    before = there(hosts)
    took = Stopwatch()
    with took.of("install"):
        release.install()
        wait_well()
    first = release.checks()
    assert {True} == {bool(names) and CHANGED not in names for names in first.values()}
    with took.of("test"):
        assert "Phase:          Succeeded" in release.helm("test", release.name)
    gates = release.gates(CONTROL)
    assert (True, False) == (bool(gates), CHANGED in gates)
    with took.of("upgrade"):
        release.upgrade(*one_more_of_each(release))
        wait_well()
    assert {node: names | {CHANGED} for node, names in first.items()} == release.checks()
    wait_until(lambda: release.gates(CONTROL) == [*gates, CHANGED], "the extender has the gate")

    with took.of("rollback"):
        release.helm("rollback", release.name, "1")
        wait_well()
    assert first == release.checks()
    wait_until(lambda: release.gates(CONTROL) == gates, "the extender has that gate no more")

    with took.of("uninstall"):
        removed(release)
        wait_until(lambda: there(hosts) <= before, lambda: f"left: {there(hosts) - before}")
    assert before == there(hosts), "nor is anything of others gone"
    hosts.progress(f"{release.name}: {', '.join(f'{step} {s:.0f} s' for step, s in took.seconds.items())}")
