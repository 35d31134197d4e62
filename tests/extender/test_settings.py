from pathlib import Path

import pytest

from extender.settings import Settings, SettingsError, load, parse


def test_an_empty_file_gives_the_defaults():
    assert Settings() == parse("")


def test_every_key_by_its_name():
    settings = parse("""
listen: {address: "::1", port: 0}
kubernetes: {kubeconfig: /k, server: "http://127.0.0.1:1"}
gate:
  healthPods: {namespace: gates, labelSelector: "app=probe,tier in (x)", daemonSet: null}
  exempt: {daemonSetPods: false, namespaces: [], label: null}
  heartbeat: {limitSeconds: 0}
  missingGraceSeconds: 1.5
  staleLimitSeconds: 90
kick: {enabled: false, repeatAfterSeconds: 0}
log: {level: debug}
""")
    assert (settings.listen.address, settings.kubernetes.kubeconfig, settings.log.level) == ("::1", "/k", "debug")
    assert (settings.gate.health_pods.daemon_set, settings.gate.exempt.label) == (None, None)
    assert (settings.gate.exempt.namespaces, settings.gate.missing_grace_seconds) == ((), 1.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lisen: {}", "lisen: unknown key, allowed here: listen, kubernetes, gate, kick, log"),
        ("gate: {exempt: {label: x, labels: y}}", "gate.exempt.labels: unknown key, allowed here: daemonSetPods,"),
        ("listen: {port: abc}", "listen.port: expected int, got str, allowed: a port"),
        ("listen: {port: 70000}", "listen.port: expected int <= 65535, allowed: a port"),
        ("listen: 5", "listen: must be a mapping, allowed keys: address, port"),
        ("listen:", "listen: must be a mapping, allowed keys: address, port"),
        ("[]", "the document: must be a mapping, allowed keys: listen,"),
        ("log: {level: loud}", "log.level: not an allowed value 'loud', allowed: debug, info, warning, error"),
        ("kick: {enabled: 'yes'}", "kick.enabled: expected bool, got str, allowed: true or false"),
        ("kubernetes: {kubeconfig: 5}", "kubernetes.kubeconfig: expected str | null, got int, allowed: text or null"),
        (
            "gate: {exempt: {namespaces: kube-system}}",
            "gate.exempt.namespaces: expected array, got str, allowed: a list",
        ),
        ("gate: {exempt: {namespaces: [A_B]}}", "gate.exempt.namespaces[0]: expected str"),
        ("gate: {heartbeat: {limitSeconds: 3}}", "gate.heartbeat.limitSeconds: 3 is too short, allowed: 0 (off) or 5"),
        (
            "gate: {staleLimitSeconds: 60}",
            "gate.staleLimitSeconds: expected float >= 75.0, allowed: seconds, 75 to 86400",
        ),
        ("gate: {missingGraceSeconds: -1}", "gate.missingGraceSeconds: expected float >= 0.0, allowed: seconds"),
        ("gate: [", "line 1, column 8: not YAML"),
        ("\x00", "not YAML"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 60 else "",
)
def test_what_is_wrong_is_named_with_its_key_and_what_is_allowed(text, expected):
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_file_is_named(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"absent.yaml: cannot be read: No such file"):
        load(tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("x: 1")
    with pytest.raises(SettingsError, match=r"bad.yaml: x: unknown key"):
        load(tmp_path / "bad.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"latin.yaml: is not UTF-8"):
        load(tmp_path / "latin.yaml")
