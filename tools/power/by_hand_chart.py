"""Faults of the chart: its templates, values and alerts. `make manifests` runs after each."""

from tools.power.by_hand import ByHand

_TESTS = (
    "tests/charts",
    "tests/playbooks/test_roles.py",
    "tests/playbooks/test_rights.py",
    "tests/playbooks/test_overlay.py",
)
_REAL = ("tests/plane/test_chart.py", "tests/hosts/chart", "tests/hosts/test_hosts_chart.py")
_CHART = "charts/readygate"


def _row(file: str, old: str, new: str, what: str) -> ByHand:
    return ByHand("chart", f"{_CHART}/{file}", old, new, what, (*_TESTS, *_REAL), regenerate=True)


_AGENT, _EXTENDER = "templates/agent/daemonset.yaml", "templates/extender/daemonset.yaml"
_AGENT_SETTINGS, _EXTENDER_SETTINGS = "templates/agent/_settings.tpl", "templates/extender/_settings.tpl"
CHART: tuple[ByHand, ...] = (
    _row("values.yaml", "enforcement: shadow", "enforcement: armed", "a new release refuses pods at once"),
    _row("values.yaml", "maxUnavailable: 10%", "maxUnavailable: 100%", "a roll-out replaces all agents at once"),
    _row("values.yaml", "minReadySeconds: 60", "minReadySeconds: 6", "a roll-out goes on before a check can fail"),
    _row(
        _AGENT,
        "          httpGet: {path: /readyz, port: health}",
        "          httpGet: {path: /livez, port: health}",
        "a pod is Ready even if its checks fail",
    ),
    _row(_AGENT, "      readinessGates:\n", "      readinessGate:\n", "the agent's condition makes no pod unready"),
    _row(
        _AGENT,
        "      tolerations:\n      - operator: Exists\n      terminationGracePeriodSeconds: 10",
        "      terminationGracePeriodSeconds: 10",
        "no agent on tainted nodes",
    ),
    _row(
        _AGENT,
        "readOnly: {{ not (has $path $taken.writes) }}",
        "readOnly: {{ has $path $taken.writes }}",
        "folders that checks write to are read-only",
    ),
    _row(_AGENT, "fieldPath: metadata.uid", "fieldPath: metadata.name", "the agent does not know its pod's uid"),
    _row(_AGENT_SETTINGS, '"stateFile" "/state/checks.json"', '"stateFile" "/tmp/checks.json"', "state in /tmp"),
    _row(_AGENT_SETTINGS, '"severity" "gate"', '"severity" "warning"', "a node without a CNI stays open"),
    _row(
        _AGENT_SETTINGS,
        '"checkPeriodSeconds" 2 "checkFailureThreshold" 2 "probePeriodSeconds" 1',
        '"checkPeriodSeconds" 20 "checkFailureThreshold" 2 "probePeriodSeconds" 1',
        "the fast profile is slow",
    ),
    _row(_AGENT_SETTINGS, "ternary 0 69375 (or ", "ternary 0 69375 (and ", "no root while the CNI is checked"),
    _row(
        "templates/agent/networkpolicy.yaml",
        'ternary "[Ingress, Egress]" "[Ingress]" $peers',
        'ternary "[Ingress, Egress]" "[Egress]" $peers',
        "anyone may keep the agent's port busy, and the agent reaches no API server",
    ),
    _row(
        "templates/agent/rights.yaml",
        "  resources: [pods/status]\n  verbs: [patch]",
        "  resources: [pods/status]\n  verbs: [update]",
        "the agent may not write its condition",
    ),
    _row(_EXTENDER, "      maxUnavailable: 1\n", "      maxUnavailable: 3\n", "all extenders are replaced at once"),
    _row(
        _EXTENDER,
        "      priorityClassName: system-cluster-critical",
        "      priorityClassName: system-cluster-kritical",
        "no pod of the extender is created",
    ),
    _row(_EXTENDER, "path: /readyz, port: {{ $port }}", "path: /livez, port: {{ $port }}", "Ready without verdicts"),
    _row(
        _EXTENDER,
        "add: [NET_BIND_SERVICE, SETGID, SETUID]}",
        "add: [NET_BIND_SERVICE, SETUID]}",
        "the extender cannot leave root",
    ),
    _row(
        _EXTENDER_SETTINGS, '"user" 69376', '"user" 69375', "the extender becomes a user that its volumes are not for"
    ),
    _row(_EXTENDER_SETTINGS, '"mode" "protect"', '"mode" "enforce"', "a dead extender stops scheduling"),
    _row(
        _EXTENDER_SETTINGS,
        'printf "app.kubernetes.io/name=%s" $name',
        'printf "app.kubernetes.io/part-of=%s" $name',
        "the gate finds no health pod",
    ),
    _row(
        "templates/extender/rights.yaml",
        "  resources: [nodes]\n  verbs: [list, watch, patch]",
        "  resources: [nodes]\n  verbs: [list, watch]",
        "the extender cannot kick a node",
    ),
    _row(
        "templates/extender/rights.yaml",
        "  resourceNames: [{{ $name }}]\n  verbs: [get, update]",
        "  resourceNames: [{{ $name }}]\n  verbs: [get]",
        "no replica keeps the Lease by which one writes",
    ),
    _row(
        "templates/hooks/uninstall.yaml",
        "command: [readygate, unregistered, ",
        "command: [readygate, status, ",
        "helm uninstall removes an extender that kube-scheduler still calls",
    ),
    _row(
        "files/alerts.yaml",
        'up{job="readygate-extender"} == 0\n',
        'up{job="readygate-extender"} == 2\n',
        "no alert on an extender that is down",
    ),
)
