"""Each alert fires and ends when it should (promtool), has its page, and is made of metrics that exist."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.checks.catalogue import check_spec
from agent.checks.engine import CheckEngine
from agent.checks.last_failures import Said
from agent.modes.pod import families
from agent.report.metrics import metrics_page
from agent.settings import parse as agent_settings
from tests.charts.rendering import CHART, ROOT, SUPPORTED, objects
from tests.extender.feed.test_wire import status
from tests.extender.web.conftest import application, client, shown  # noqa: F401 - fixtures
from tools.testbed.shared.tools import PROMTOOL, built

ALERTS = CHART / "files" / "alerts.yaml"
RULES = {rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]}
RUNBOOK = ROOT / "docs" / "runbook"
# Of kube-scheduler and of Prometheus itself.
OTHERS = {"scheduler_schedule_attempts_total", "up"}
_EXTENDER = 'job="readygate-extender", node="cp-1"'
_AGENT = 'job="readygate-agent", node="n-7"'
LOST = "node(s) lost: the kubelet no longer reports"


@dataclass(frozen=True)
class Case:
    """series: their values a minute. Fires at minute `at`, with these labels and value; not at 0, and not at `ends`."""

    alert: str
    series: dict[str, str]
    at: int
    ends: int
    labels: dict[str, str] = field(default_factory=dict)
    value: str = ""
    meaning: str = ""


def of_extender(name: str, values: str, more: str = "") -> dict[str, str]:
    return {f"{name}{{{_EXTENDER}{', ' + more if more else ''}}}": values}


def of_agent(name: str, values: str, more: str = "") -> dict[str, str]:
    return {f"{name}{{{_AGENT}{', ' + more if more else ''}}}": values}


def gate_nodes(decision: str, held_by: str, values: str) -> dict[str, str]:
    return of_extender("readygate_gate_nodes", values, f'gate="health", decision="{decision}", held_by="{held_by}"')


def failing(severity: str, state: str, values: str) -> dict[str, str]:
    more = f'check="dns", severity="{severity}", state="{state}", output="10.96.0.10:53 timed out"'
    return of_agent("readygate_check_output", values, more)


DNS = {"check": "dns", "output": "10.96.0.10:53 timed out", "job": "readygate-agent", "node": "n-7"}
CP = {"node": "cp-1"}


def credentials(times: list[tuple[int, int]], life_s: int, node: str = "cp-1") -> dict[str, str]:
    """Of tokens that live so long: when each was issued, in seconds, and for how many minutes it is in use."""
    series = f'_timestamp_seconds{{job="readygate-extender", node="{node}"}}'
    return {
        f"readygate_credentials_{name}{series}": " ".join(f"{issued + more}x{minutes - 1}" for issued, minutes in times)
        for name, more in (("issued", 0), ("expiry", life_s))
    }


DAY_S, YEAR_S = 86_400, 31_536_000
# An hour, and the year that an API server makes of it by default.
RENEWED_BY_KUBELETS = credentials([(51 * 60 * n, 51) for n in range(20)], 3607, "cp-2") | credentials(
    [(51 * 60 * n, 51) for n in range(20)], YEAR_S, "cp-3"
)
CASES = [
    Case(
        "ReadygateGateOff",
        of_extender("up", "1x30") | of_extender("readygate_feed_connected", "1 0x9 1x20"),
        at=5,
        ends=12,
        labels=CP | {"job": "readygate-extender"},
        meaning="what answers kube-scheduler is gone",
    ),
    Case(
        "ReadygateGateOff",
        of_extender("up", "1 0x9 1x20"),
        at=5,
        ends=12,
        labels=CP | {"job": "readygate-extender"},
        meaning="the whole pod is gone",
    ),
    Case(
        "ReadygateAbsent", of_extender("up", "1 stale _x20 1x20"), at=16, ends=25, labels={"job": "readygate-extender"}
    ),
    Case(
        "ReadygateRegistrationLost",
        {'scheduler_schedule_attempts_total{result="scheduled"}': "0+2x100"}
        | of_extender("readygate_requests_total", "0+2x10 20x50 20+2x40", 'verb="filter", result="answered"'),
        at=35,
        ends=70,
        value="30",
        meaning="they stop while pods are placed",
    ),
    Case(
        "ReadygateUnanswered",
        of_extender("readygate_requests_total", "0 0+3x20 60x40", 'verb="filter", result="stale"'),
        at=12,
        ends=40,
        labels=CP | {"result": "stale"},
    ),
    Case(
        "ReadygateStale",
        of_extender("readygate_cache_age_seconds", "5 100x5 2x20", 'cache="nodes"'),
        at=3,
        ends=10,
        labels=CP | {"cache": "nodes"},
        value="100",
    ),
    Case(
        "ReadygateTokenEnds",
        RENEWED_BY_KUBELETS | credentials([(0, 740), (740 * 60, 60)], DAY_S),
        at=730,
        ends=745,
        labels=CP,
        value="11h 50m 0s",
        meaning="half of a day is over",
    ),
    Case(
        "ReadygateTokenEnds",
        RENEWED_BY_KUBELETS | credentials([(0, 60), (3600, 30)], 3600),
        at=56,
        ends=62,
        labels=CP,
        value="4m 0s",
        meaning="the API server gives an hour",
    ),
    Case(
        "ReadygateSlow",
        of_extender("readygate_request_duration_seconds_bucket", "0x80", 'verb="filter", le="0.1"')
        | of_extender("readygate_request_duration_seconds_bucket", "0+9x30 270x50", 'verb="filter", le="0.25"')
        | of_extender("readygate_request_duration_seconds_bucket", "0+9x30 270x50", 'verb="filter", le="+Inf"'),
        at=20,
        ends=60,
        labels=CP,
    ),
    Case(
        "ReadygateManyClosed",
        gate_nodes("closed", "", "0 4x9 0x20")
        | gate_nodes("open", "", "20 16x9 20x20")
        | gate_nodes("open", "not-gated", "5x30"),
        at=5,
        ends=14,
        labels={"gate": "health"},
        value="20%",
    ),
    Case(
        "ReadygateCapHit", gate_nodes("open", "cap", "0 3x9 0x20"), at=5, ends=14, labels={"gate": "health"}, value="3"
    ),
    Case(
        "ReadygateStorm",
        of_extender("readygate_gate_storms", "0 1x9 0x20", 'gate="health"'),
        at=5,
        ends=14,
        labels={"gate": "health"},
    ),
    Case(
        "ReadygateNodeClosed",
        of_agent("readygate_node_healthy", "1 0x9 1x20") | failing("gate", "failed", "_ 1x9 _x20"),
        at=8,
        ends=12,
        labels=DNS | {"severity": "warning", "state": "failed"},
    ),
    Case(
        "ReadygateCheckBlind",
        of_agent("readygate_node_healthy", "1x60") | failing("gate", "unknown", "_ 1x25 stale"),
        at=20,
        ends=30,
        labels=DNS | {"state": "unknown"},
    ),
    Case(
        "ReadygateCheckWarns", failing("warn", "hung", "_ 1x25 stale"), at=20, ends=30, labels=DNS | {"state": "hung"}
    ),
    Case(
        "ReadygateAgentSilent",
        of_agent("up", "1 0x9 1x20"),
        at=8,
        ends=12,
        labels={"job": "readygate-agent", "node": "n-7"},
    ),
    Case(
        "ReadygateNodesLost",
        of_extender("readygate_nodes", "0 2x9 0x20", f'verdict="{LOST}"'),
        at=8,
        ends=12,
        value="2",
    ),
    Case(
        "ReadygateNoHealthPod",
        of_extender("readygate_nodes", "0 1x25 0x20", 'verdict="node(s) without a health pod"'),
        at=20,
        ends=30,
        value="1",
    ),
    Case(
        "ReadygateOrderForgotten",
        of_extender("readygate_orders", "0 1x740 0x20", 'order="pause"'),
        at=735,
        ends=750,
        labels={"order": "pause"},
    ),
    Case("ReadygateOrderFaulty", of_extender("readygate_order_faults", "0 1x9 0x20"), at=8, ends=12, value="1"),
    Case(
        "ReadygateKicksFail",
        of_extender("readygate_kicks_total", "0 0+1x9 9x40", 'result="Forbidden"'),
        at=10,
        ends=40,
        labels=CP | {"result": "Forbidden"},
    ),
    Case(
        "ReadygateOutletsFail",
        of_extender("readygate_outlet_writes_total", "0 0+1x40 40x60", 'outlet="events", result="Forbidden"'),
        at=30,
        ends=90,
        labels=CP | {"outlet": "events", "result": "Forbidden"},
    ),
]


def expected(case: Case) -> dict[str, Any]:
    """The alert as promtool spells it: what a rule says with the labels and the value of the case."""
    rule = RULES[case.alert]
    labels = case.labels | rule["labels"]
    words = {f"$labels.{name}": value for name, value in labels.items()}
    said = {
        key: re.sub(r"\{\{ (.+?) \}\}", lambda m: words.get(m[1], case.value), t)
        for key, t in rule["annotations"].items()
    }
    return {"exp_labels": labels, "exp_annotations": said}


def asked(case: Case) -> dict[str, Any]:
    return {
        "interval": "1m",
        "name": f"{case.alert} {case.meaning}".strip(),
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": "0m", "alertname": case.alert, "exp_alerts": []},
            {"eval_time": f"{case.at}m", "alertname": case.alert, "exp_alerts": [expected(case)]},
            {"eval_time": f"{case.ends}m", "alertname": case.alert, "exp_alerts": []},
        ],
    }


def promtool(*arguments: str) -> str:
    """What it says; fails where it finds fault."""
    done = subprocess.run([built(PROMTOOL), *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert} {case.meaning}".strip())
def test_an_alert_fires_and_ends(case, tmp_path):
    file = tmp_path / "case.yaml"
    unit = {"rule_files": [str(ALERTS)], "evaluation_interval": "30s", "tests": [asked(case)]}
    file.write_text(yaml.safe_dump(unit))
    promtool("test", "rules", str(file))


def test_every_alert_has_a_case():
    assert sorted(RULES) == sorted({case.alert for case in CASES})


def test_prometheus_takes_the_rules():
    assert f"SUCCESS: {len(RULES)} rules found" in promtool("check", "rules", str(ALERTS))


def test_an_alert_of_a_check_tells_node_check_output_and_what_opens_it():
    said = " ".join(RULES["ReadygateNodeClosed"]["annotations"].values())
    assert [] == [word for word in ("node", "check", "output") if f"$labels.{word}" not in said]
    assert "opens" in RULES["ReadygateNodeClosed"]["annotations"]


def test_every_alert_says_what_to_do_and_where_it_is_described():
    for rule in RULES.values():
        assert {"summary", "description", "opens", "runbook"} == set(rule["annotations"])
        page = ROOT / rule["annotations"]["runbook"]
        assert page.is_file(), page
        assert page.read_text().startswith(f"# {rule['alert']}\n"), page


def test_every_page_of_the_runbook_is_one_of_an_alert():
    pages = {page.name for page in RUNBOOK.glob("*.md")} - {"README.md"}
    assert pages == {Path(rule["annotations"]["runbook"]).name for rule in RULES.values()}
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (RUNBOOK / "README.md").read_text()))
    assert listed == pages


def test_the_commands_that_are_named_are_those_there_are():
    texts = [page.read_text() for page in RUNBOOK.glob("*.md")] + [ALERTS.read_text()]
    named = set(re.findall(r"kubectl\s+readygate\s+([a-z]+(?: node| pod)?(?: --[a-z]+)?)", " ".join(texts)))
    assert named
    for words in named:
        command = [word for word in words.split() if not word.startswith("--")]
        argv = [sys.executable, "-m", "cli", *command, "--help"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (words, done.stderr)
        assert [] == [word for word in words.split() if word not in command and word not in done.stdout]


def of_ours(text: str) -> set[str]:
    return set(re.findall(r"\breadygate_[a-z_]+|\bscheduler_[a-z_]+|\bup(?=\{)", text))


@pytest.fixture
def existing(client, shown) -> set[str]:  # noqa: F811 - the fixtures
    """The series of both halves, as they are served."""
    shown.said = status(credentials_issued=1.0, credentials_expire=2.0)
    checks = b'{mode: pod, checks: [{name: a, exec: {command: ["false"]}}]}'
    engine = CheckEngine([check_spec(check) for check in agent_settings(checks, {}).checks])
    pages = client._client.get("/metrics").text + metrics_page(families(engine, None, Said())).body
    return set(re.findall(r"^# TYPE (\w+) ", pages, re.MULTILINE)) | set(
        re.findall(r"^(\w+)(?=[{ ])", pages, re.MULTILINE)
    )


def test_alerts_are_made_of_metrics_that_exist(existing):
    asked_for = of_ours(" ".join(rule["expr"] for rule in RULES.values()))
    assert asked_for
    assert set() == asked_for - existing - OTHERS


def test_the_dashboard_is_made_of_metrics_that_exist(existing):
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert of_ours(" ".join(expressions))
    assert set() == of_ours(" ".join(expressions)) - existing - OTHERS


def test_prometheus_takes_the_expressions_of_the_dashboard(tmp_path):
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(expressions)]
    file = tmp_path / "panels.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", str(file))


def test_the_chart_carries_the_alerts_and_leads_to_the_runbook_one_names():
    (rule,) = [each for (kind, _, _), each in objects(SUPPORTED["monitoring"]).items() if kind == "PrometheusRule"]
    carried = {one["alert"]: one for group in rule["spec"]["groups"] for one in group["rules"]}
    assert [each["expr"] for each in RULES.values()] == [each["expr"] for each in carried.values()]
    assert carried["ReadygateGateOff"]["annotations"]["runbook"] == "https://wiki.example/readygate/gate-off.md"


def test_tokens_that_are_renewed_in_time_raise_no_alert(tmp_path):
    """By a timer after a quarter of a day, or of the hour that the API server gives, and by kubelets."""
    by_timer = credentials([(360 * 60 * n, 360) for n in range(4)], DAY_S) | credentials(
        [(16 * 60 * n, 16) for n in range(70)], 3600, "cp-4"
    )
    times = [{"eval_time": f"{minute}m", "alertname": "ReadygateTokenEnds", "exp_alerts": []} for minute in range(1000)]
    case = {"interval": "1m", "input_series": [], "alert_rule_test": times}
    case["input_series"] = [{"series": n, "values": v} for n, v in (RENEWED_BY_KUBELETS | by_timer).items()]
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "30s", "tests": [case]}))
    promtool("test", "rules", str(file))
