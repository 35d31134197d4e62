"""What the chart is: the same as is committed of it, documented, closed, and right in any namespace."""

import copy
import json
from typing import Any

import pytest
import yaml

from agent import settings as agent_settings
from cli.lint.gates import examine
from cli.sweep.command import TEST_POD
from extender.config import settings as extender_settings
from kube import contract
from tests.charts import documents, manifests
from tests.charts.rendering import CHART, SUPPORTED, Refused, helm, objects, rendered
from tests.charts.rendering import documents as read
from tests.playbooks.rendering import extender_yaml
from tools.kit.cases import cases

IMAGE = 'image={"repository":"localhost/readygate","tag":"dev"}'
VALUES = (CHART / "values.yaml").read_text()


def test_what_is_committed_of_the_chart_is_what_is_made_of_it():
    assert manifests.differing() == [], "make manifests"


def test_every_value_has_a_comment():
    assert documents.rows(VALUES)
    with pytest.raises(documents.Undocumented, match=r"^a\.c$"):
        documents.rows("a:\n  # Says what.\n  b: 1\n  c: 2\n")


def test_every_value_is_used():
    templates = "".join(path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file())
    of_figures = [row.path for row in documents.rows(VALUES) if row.path.endswith(("Seconds", "Threshold"))]
    unused = [row.path for row in documents.rows(VALUES) if not _named(row.path, templates)]
    assert sorted(set(unused) - set(of_figures)) == []


def _named(path: str, templates: str) -> bool:
    """By its last words: templates take sections as variables."""
    return f".{'.'.join(path.split('.')[-2:])}" in templates or f".{path.rsplit('.', maxsplit=1)[-1]}" in templates


@pytest.mark.parametrize("form", SUPPORTED)
def test_the_checks_of_helm_find_nothing_in_a_supported_form(form):
    said = helm("lint", "--strict", str(CHART), f"--values={SUPPORTED[form]}")
    assert "1 chart(s) linted, 0 chart(s) failed" in said


@pytest.mark.parametrize("form", SUPPORTED)
def test_both_halves_accept_their_configuration(form):
    sent = objects(SUPPORTED[form])
    environ = {"POD_NAME": "p", "POD_NAMESPACE": contract.NAMESPACE, "POD_UID": "u", "POD_IP": "192.0.2.7"}
    texts = {name: text for (kind, _, _), o in sent.items() if kind == "ConfigMap" for name, text in o["data"].items()}
    assert agent_settings.parse(texts["agent.yaml"].encode(), environ).checks
    assert extender_settings.parse(texts["extender.yaml"]).gates


@cases(
    "given, said",
    ("no image", [], "image.repository is needed"),
    ("a value that is not known", [IMAGE, "imagee={}"], "imagee"),
    ("one further down", [IMAGE, 'agent={"cni":{"confdir":"/etc/cni"}}'], "confdir"),
    ("a profile that is not known", [IMAGE, 'agent={"profile":"slow"}'], "/agent/profile"),
    ("nothing to check", [IMAGE, 'agent={"cni":{"check":false},"checkProfile":""}'], "at least one check"),
    ("no policy for Leases", [IMAGE, 'agent={"heartbeat":true,"admissionPolicy":false}'], "agent.heartbeat needs"),
    ("a check misspelt", [IMAGE, 'agent={"checks":[{"name":"a","perodSeconds":3}]}'], "perodSeconds"),
    ("a roll-out that stands still", [IMAGE, 'agent={"maxUnavailable":"0%"}'], "/agent/maxUnavailable"),
    ("the whole host", [IMAGE, 'agent={"hostPaths":["/"]}'], "/agent/hostPaths/0"),
    ("a key of a gate misspelt", [IMAGE, 'extender={"configuration":{"gates":[{"nmae":"health"}]}}'], "nmae"),
    (
        "a value that the extender would refuse",
        [IMAGE, 'extender={"configuration":{"staleLimitSeconds":10}}'],
        "/extender/configuration/staleLimitSeconds",
    ),
    ("a mode for an enforcement", [IMAGE, 'enforcement="enforce"'], "/enforcement"),
)
def test_what_is_wrong_is_said_before_anything_is_changed(given, said):
    with pytest.raises(Refused) as refused:
        rendered(given=given)
    assert said in str(refused.value)


def test_null_turns_off_what_has_a_default():
    sent = objects(given=[IMAGE, 'extender={"configuration":{"orders":{"configMap":null},"cap":false}}'])
    text = extender_yaml(sent)
    settings = extender_settings.parse(text)
    assert (settings.orders.config_map, settings.cap) == (None, False)


def test_the_hooks_may_ask_the_extenders_and_take_away_what_they_left_and_no_more():
    """Those of the removal, while it runs; the pod of `helm test` has no token."""
    sent = {key: made for key, made in objects(given=[IMAGE], hooks=True).items() if "helm.sh/hook" in hooks_of(made)}
    rules = {
        (kind, made["metadata"]["name"], *rule["resources"], *rule["verbs"], *rule.get("resourceNames", ()))
        for (kind, _, _), made in sent.items()
        for rule in made.get("rules", ())
    }
    assert rules == {
        ("Role", "readygate-uninstall", "pods", "list"),
        ("Role", "readygate-uninstall", "pods/portforward", "create", "get"),
        ("ClusterRole", "readygate-sweep", "nodes", "list"),
        ("ClusterRole", "readygate-sweep", "nodes/status", "patch"),
        ("Role", "readygate-sweep", "leases", "delete", contract.NAME_EXTENDER),
        ("Role", "readygate-sweep", "pods", "delete", TEST_POD),
    }
    kinds = {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Job", "Pod"}
    assert {kind for kind, _, _ in sent} == kinds
    assert {namespace for kind, namespace, _ in sent if not kind.startswith("Cluster")} == {contract.NAMESPACE}
    ((_, _, test), made) = next(one for one in sent.items() if one[0][0] == "Pod")
    assert (test, made["spec"]["automountServiceAccountToken"]) == (TEST_POD, False)
    jobs = [job for (kind, _, _), job in sent.items() if kind == "Job"]
    assert [(0, 120)] * 2 == [(job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) for job in jobs]
    for pod in (made["spec"], *(job["spec"]["template"]["spec"] for job in jobs)):
        assert all(one["securityContext"]["capabilities"] == {"drop": ["ALL"]} for one in pod["containers"])


def hooks_of(made: Any) -> dict[str, str]:
    return dict(made["metadata"].get("annotations", {}))


def test_great_numbers_stay_whole():
    given = [IMAGE, 'extender={"configuration":{"gates":[{"for":{"priority":{"from":1000000000}}}]}}']
    sent = objects(given=given)
    assert "from: 1000000000\n" in extender_yaml(sent)


def test_in_another_namespace_nothing_speaks_of_the_usual_one():
    text = rendered(SUPPORTED["default"], namespace="gates-of-ours")
    assert contract.NAMESPACE not in text
    (config,) = [o for o in read(text) if o["kind"] == "ConfigMap" and "extender.yaml" in o["data"]]
    settings = extender_settings.parse(config["data"]["extender.yaml"])
    assert {settings.namespace, settings.gates[0].health_pods.namespace} == {"gates-of-ours"}
    there = {document["metadata"].get("namespace") for document in read(text)}
    assert there == {None, "gates-of-ours", contract.NAMESPACE_NODE_LEASE}


def test_what_others_see_carries_the_name_of_the_release():
    """Two releases, in two namespaces, share nothing."""
    one = set(objects(SUPPORTED["gates"], release="readygate", namespace="a"))
    assert one & set(objects(SUPPORTED["gates"], release="two", namespace="b")) == set()


def test_a_policy_and_its_binding_name_each_other():
    for release in ("readygate", "two"):
        sent = objects(SUPPORTED["default"], release=release)
        policies = {name for kind, _, name in sent if kind == "ValidatingAdmissionPolicy"}
        bound = {
            o["spec"]["policyName"] for (kind, _, _), o in sent.items() if kind == "ValidatingAdmissionPolicyBinding"
        }
        assert policies == bound


def test_the_version_is_that_of_the_product():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'version = "{chart["appVersion"]}"' in (CHART.parents[1] / "pyproject.toml").read_text()
    assert chart["version"] == chart["appVersion"]


def test_the_schema_lets_nothing_in_that_it_does_not_know():
    found = json.loads((CHART / "values.schema.json").read_text())
    open_ones = list(_open(found, ""))
    assert open_ones == ["/properties/global"]


def _open(node: Any, path: str) -> Any:
    if isinstance(node, dict):
        if node.get("type") == "object" and "additionalProperties" not in node:
            yield path
        for key, value in copy.copy(node).items():
            yield from _open(value, f"{path}/{key}")
    if isinstance(node, list):
        for place, value in enumerate(node):
            yield from _open(value, f"{path}/{place}")


def test_without_settings_a_second_gate_shows_nodes_on_which_pods_fail_to_start_and_closes_none():
    health, starts = extender_settings.parse(extender_yaml(objects(given=[IMAGE]))).gates
    assert (health.name, health.severity_in_force, health.pod_starts) == ("health", "gate", None)
    assert (starts.name, starts.severity_in_force, starts.health_pods) == ("starts", "warn", None)
    assert starts.pod_starts is not None
    assert examine(extender_settings.parse(extender_yaml(objects(given=[IMAGE], namespace="another")))) == []


@cases(
    "given, expected",
    ("in pods alone nothing beats: a roll-out would be silence", [], None),
    ("the agent on the node speaks", ['agent.speaker="node"'], 9),
    ("it may not write its condition", ['agent.speaker="node"', "agent.publishCondition=false"], None),
    ("nothing confines what it writes", ['agent.speaker="node"', "agent.admissionPolicy=false"], None),
    ("off", ['agent.speaker="node"', "agent.heartbeat=false"], None),
    ("on", ["agent.heartbeat=true"], 9),
)
def test_heartbeats_are_on_where_an_agent_writes_them_and_may_write_no_other(given, expected):
    sent = objects(given=[IMAGE, *given])
    agents = extender_settings.parse(extender_yaml(sent)).heartbeat.agents
    assert expected == (None if agents is None else agents.limit_seconds)
    rules = [
        rule
        for (kind, _, _), each in sent.items()
        if kind == "Role" and each["metadata"]["name"] == contract.NAME_AGENT
        for rule in each["rules"]
    ]
    confined = ("ValidatingAdmissionPolicy", "", f"{contract.NAME_AGENT}-own-heartbeat") in sent
    assert (expected is not None, expected is not None) == (
        ["leases"] in [rule["resources"] for rule in rules],
        confined,
    )


@pytest.mark.parametrize(("gate", "expected"), [({"podStarts": {}}, True), ({"podStarts": None}, False), ({}, False)])
def test_pods_everywhere_are_read_where_a_gate_goes_by_how_they_start(gate, expected):
    rules = objects(given=[IMAGE, f'extender={{"configuration":{{"gates":[{json.dumps(gate)}]}}}}'])[
        "ClusterRole", "", contract.NAME_EXTENDER
    ]["rules"]
    assert expected == (["pods"] in [rule["resources"] for rule in rules])
