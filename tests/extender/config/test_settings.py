import math
from pathlib import Path

import pytest

from component.settings import SettingsError
from extender.config.gates import (
    Caps,
    Condition,
    Conditions,
    Damping,
    For,
    Gate,
    HealthPods,
    Orders,
    PodStarts,
    PriorityRange,
    Storm,
)
from extender.config.outlets import Events, NodeCondition, Outlets
from extender.config.settings import Exempt, Kubernetes, Settings, Tls, load, parse


def test_an_empty_file_gives_the_defaults():
    assert Settings() == parse("")


EVERY_KEY = """
listen:
  address: "::1"
  port: 0
  user: 69376
  hosts: [extender.example.com, "2001:db8::1"]
  tls: {certificate: /c, key: /k, clientCA: /ca, clientNames: ["system:kube-scheduler"]}
kubernetes: {kubeconfig: /k, server: "http://127.0.0.1:1"}
gates:
- name: gpu
  healthPods: {namespace: gates, labelSelector: "app=probe,tier in (x)", daemonSet: null}
  missingGraceSeconds: 1.5
  replaceGraceSeconds: 2.5
  enforcement: shadow
  severity: preferNot
  nodes: pool in (gpu)
  for:
    podSelector: app=train
    namespaces: [ml]
    resources: [nvidia.com/gpu]
    deviceClasses: [gpu.nvidia.com]
    csiDrivers: [ebs.csi.aws.com]
    priority: {from: -5, to: 1000}
    schedulerNames: [default-scheduler]
  conditions:
    allOf: [{of: pod, type: example.com/Tested, status: "False", missing: open, unknown: open}]
    anyOf: [{of: node, type: KernelDeadlock, staleAfterSeconds: 600, stale: open}]
  damping: {minHealthySeconds: 5, ceilingSeconds: 60, windowSeconds: 600}
  cap: 25%
- name: starts
  podStarts: {namespaces: 4, withinSeconds: 600, stuckSeconds: 60}
exempt: {daemonSetPods: false, namespaces: [storage], label: null, labelNamespaces: [a, "*"]}
heartbeat: {limitSeconds: 0}
staleLimitSeconds: 90
cap: {cluster: null, gate: 5, zone: 50%, pool: 1, leaveInPool: 0, poolLabel: pool, zoneLabel: zone, newNodeSeconds: 60}
storm: {percent: 10, atLeast: 5, withinSeconds: 30, calmSeconds: 90}
orders: {configMap: null}
outlets: {nodeCondition: {enabled: false}, events: {perSecond: 1}}
kick: {enabled: false, repeatAfterSeconds: 0}
feed: {socket: /run/readygate/feed/socket}
statusApi: {address: "::", port: 80, sharesPort: true, hosts: [pages.example.com]}
metrics: {address: $(HOST_IP)}
log: {level: debug}
"""


def test_every_key_by_its_name():
    settings = parse(EVERY_KEY)
    assert (settings.listen.address, settings.kubernetes.kubeconfig, settings.log.level) == ("::1", "/k", "debug")
    assert (settings.listen.user, settings.status_api.shares_port) == (69376, True)
    assert settings.listen.hosts == ("extender.example.com", "2001:db8::1")
    assert settings.listen.tls == Tls("/c", "/k", "/ca", ("system:kube-scheduler",))
    assert (settings.feed.socket, settings.status_api.port) == ("/run/readygate/feed/socket", 80)
    assert (settings.status_api.address, settings.status_api.hosts) == ("::", ("pages.example.com",))
    assert (settings.metrics.address, settings.metrics.port) == ("$(HOST_IP)", 9379)
    assert (settings.heartbeat.limit_s, settings.stale_limit_seconds) == (math.inf, 90)
    assert settings.exempt == Exempt(False, ("storage",), None, ("a", "*"))
    assert settings.cap == Caps(None, 5, "50%", 1, 0, "pool", "zone", 60)
    assert settings.storm == Storm(10, 5, 30, 90)
    assert settings.orders == Orders(None)
    assert settings.outlets == Outlets(NodeCondition(enabled=False), Events(per_second=1))
    assert settings.gate == Gate(
        name="gpu",
        enforcement="shadow",
        severity="preferNot",
        health_pods=HealthPods("gates", "app=probe,tier in (x)", None),
        pods_for=For(
            pod_selector="app=train",
            namespaces=("ml",),
            resources=("nvidia.com/gpu",),
            device_classes=("gpu.nvidia.com",),
            csi_drivers=("ebs.csi.aws.com",),
            priority=PriorityRange(-5, 1000),
            scheduler_names=("default-scheduler",),
        ),
        nodes="pool in (gpu)",
        conditions=Conditions(
            (Condition("pod", "example.com/Tested", "False", "open", "open"),),
            (Condition("node", "KernelDeadlock", stale_after_seconds=600, stale="open"),),
        ),
        missing_grace_seconds=1.5,
        replace_grace_seconds=2.5,
        damping=Damping(5, 60, 600),
        cap="25%",
    )


def test_a_gate_by_how_pods_start_would_rather_have_no_pod_there_unless_it_is_told_to_refuse():
    given = parse(EVERY_KEY).gates[1]
    assert (PodStarts(4, 600, 60), "preferNot") == (given.pod_starts, given.severity_in_force)
    assert "gate" == parse("gates: [{severity: gate, podStarts: {}}]").gate.severity_in_force
    assert "gate" == parse("").gate.severity_in_force


def test_a_token_and_an_authority_in_files():
    given = parse("kubernetes: {server: 'https://192.0.2.11:6443', tokenFile: /c/token, caFile: /c/ca.crt}").kubernetes
    assert Kubernetes(server="https://192.0.2.11:6443", token_file="/c/token", ca_file="/c/ca.crt") == given


def test_what_can_be_switched_off_by_a_word():
    settings = parse("{cap: off, storm: off, gates: [{damping: off, cap: off}]}")
    assert (settings.cap, settings.storm, settings.gate.damping, settings.gate.cap) == (False, False, False, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "lisen: {}",
            "lisen: unknown key, allowed: listen, kubernetes, gates, exempt, heartbeat,",
        ),
        ("exempt: {label: x, labels: y}", "exempt.labels: unknown key, allowed: daemonSetPods,"),
        ("listen: {port: abc}", 'listen.port: is the text "abc", allowed: a port, 0 to 65535'),
        ("listen: {port: 70000}", "listen.port: is 70000, allowed: a port, 0 to 65535"),
        ("listen: {hosts: [a, 'b:1']}", 'listen.hosts[1]: is the text "b:1", allowed: a DNS name or an IP address,'),
        ("listen: {hosts: [A.example]}", 'listen.hosts[0]: is the text "A.example", allowed: a DNS name or'),
        ("listen: {tls: {certificate: /c}}", "listen.tls.key: missing, allowed: text that is not empty"),
        (
            "listen: {tls: {certificate: /c, key: /k, clientNames: [a]}}",
            "listen.tls.clientNames: is a list, allowed: none without a clientCA that vouches for the names",
        ),
        ("feed: {socket: run/feed}", 'feed.socket: is the text "run/feed", allowed: an absolute path'),
        (
            "metrics: {address: 192.0.2.1, port: 9377}",
            "metrics.port: is 9377, allowed: a port other than statusApi.port",
        ),
        ("metrics: {address: ''}", "metrics.address: "),
        ("statusApi: {hosts: ['a b']}", 'statusApi.hosts[0]: is the text "a b", allowed: a DNS name or an IP address,'),
        ("listen: {user: 0}", "listen.user: is 0, allowed: the number of a user, 1 and more"),
        (
            "kubernetes: {server: 'https://a', tokenFile: /t}",
            "kubernetes.tokenFile: is not enough, allowed: server, tokenFile and caFile, all three or none",
        ),
        (
            "kubernetes: {server: 'https://a', tokenFile: /t, caFile: /c, kubeconfig: /k}",
            "kubernetes.kubeconfig: is a text, allowed: null with tokenFile and caFile",
        ),
        ("listen: 5", "listen: is 5, allowed: a mapping with the keys address, port"),
        ("listen:", "listen: is empty, allowed: a mapping with the keys address, port"),
        (
            "outlets: {nodeCondition: {refreshSeconds: 5}}",
            "outlets.nodeCondition.refreshSeconds: is 5, allowed: 0 (on change only) or 30 and more",
        ),
        (
            "outlets: {events: {perSecond: 0}}",
            "outlets.events.perSecond: is 0, allowed: writes a second, 0.1 to 500",
        ),
        ("outlets: {taint: {}}", "outlets.taint: unknown key, allowed: nodeCondition, events"),
        ("[]", "is an empty list, allowed: a mapping with the keys listen,"),
        ("log: {level: loud}", 'log.level: is the text "loud", allowed: debug, info, warning, error'),
        ("kick: {enabled: 'yes'}", 'kick.enabled: is the text "yes", allowed: true or false'),
        ("kubernetes: {kubeconfig: 5}", "kubernetes.kubeconfig: is 5, allowed: text that is not empty or null"),
        (
            "exempt: {namespaces: kube-system}",
            'exempt.namespaces: is the text "kube-system", allowed: a list, each a DNS label',
        ),
        (
            "exempt: {namespaces: [A_B]}",
            'exempt.namespaces[0]: is the text "A_B", allowed: a DNS label',
        ),
        (
            "heartbeat: {limitSeconds: 3}",
            "heartbeat.limitSeconds: is 3, allowed: 0 (off) or 5 and more",
        ),
        (
            "heartbeat: {agents: {limitSeconds: 3}}",
            "heartbeat.agents.limitSeconds: is 3, allowed: 8 and more",
        ),
        ("staleLimitSeconds: 60", "staleLimitSeconds: is 60, allowed: seconds, 75 to 86400"),
        ("gates: [{missingGraceSeconds: -1}]", "gates[0].missingGraceSeconds: is -1, allowed: seconds, 0 to 86400"),
        ("gates: [{}]\ngates: [{}]", "line 2, column 1: the key gates is given twice, allowed: once"),
        (
            "gate: {}",
            "gate: unknown key, allowed: listen, kubernetes, gates, exempt, heartbeat,",
        ),
        ("gates: {}", "gates: is an empty mapping, allowed: a list, each a mapping with the keys name, enforcement,"),
        ("gates: []", "gates: is an empty list, allowed: at least one gate"),
        (f"gates: [{', '.join(f'{{name: g{i}}}' for i in range(33))}]", "gates: has 33 entries, allowed: 32 at most"),
        ("gates: [{name: A_B}]", 'gates[0].name: is the text "A_B", allowed: a DNS label'),
        ("gates: [", "line 1, column 9: expected the node content"),
        ("\x00", "not YAML"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)
def test_what_is_wrong_is_named_with_its_key_and_what_is_allowed(text, expected):
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_the_file_is_named(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"absent.yaml: cannot be read: No such file"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("x: 1")
    with pytest.raises(SettingsError, match=r"bad.yaml: x: unknown key"):
        load(tmp_path / "bad.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"latin.yaml: not YAML: 'utf-8' codec"):
        load(tmp_path / "latin.yaml")
