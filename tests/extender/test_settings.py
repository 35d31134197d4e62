import math
from pathlib import Path

import pytest

from component.settings import SettingsError
from extender.settings import Settings, Tls, load, parse


def test_an_empty_file_gives_the_defaults():
    assert Settings() == parse("")


def test_every_key_by_its_name():
    settings = parse("""
listen:
  address: "::1"
  port: 0
  hosts: [extender.example.com, "2001:db8::1"]
  tls: {certificate: /c, key: /k, clientCA: /ca, clientNames: ["system:kube-scheduler"]}
kubernetes: {kubeconfig: /k, server: "http://127.0.0.1:1"}
gates:
- name: gpu
  healthPods: {namespace: gates, labelSelector: "app=probe,tier in (x)", daemonSet: null}
  exempt: {daemonSetPods: false, namespaces: [], label: null}
  heartbeat: {limitSeconds: 0}
  missingGraceSeconds: 1.5
  staleLimitSeconds: 90
kick: {enabled: false, repeatAfterSeconds: 0}
feed: {socket: /run/readygate/feed/socket}
people: {address: "::", port: 80, hosts: [pages.example.com]}
log: {level: debug}
""")
    assert (settings.listen.address, settings.kubernetes.kubeconfig, settings.log.level) == ("::1", "/k", "debug")
    assert settings.listen.hosts == ("extender.example.com", "2001:db8::1")
    assert settings.listen.tls == Tls("/c", "/k", "/ca", ("system:kube-scheduler",))
    assert (settings.feed.socket, settings.people.port) == ("/run/readygate/feed/socket", 80)
    assert (settings.people.address, settings.people.hosts) == ("::", ("pages.example.com",))
    assert (settings.gate.name, settings.gate.heartbeat.limit_s) == ("gpu", math.inf)
    assert (settings.gate.health_pods.daemon_set, settings.gate.exempt.label) == (None, None)
    assert (settings.gate.exempt.namespaces, settings.gate.missing_grace_seconds) == ((), 1.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lisen: {}", "lisen: unknown key, allowed: listen, kubernetes, gates, kick, feed, people, log"),
        ("gates: [{exempt: {label: x, labels: y}}]", "gates[0].exempt.labels: unknown key, allowed: daemonSetPods,"),
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
        ("people: {hosts: ['a b']}", 'people.hosts[0]: is the text "a b", allowed: a DNS name or an IP address,'),
        ("listen: 5", "listen: is 5, allowed: a mapping with the keys address, port"),
        ("listen:", "listen: is empty, allowed: a mapping with the keys address, port"),
        ("[]", "is an empty list, allowed: a mapping with the keys listen,"),
        ("log: {level: loud}", 'log.level: is the text "loud", allowed: debug, info, warning, error'),
        ("kick: {enabled: 'yes'}", 'kick.enabled: is the text "yes", allowed: true or false'),
        ("kubernetes: {kubeconfig: 5}", "kubernetes.kubeconfig: is 5, allowed: text that is not empty or null"),
        (
            "gates: [{exempt: {namespaces: kube-system}}]",
            'gates[0].exempt.namespaces: is the text "kube-system", allowed: a list, each a DNS label',
        ),
        (
            "gates: [{exempt: {namespaces: [A_B]}}]",
            'gates[0].exempt.namespaces[0]: is the text "A_B", allowed: a DNS label',
        ),
        (
            "gates: [{heartbeat: {limitSeconds: 3}}]",
            "gates[0].heartbeat.limitSeconds: is 3, allowed: 0 (off) or 5 and more",
        ),
        ("gates: [{staleLimitSeconds: 60}]", "gates[0].staleLimitSeconds: is 60, allowed: seconds, 75 to 86400"),
        ("gates: [{missingGraceSeconds: -1}]", "gates[0].missingGraceSeconds: is -1, allowed: seconds, 0 to 86400"),
        ("gates: [{}]\ngates: [{}]", "line 2, column 1: the key gates is given twice, allowed: once"),
        ("gate: {}", "gate: unknown key, allowed: listen, kubernetes, gates, kick, feed, people, log"),
        ("gates: {}", "gates: is an empty mapping, allowed: a list, each a mapping with the keys name, healthPods,"),
        ("gates: []", "gates: has 0 entries, allowed: one at present"),
        ("gates: [{name: a}, {name: b}]", "gates: has 2 entries, allowed: one at present"),
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
