"""What the schema takes of values is rendered as what it says, and what cannot be is refused by its words."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kube import contract
from tests.charts.rendering import CHART, Object, Refused, documents, keyed, objects, rendered
from tools.kit.cases import cases

IMAGE = 'image={"repository":"registry.example:5000/readygate","tag":"dev"}'
EXTENDER, AGENT = contract.NAME_EXTENDER, contract.NAME_AGENT
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
NAMED = ("name", "namespace", "secretName", "policyName", "kubernetes.io/metadata.name")


def pod(half: str, *given: str) -> Object:
    sent = objects(given=[IMAGE, *given])
    return dict(sent["DaemonSet", contract.NAMESPACE, half]["spec"]["template"]["spec"])


@cases(
    "given, said",
    ("a tag in the name", 'image.repository="registry.example/readygate:1.0"', "/image/repository"),
    ("a digest in the name", 'image.repository="r.example/gate@sha256:ab"', "/image/repository"),
    ("a URL for a name", 'image.repository="https://r.example/readygate"', "/image/repository"),
    ("a blank in the tag", 'image.tag="1.0 "', "/image/tag"),
    ("what is no name of a Secret", 'image.pullSecrets=["a: b"]', "/image/pullSecrets/0"),
    ("a blank for one", 'extender.tlsSecret=" "', "/extender/tlsSecret"),
    ("a way upwards, which no mount takes", 'agent.hostPaths=["/var/../etc"]', "/agent/hostPaths/0"),
    ("two lines", 'agent.hostPaths=["/var\\n- x"]', "/agent/hostPaths/0"),
    ("a folder whose parent is itself", 'agent.cni.confDir="/etc/cni/net.d/"', "/agent/cni/confDir"),
    ("a folder whose parent is the host", 'agent.cni.confDir="/cni"', "/agent/cni/confDir"),
    ("no word on whether gates refuse", "enforcement=null", "enforcement"),
    ("a policy that would be gone", "agent.admissionPolicy=null", "admissionPolicy"),
    ("a section that earlier values did not have", "agent.reader=null", "reader"),
    ("a list that is none", "agent.checks=null", "checks"),
    ("a port that no probe asks", 'extender.configuration={"statusApi":{"port":9400}}', "statusApi.port"),
    ("two checks of a name", 'agent.checks=[{"name":"cni","exec":{"command":["true"]}}]', "a name of its own"),
    (
        "monitors of what nobody reaches",
        'monitoring={"podMonitors":{"enabled":true}},extender={"statusApi":{"address":"$(HOST_IP)"}}',
        "podMonitors needs extender.metrics.address",
    ),
    (
        "orders that no operator may write",
        'extender.configuration={"orders":{"configMap":"readygate-extender-orders"}}',
        "orders.configMap",
    ),
    ("the port of the status API", "extender.port=9377", "the status API listens"),
    ("the port of the metrics", "extender.port=9379", "Prometheus scrapes"),
    ("a port that no monitor asks", 'extender.configuration={"metrics":{"port":9400}}', "extender.metrics.address"),
    ("a namespace without rights", 'extender.configuration={"namespace":"other"}', "configuration.namespace"),
)
def test_what_would_be_an_object_that_nobody_takes_is_refused(given, said):
    with pytest.raises(Refused) as refused:
        rendered(given=[IMAGE, given])
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "repository",
    ["readygate", "localhost:5000/readygate", "[2001:db8::1]:5000/a/readygate", "10.0.0.1/x", "r.example/a--b/c__d"],
)
def test_names_of_images_are_taken_as_registries_have_them(repository):
    (agent,) = pod(AGENT, f'image={{"repository":"{repository}","tag":"dev"}}')["containers"]
    assert f"{repository}:dev" == agent["image"]


def not_needed(schema: Any, path: str = "") -> Iterator[str]:
    for key, value in schema.get("properties", {}).items():
        if key not in schema["required"]:
            yield f"{path}{key}"
        elif "properties" in value:
            yield from not_needed(value, f"{path}{key}.")


def test_null_is_taken_where_it_means_none_and_nowhere_else():
    """So no policy goes by it, and values of an earlier chart that lack a section are told so by its name."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    found = {path: of(values, path) for path in not_needed(schema) if path != "global"}
    texts_and_figures = {path for path, value in found.items() if value in ("", None)}
    assert set(found) - texts_and_figures == {
        "image.pullSecrets",
        "agent.metricsFrom",
        "agent.nodeSelector",
        "agent.resources",
        "agent.reader.resources",
        "extender.nodeSelector",
        "extender.port",
        "extender.resources",
        "extender.statusApi.resources",
        "monitoring.podMonitors",
        "monitoring.rules",
        "monitoring.dashboard",
    }


def of(values: Any, path: str) -> Any:
    for key in path.split("."):
        values = values[key]
    return values


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([], "HTTP", id="none"),
        pytest.param(["extender.tlsSecret=null"], "HTTP", id="null: none"),
        pytest.param(['extender.tlsSecret="123"'], "HTTPS", id="one"),
    ],
)
def test_the_probes_speak_tls_where_there_is_a_secret_for_it(given, expected):
    spec = pod(EXTENDER, *given)
    assert {expected} == {spec["containers"][0][probe]["httpGet"]["scheme"] for probe in PROBES}
    assert (expected == "HTTPS") == ("tls" in {volume["name"] for volume in spec["volumes"]})


def texts(node: Any) -> Iterator[Any]:
    """What is to be a text, as YAML reads it."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in NAMED and not isinstance(value, dict):
                yield value
            yield from texts(value)
    if isinstance(node, list):
        for one in node:
            yield from texts(one)


@pytest.mark.parametrize("namespace", ["1234", "true", "0x10"])
def test_a_namespace_and_secrets_may_be_called_as_a_number(namespace):
    gates = '{"gates":[{"healthPods":{"namespace":"77","labelSelector":"a=b"}}],"orders":{"configMap":"8"}}'
    given = [IMAGE, 'image.pullSecrets=["99"]', f"extender.configuration={gates}"]
    found = documents(rendered(given=given, namespace=namespace, hooks=True))
    assert [] == [one for one in texts(found) if not isinstance(one, str)]
    assert {None, namespace, "77", contract.NAMESPACE_NODE_LEASE} == {one["metadata"].get("namespace") for one in found}
    named = [rule.get("resourceNames") for one in found for rule in one.get("rules") or ()]
    assert ["8"] in named


@pytest.mark.parametrize("release", ["b" * 39 + ".bcd", "a" * 38 + "--b", "a" * 53])
def test_names_of_the_whole_cluster_are_names_whatever_the_release_is_called(release):
    found = keyed(documents(rendered(given=[IMAGE], release=release, hooks=True)))
    assert [] == [name for _, _, name in found if ".-" in name or "-." in name or len(name) > 63]


@pytest.mark.parametrize("labels", ['{"grafana_dashboard":null}', "null"])
def test_the_dashboard_may_be_without_the_label_that_it_has_unless_told_otherwise(labels):
    sent = objects(given=[IMAGE, f'monitoring={{"dashboard":{{"enabled":true,"labels":{labels}}}}}'])
    made = sent["ConfigMap", contract.NAMESPACE, "readygate-dashboard"]
    assert {"app.kubernetes.io/name", "app.kubernetes.io/part-of"} == set(made["metadata"]["labels"])


@pytest.mark.parametrize("runbooks", ["https://wiki.example/#/", "@wiki: ", ""])
def test_the_runbook_may_be_anywhere(runbooks):
    sent = objects(given=[IMAGE, f'monitoring={{"rules":{{"enabled":true,"runbooks":"{runbooks}"}}}}'])
    rules = [
        rule
        for group in sent["PrometheusRule", contract.NAMESPACE, "readygate"]["spec"]["groups"]
        for rule in group["rules"]
    ]
    assert f"{runbooks}absent.md" in [rule["annotations"]["runbook"] for rule in rules]


def test_the_extenders_namespace_may_be_said_where_it_is_the_releases():
    given = f'extender.configuration={{"namespace":"{contract.NAMESPACE}"}}'
    assert objects(given=[IMAGE]) == objects(given=[IMAGE, given])


def test_a_great_number_is_a_number():
    sent = objects(given=[IMAGE, "agent.minReadySeconds=1000000"])
    assert 1000000 == sent["DaemonSet", contract.NAMESPACE, AGENT]["spec"]["minReadySeconds"]


def test_folders_are_mounted_by_the_names_they_have():
    folders = ['/var/"log"', "/var/back\\slash", "/var/with blank"]
    spec = pod(AGENT, f'agent={{"cni":{{"check":false}},"checkProfile":"minimal","hostPaths":{json.dumps(folders)}}}')
    assert set(folders) <= {volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    mounts = {mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    assert {f"/host{folder}" for folder in folders} <= mounts
