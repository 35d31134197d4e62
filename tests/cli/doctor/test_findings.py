"""Each finding of doctor, with the change to a healthy cluster that provokes this finding only."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from cli.doctor.agents import agents_of
from cli.doctor.examine import examine
from cli.doctor.facts import Agents
from cli.doctor.findings import Severity
from cli.doctor.schedulers import sample_nodes
from extender.web.schema import OrderTold, Scope
from tests.cli.doctor import facts as given
from tests.cli.doctor.facts import ENTRY, FACTS, LOADED, REPLICA, SCHEDULER
from tools.kit.cases import cases

ROOT = Path(__file__).resolve().parents[3]
LARGE = {"nodes": 5000, "control_plane": ("c1",)}
FLAGS = {"config": "/etc/kubernetes/scheduler.yaml"}
SECOND = replace(FACTS.schedulers[0], name="kube-scheduler-c2", node="c2")
TWO_REPLICAS = (REPLICA, replace(REPLICA, name="readygate-extender-y", node="c2"))


def found(**changed):
    """Without the note that every scheduler since 1.35 gets."""
    every = examine(replace(FACTS, **changed))
    return [(one.severity.value, one.name) for one in every if one.name != "batching-off"]


def test_a_healthy_cluster_has_no_findings():
    assert found() == []


DAY_S = 24 * 3600.0
OTHER_TIMEOUT = replace(SECOND, loaded=replace(LOADED, extenders=(replace(ENTRY, timeout_s=0.5),)))
TWO_TIMEOUTS = {"schedulers": (*FACTS.schedulers, OTHER_TIMEOUT), "replicas": TWO_REPLICAS}
OTHER_RELEASE = replace(REPLICA, name="y", release="0.0.9")
ELSEWHERE = replace(ENTRY, url_prefix="https://localhost:337/")
RENAMED = (OrderTold("arming-base", "arm", Scope("base")), OrderTold("rma", "hold", Scope("health")))


def static_token(left_s, life_s=DAY_S):
    return given.with_replica(owner="Node", token_left_s=left_s, token_life_s=life_s)


PROVOKED = cases(
    "changed, expected",
    ("no scheduler's pod is found", {"schedulers": ()}, "unknown no-scheduler-found"),
    ("an unread configuration", given.with_scheduler(loaded=None, unread="refused"), "unknown scheduler-unread"),
    ("it has no extender", given.with_loaded(extenders=()), "error not-registered"),
    ("it has another extender only", given.with_entry(url_prefix="http://127.0.0.1:8888"), "error not-registered"),
    ("its extender's address is invalid", given.with_entry(url_prefix="http://127.0.0.1:port"), "error not-registered"),
    ("it asks the port of another form", given.with_entry(url_prefix="http://127.0.0.1:338"), "error asks-elsewhere"),
    ("it asks there too", given.with_loaded(extenders=(ENTRY, ELSEWHERE)), "error asks-elsewhere"),
    ("readygate is there twice", given.with_loaded(extenders=(ENTRY, ENTRY)), "error registered-twice"),
    ("whole Nodes are sent", given.with_entry(node_cache_capable=False), "error nodes-mode"),
    ("it asks another verb", given.with_entry(filter_verb="nodes"), "error filter-verb"),
    ("it wants readygate to bind", given.with_entry(bind_verb="bind"), "error bind-verb"),
    ("preemption does not ask readygate", given.with_entry(preempt_verb=""), "warning no-preempt-verb"),
    ("it waits 5 s by default", given.with_entry(timeout_s=None), "warning timeout-long"),
    ("it waits longer than a second", given.with_entry(timeout_s=1.5), "warning timeout-long"),
    ("it hardly waits", given.with_entry(timeout_s=0.05), "warning timeout-short"),
    ("enforce, and a DaemonSet makes the extender", given.with_entry(ignorable=False), "error enforce-deadlock"),
    ("not asked", given.with_settings("gates: [{name: a, severity: preferNot}]"), "warning no-prioritize-verb"),
    (
        "pods that claim devices are not asked about (kubernetes pkg/scheduler/extender.go, IsInterested)",
        given.with_entry(managed_resources=("nvidia.com/gpu",))
        | given.with_settings("gates: [{name: a, for: {resources: [nvidia.com/gpu]}}]"),
        "warning claims-not-asked",
    ),
    ("no gate needs a verb", given.with_entry(prioritize_verb="prioritize", weight=1), "note prioritize-verb-idle"),
    ("none is gpu", given.with_settings("gates: [{name: a, for: {schedulerNames: [gpu]}}]"), "warning profile-unknown"),
    ("two schedulers ask differently", TWO_TIMEOUTS, "warning schedulers-differ"),
    ("a second scheduler has no extender", {"schedulers": (*FACTS.schedulers, SECOND)}, "error no-extender-beside"),
    ("a control plane node has no scheduler", {"control_plane": ("c1", "c2")}, "warning no-scheduler-on-host"),
    ("less than half of a token's life is left", static_token(11.9 * 3600), "warning token-ends"),
    ("less than a quarter of it is left", static_token(5.9 * 3600), "error token-ends"),
    ("less than half of its hour is left", static_token(29 * 60.0, 3600.0), "warning token-ends"),
    ("a static pod's token has ended", static_token(-1.0), "error token-ends"),
    ("it has ended, its life is unknown", given.with_replica(owner="Node", token_left_s=-1.0), "error token-ends"),
    ("there is no extender", {"replicas": ()}, "error no-extender"),
    ("an extender is not Ready", given.with_replica(ready=False), "error extender-not-ready"),
    ("an extender is silent", given.with_replica(problem="refused"), "unknown extender-unread"),
    ("it gives no verdicts", given.with_replica(not_answering="readygate: cache not synced"), "error not-answering"),
    ("this command is of another release", given.with_replica(release="0.2.0"), "note release-of-command"),
    ("extenders of two releases", {"replicas": (REPLICA, OTHER_RELEASE)}, "warning releases-differ"),
    ("the API server is too old", {"api_version": "v1.29.0"}, "warning version-unsupported"),
    ("unreadable configuration", {"settings": None, "settings_unread": "forbidden"}, "unknown configuration-unread"),
    (
        "a gate that closes every node",
        given.with_settings(
            "gates: [{conditions: {allOf: [{of: pod, type: A}, {of: pod, type: A, status: 'False'}]}}]"
        ),
        "warning gate-by-lint",
    ),
    ("there is no cap", given.with_settings("cap: off"), "warning no-cap"),
    ("a gate is in shadow", given.with_gate(armed=False), "note shadow"),
    ("agents run in pods alone", {"agents": Agents("default")}, "note not-examined"),
    ("its DaemonSet is not there", given.with_gate(health_set=None), "error no-health-daemonset"),
    ("its selector matches no pod", given.with_gate(pods=0), "error selects-nothing"),
    ("nothing probes the health pods", given.with_pods(probed=False), "error no-readiness-probe"),
    ("pods are replaced by hand", given.with_pods(strategy="OnDelete"), "note update-on-delete"),
    ("a roll-out uses up the cap", given.with_pods(max_unavailable="60%"), "warning roll-out-above-cap"),
    ("a roll-out waits for nothing", given.with_pods(min_ready_s=0), "warning no-min-ready"),
    ("the extender may not list pods", {"rights": (replace(FACTS.rights[0], allowed=False),)}, "error right-missing"),
    ("an order is invalid", {"faults": ("a: no order",)}, "warning order-broken"),
    ("a gate that was armed by order is renamed", {"orders": RENAMED}, "warning order-of-no-gate"),
    ("something may not be read", {"unread": ("you may not list nodes",)}, "unknown unread"),
)


@cases(
    "url, changed, expected",
    ("a static pod's, where there is one", "http://127.0.0.1:337", given.with_replica(owner="Node"), []),
    ("any of readygate's, where no configuration can be read", "http://127.0.0.1:338", {"settings": None}, []),
    ("not such a port of another host", "http://192.0.2.7:338", {}, ["not-registered"]),
)
def test_an_extender_is_recognised_by_its_address(url, changed, expected):
    about_registration = {"not-registered", "asks-elsewhere", "registered-twice"}
    names = [name for _, name in found(**given.with_entry(url_prefix=url), **changed)]
    assert expected == [name for name in names if name in about_registration]


@PROVOKED
def test_each_change_leads_to_its_finding_only(changed, expected):
    assert [tuple(expected.split())] == found(**changed)


@cases(
    "changed",
    ("it is due now", {"owner": "Node", "token_left_s": 17.9 * 3600, "token_life_s": 24 * 3600.0}),
    ("half is left", {"owner": "Node", "token_left_s": 12.1 * 3600, "token_life_s": 24 * 3600.0}),
    ("its life is not known, and it has not ended", {"owner": "Node", "token_left_s": 60.0}),
    ("a kubelet renews it at a fifth", {"owner": "DaemonSet", "token_left_s": 720.0, "token_life_s": 3607.0}),
)
def test_a_token_that_is_renewed_in_time_is_no_finding(changed):
    assert [] == found(**given.with_replica(**changed))


def test_a_token_that_ends_names_the_host_and_its_units():
    changed = given.with_replica(owner="Node", token_left_s=3600.0, token_life_s=24 * 3600.0)
    (finding,) = [one for one in examine(replace(FACTS, **changed)) if one.name == "token-ends"]
    assert "ends in 1.0 hours" in finding.evidence
    assert f"on the host of {REPLICA.node}: systemctl start readygate-extender-token.service" in finding.remedy


def test_each_finding_has_a_test():
    sources = [ast.parse(path.read_text()) for path in (ROOT / "cli" / "doctor").glob("*.py")]
    calls = [node for source in sources for node in ast.walk(source) if isinstance(node, ast.Call)]
    makers = {severity.value for severity in Severity}
    names = {call.args[0].value for call in calls if getattr(call.func, "id", "") in makers}
    in_tables_of_their_own = {"batching-off", "flag-void", "sample-within-cap"}
    assert names == {one.values[1].split()[1] for one in PROVOKED.args[1]} | in_tables_of_their_own


@pytest.mark.parametrize(
    ("flag", "value", "expected"),
    [
        ("profiling", "false", ["flag-void"]),
        ("profiling", "true", []),
        ("kube-api-qps", "200", ["flag-void"]),
        ("kube-api-qps", "50", []),
        ("kube-api-burst", "much", ["flag-void"]),
        ("kubeconfig", "/etc/kubernetes/scheduler.conf", ["flag-void"]),
        ("leader-elect", "true", []),
    ],
)
def test_a_flag_next_to_config_is_void_unless_the_file_has_the_same_value(flag, value, expected):
    assert expected == [name for _, name in found(**given.with_scheduler(flags={**FLAGS, flag: value}))]


def test_kubeadms_kubeconfig_flag_is_not_void_if_the_file_names_it_too():
    path = "/etc/kubernetes/scheduler.conf"
    flags = given.with_scheduler(flags={**FLAGS, "kubeconfig": path})["schedulers"][0]
    scheduler = replace(flags, loaded=replace(flags.loaded, kubeconfig=path))
    assert found(schedulers=(scheduler,)) == []


def test_without_config_every_flag_counts():
    assert found(**given.with_scheduler(flags={"profiling": "false"})) == []


@pytest.mark.parametrize(
    ("percent", "expected"),
    [(None, ["sample-within-cap"]), (20, ["sample-within-cap"]), (31, []), (100, [])],
    ids=["adaptive: a tenth", "a fifth", "more than the cap", "all"],
)
def test_a_sample_that_fits_into_the_cap_may_be_closed_as_a_whole(percent, expected):
    changed = given.with_loaded(percentage_of_nodes_to_score=percent)
    assert expected == [name for _, name in found(**LARGE, **changed)]


@pytest.mark.parametrize(
    ("nodes", "percent", "expected"),
    [
        (50, None, 50),
        (99, 5, 99),
        (100, None, 100),
        (1000, None, 420),
        (5000, None, 500),
        (15000, None, 750),
        (5000, 1, 100),
    ],
)
def test_the_number_of_sampled_nodes_is_that_of_upstream(nodes, percent, expected):
    assert expected == sample_nodes(nodes, percent)


def test_batching_is_noted_from_1_35_on():
    def batching(version):
        facts = replace(FACTS, schedulers=(replace(SCHEDULER, version=version),))
        return any(one.name == "batching-off" for one in examine(facts))

    assert (False, True) == (batching("v1.34.9"), batching("v1.36.3"))


def test_the_worst_comes_first():
    severities = [one.severity for one in examine(replace(FACTS, replicas=(), unread=("x",), faults=("y",)))]
    assert sorted(severities, key=list(Severity).index) == severities


def test_every_finding_but_notes_has_a_remedy():
    spoiled = replace(FACTS, replicas=(), schedulers=(), gates=(), settings=None, unread=("x",), faults=("y",))
    assert [] == [one.name for one in examine(spoiled) if one.severity is not Severity.NOTE and not one.remedy]


def agent_file(profile, **files):
    return {"agent.yaml": f"mode: pod\nprofile: {profile}\nchecks: []\n", **files}


READER = "checks: [{name: certificates, certificates: {}}, {name: kernel-log, kernelLog: {}}]"
NODE = {"readygate.dev/speaker": "node"}


@cases(
    "files, annotations, expected",
    (
        "in pods",
        agent_file("{name: default, leaveOut: []}"),
        {},
        "default: certificates, connection-tables, kernel-log",
    ),
    ("the short form", agent_file("gpu"), {}, "gpu: certificates, connection-tables, kernel-log"),
    ("a reader beside it", agent_file("default", **{"reader.yaml": READER}), {}, "default: connection-tables"),
    ("a service beside it", agent_file("default"), NODE, None),
    ("a list that a pod runs whole", agent_file("minimal"), {}, None),
    ("no list", {"agent.yaml": "mode: pod\nchecks: [{name: a, cni: {}}]"}, {}, None),
    ("no file", {}, {}, None),
    ("no YAML", {"agent.yaml": "{"}, {}, None),
    ("another document", {"agent.yaml": "[1]"}, {}, None),
)
def test_what_pods_cannot_examine_is_listed_once(files, annotations, expected):
    found = [one for one in examine(replace(FACTS, agents=agents_of(files, annotations))) if one.name == "not-examined"]
    assert (0 if expected is None else 1) == len(found)
    assert expected is None or found[0].evidence.endswith(expected)


def test_a_gate_that_only_warns_is_not_said_to_be_in_shadow():
    assert [] == [
        one for one in examine(replace(FACTS, **given.with_gate(armed=False, refuses=False))) if one.name == "shadow"
    ]
