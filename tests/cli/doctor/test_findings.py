"""What doctor finds: for each finding the change to a healthy cluster that provokes it, and nothing else does."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from cli.doctor.examine import examine
from cli.doctor.findings import Severity
from cli.doctor.schedulers import sample_nodes
from extender.web.report import OrderTold, Scope
from tests.cli.doctor import facts as given
from tests.cli.doctor.facts import ENTRY, FACTS, LOADED, REPLICA, SCHEDULER

ROOT = Path(__file__).resolve().parents[3]
LARGE = {"nodes": 5000, "control_plane": ("c1",)}
FLAGS = {"config": "/etc/kubernetes/scheduler.yaml"}
SECOND = replace(FACTS.schedulers[0], name="kube-scheduler-c2", node="c2")
TWO_REPLICAS = (REPLICA, replace(REPLICA, name="readygate-extender-y", node="c2"))


def found(**changed):
    """Without the note that every scheduler since 1.35 gets."""
    every = examine(replace(FACTS, **changed))
    return [(one.severity.value, one.name) for one in every if one.name != "batching-off"]


def test_a_healthy_cluster_needs_nobody():
    assert found() == []


PROVOKED = pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({"schedulers": ()}, ("unknown", "no-scheduler-found"), id="no scheduler's pod is found"),
        pytest.param(
            given.with_scheduler(loaded=None, unread="refused"),
            ("unknown", "scheduler-unread"),
            id="a scheduler does not tell its configuration",
        ),
        pytest.param(given.with_loaded(extenders=()), ("error", "not-registered"), id="it has no extender"),
        pytest.param(
            given.with_entry(url_prefix="http://127.0.0.1:8888"),
            ("error", "not-registered"),
            id="it has another extender only",
        ),
        pytest.param(
            given.with_entry(url_prefix="http://127.0.0.1:port"),
            ("error", "not-registered"),
            id="its extender's address is none",
        ),
        pytest.param(
            given.with_entry(url_prefix="http://127.0.0.1:338"),
            ("error", "asks-elsewhere"),
            id="it asks where another form or an earlier release of ours answers",
        ),
        pytest.param(
            given.with_loaded(extenders=(ENTRY, replace(ENTRY, url_prefix="https://localhost:337/"))),
            ("error", "asks-elsewhere"),
            id="it asks there too",
        ),
        pytest.param(
            given.with_loaded(extenders=(ENTRY, ENTRY)), ("error", "registered-twice"), id="we are there twice"
        ),
        pytest.param(given.with_entry(node_cache_capable=False), ("error", "nodes-mode"), id="whole Nodes are sent"),
        pytest.param(given.with_entry(filter_verb="nodes"), ("error", "filter-verb"), id="it asks another verb"),
        pytest.param(given.with_entry(bind_verb="bind"), ("error", "bind-verb"), id="it wants us to bind"),
        pytest.param(
            given.with_entry(preempt_verb=""), ("warning", "no-preempt-verb"), id="preemption does not ask us"
        ),
        pytest.param(
            given.with_entry(timeout_s=None), ("warning", "timeout-long"), id="it waits 5 s for want of a word"
        ),
        pytest.param(given.with_entry(timeout_s=1.5), ("warning", "timeout-long"), id="it waits longer than a second"),
        pytest.param(given.with_entry(timeout_s=0.05), ("warning", "timeout-short"), id="it hardly waits"),
        pytest.param(
            given.with_entry(ignorable=False),
            ("error", "enforce-deadlock"),
            id="enforce, and a DaemonSet makes the extender",
        ),
        pytest.param(
            given.with_settings("gates: [{name: a, severity: preferNot}]"),
            ("warning", "no-prioritize-verb"),
            id="a gate would rather not, and is not asked",
        ),
        pytest.param(
            given.with_entry(prioritize_verb="prioritize", weight=1),
            ("note", "prioritize-verb-idle"),
            id="a verb is asked that no gate needs",
        ),
        pytest.param(
            given.with_settings("gates: [{name: a, for: {schedulerNames: [gpu]}}]"),
            ("warning", "profile-unknown"),
            id="a gate is for a scheduler that nobody is",
        ),
        pytest.param(
            {
                "schedulers": (
                    *FACTS.schedulers,
                    replace(SECOND, loaded=replace(LOADED, extenders=(replace(ENTRY, timeout_s=0.5),))),
                ),
                "replicas": TWO_REPLICAS,
            },
            ("warning", "schedulers-differ"),
            id="two schedulers ask us differently",
        ),
        pytest.param(
            {"schedulers": (*FACTS.schedulers, SECOND)},
            ("error", "no-extender-beside"),
            id="a second scheduler has no extender beside it",
        ),
        pytest.param(
            {"control_plane": ("c1", "c2")},
            ("warning", "no-scheduler-on-host"),
            id="a control plane node has no scheduler",
        ),
        pytest.param(
            given.with_replica(owner="Node", token_left_s=11.9 * 3600, token_life_s=24 * 3600.0),
            ("warning", "token-ends"),
            id="less than half of the life of a static pod's token is left",
        ),
        pytest.param(
            given.with_replica(owner="Node", token_left_s=5.9 * 3600, token_life_s=24 * 3600.0),
            ("error", "token-ends"),
            id="less than a quarter of it is left",
        ),
        pytest.param(
            given.with_replica(owner="Node", token_left_s=29 * 60.0, token_life_s=3600.0),
            ("warning", "token-ends"),
            id="less than half of an hour that the API server gave is left",
        ),
        pytest.param(
            given.with_replica(owner="Node", token_left_s=-1.0, token_life_s=24 * 3600.0),
            ("error", "token-ends"),
            id="the token of a static pod has ended",
        ),
        pytest.param(
            given.with_replica(owner="Node", token_left_s=-1.0),
            ("error", "token-ends"),
            id="it has ended, and its life is not known",
        ),
        pytest.param({"replicas": ()}, ("error", "no-extender"), id="there is no extender"),
        pytest.param(given.with_replica(ready=False), ("error", "extender-not-ready"), id="an extender is not Ready"),
        pytest.param(given.with_replica(problem="refused"), ("unknown", "extender-unread"), id="an extender is silent"),
        pytest.param(
            given.with_replica(not_answering="readygate: cache not synced"),
            ("error", "not-answering"),
            id="an extender gives no verdicts",
        ),
        pytest.param(
            given.with_replica(release="0.2.0"), ("note", "release-of-command"), id="this command is of another release"
        ),
        pytest.param(
            {"replicas": (REPLICA, replace(REPLICA, name="y", release="0.0.9"))},
            ("warning", "releases-differ"),
            id="the extenders are of two releases",
        ),
        pytest.param({"api_version": "v1.29.0"}, ("warning", "version-unsupported"), id="the API server is too old"),
        pytest.param(
            {"settings": None, "settings_unread": "forbidden"},
            ("unknown", "configuration-unread"),
            id="the extender's configuration may not be read",
        ),
        pytest.param(given.with_settings("cap: off"), ("warning", "no-cap"), id="there is no cap"),
        pytest.param(given.with_gate(armed=False), ("note", "shadow"), id="a gate is in shadow"),
        pytest.param(
            given.with_gate(health_set=None), ("error", "no-health-daemonset"), id="its DaemonSet is not there"
        ),
        pytest.param(given.with_gate(pods=0), ("error", "selects-nothing"), id="its selector matches no pod"),
        pytest.param(
            given.with_pods(probed=False), ("error", "no-readiness-probe"), id="nothing probes the health pods"
        ),
        pytest.param(
            given.with_pods(strategy="OnDelete"), ("note", "update-on-delete"), id="pods are replaced by hand"
        ),
        pytest.param(
            given.with_pods(max_unavailable="60%"), ("warning", "roll-out-above-cap"), id="a roll-out uses up the cap"
        ),
        pytest.param(given.with_pods(min_ready_s=0), ("warning", "no-min-ready"), id="a roll-out waits for nothing"),
        pytest.param(
            {"rights": (replace(FACTS.rights[0], allowed=False),)},
            ("error", "right-missing"),
            id="the extender may not list pods",
        ),
        pytest.param({"faults": ("a: no order",)}, ("warning", "order-broken"), id="an order is rubbish"),
        pytest.param(
            {"orders": (OrderTold("arming-base", "arm", Scope("base")), OrderTold("rma", "hold", Scope("health")))},
            ("warning", "order-of-no-gate"),
            id="a gate that was armed by order has got another name",
        ),
        pytest.param({"unread": ("you may not list nodes",)}, ("unknown", "unread"), id="something may not be read"),
    ],
)


@pytest.mark.parametrize(
    ("url", "changed", "expected"),
    [
        pytest.param(
            "http://127.0.0.1:337", given.with_replica(owner="Node"), [], id="a static pod's, where there is one"
        ),
        pytest.param(
            "http://127.0.0.1:338", {"settings": None}, [], id="any of ours, where no configuration can be read"
        ),
        pytest.param("http://192.0.2.7:338", {}, ["not-registered"], id="such a port of another host is not ours"),
    ],
)
def test_where_an_extender_of_ours_may_be_asked(url, changed, expected):
    about_registration = {"not-registered", "asks-elsewhere", "registered-twice"}
    names = [name for _, name in found(**given.with_entry(url_prefix=url), **changed)]
    assert expected == [name for name in names if name in about_registration]


@PROVOKED
def test_what_provokes_a_finding(changed, expected):
    assert [expected] == found(**changed)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"owner": "Node", "token_left_s": 17.9 * 3600, "token_life_s": 24 * 3600.0}, id="it is due now"),
        pytest.param({"owner": "Node", "token_left_s": 12.1 * 3600, "token_life_s": 24 * 3600.0}, id="half is left"),
        pytest.param({"owner": "Node", "token_left_s": 60.0}, id="its life is not known, and it has not ended"),
        pytest.param(
            {"owner": "DaemonSet", "token_left_s": 720.0, "token_life_s": 3607.0}, id="a kubelet renews it at a fifth"
        ),
    ],
)
def test_a_token_that_is_renewed_in_time_is_no_finding(changed):
    assert [] == found(**given.with_replica(**changed))


def test_a_token_that_ends_names_the_host_and_its_units():
    changed = given.with_replica(owner="Node", token_left_s=3600.0, token_life_s=24 * 3600.0)
    (finding,) = [one for one in examine(replace(FACTS, **changed)) if one.name == "token-ends"]
    assert "ends in 1.0 hours" in finding.evidence
    assert f"on the host of {REPLICA.node}: systemctl start readygate-extender-token.service" in finding.remedy


def test_no_finding_is_without_a_test_that_provokes_it():
    sources = [ast.parse(path.read_text()) for path in (ROOT / "cli" / "doctor").glob("*.py")]
    calls = [node for source in sources for node in ast.walk(source) if isinstance(node, ast.Call)]
    makers = {severity.value for severity in Severity}
    names = {call.args[0].value for call in calls if getattr(call.func, "id", "") in makers}
    in_tables_of_their_own = {"batching-off", "flag-void", "sample-within-cap"}
    assert names == {one.values[1][1] for one in PROVOKED.args[1]} | in_tables_of_their_own


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
def test_a_flag_beside_config_is_void_unless_the_file_says_the_same(flag, value, expected):
    assert expected == [name for _, name in found(**given.with_scheduler(flags={**FLAGS, flag: value}))]


def test_kubeadms_kubeconfig_is_no_void_flag_where_the_file_names_it_too():
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
def test_how_many_nodes_an_attempt_looks_at(nodes, percent, expected):
    assert expected == sample_nodes(nodes, percent)


def test_batching_is_named_where_there_is_any():
    def batching(version):
        facts = replace(FACTS, schedulers=(replace(SCHEDULER, version=version),))
        return any(one.name == "batching-off" for one in examine(facts))

    assert (False, True) == (batching("v1.34.9"), batching("v1.36.3"))


def test_the_worst_comes_first():
    severities = [one.severity for one in examine(replace(FACTS, replicas=(), unread=("x",), faults=("y",)))]
    assert sorted(severities, key=list(Severity).index) == severities


def test_every_finding_that_needs_somebody_names_a_remedy():
    spoiled = replace(FACTS, replicas=(), schedulers=(), gates=(), settings=None, unread=("x",), faults=("y",))
    assert [] == [one.name for one in examine(spoiled) if one.severity is not Severity.NOTE and not one.remedy]
