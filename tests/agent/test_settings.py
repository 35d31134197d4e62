"""The configuration file: what it may say, and the one line for what it may not."""

from pathlib import Path

import pytest

from agent import settings
from component.settings import SettingsError

CHECKS = "checks: [{name: cni, cni: {}}]\n"
KUBELET = "mode: kubelet\nkubelet: {nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /r"
ROOT_KEYS = "mode, listen, log, kubernetes, checks, condition, kubelet"


def parse(text: str, **environ: str) -> settings.Settings:
    return settings.parse(text.encode(), environ)


def test_defaults_of_mode_pod() -> None:
    found = parse("mode: pod\n" + CHECKS)
    assert ("0.0.0.0", 9375, "info") == (found.listen.address, found.listen.port, found.log.level)
    check = found.checks[0]
    assert ("/etc/cni/net.d", ("/opt/cni/bin",)) == (check.cni.conf_dir, check.cni.bin_dirs)
    assert (0, 10, 1, 1, 3, "gate") == (
        check.initial_delay_seconds,
        check.period_seconds,
        check.timeout_seconds,
        check.success_threshold,
        check.failure_threshold,
        check.severity,
    )


def test_defaults_of_mode_kubelet() -> None:
    kubelet = parse(KUBELET + "}").kubelet
    assert ({"cpu": "4", "memory": "8Gi", "pods": "110"}, 40, 10, 110) == (
        kubelet.capacity,
        kubelet.lease_duration_seconds,
        kubelet.node_status_update_seconds,
        kubelet.most_pods,
    )


def test_whole_numbers_are_quantities_too() -> None:
    assert {"cpu": "4", "memory": "8Gi"} == parse(KUBELET + ", capacity: {cpu: 4, memory: 8Gi}}").kubelet.capacity


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        parse("mode: pod\n" + CHECKS).mode = "kubelet"


def test_references_to_the_environment() -> None:
    text = "mode: pod\nlisten: {address: $(POD_IP)}\ncondition: {publish: true, podNamespace: here}\n" + CHECKS
    found = parse(text, POD_IP="10.0.0.1", POD_NAME="p", POD_UID="u")
    assert ("10.0.0.1", "p", "here", "u") == (
        found.listen.address,
        found.condition.pod_name,
        found.condition.pod_namespace,
        found.condition.pod_uid,
    )


def test_commands_are_never_expanded() -> None:
    found = parse("mode: pod\nchecks: [{name: x, exec: {command: [sh, -c, echo $(date)]}}]")
    assert found.checks[0].exec.command == ("sh", "-c", "echo $(date)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "mode: missing, allowed: pod, kubelet", id="an empty file"),
        pytest.param("[1]", f"is a list, allowed: a mapping with the keys {ROOT_KEYS}", id="a list"),
        pytest.param("a: [", "line 1, column 5: expected the node content", id="no YAML"),
        pytest.param("listen: {}", "mode: missing, allowed: pod, kubelet", id="no mode"),
        pytest.param("mode: pods", 'mode: is the text "pods", allowed: pod, kubelet', id="another mode"),
        pytest.param(
            "mode: pod\nchecks: []\nchecks: []",
            "line 3, column 1: the key checks is given twice, allowed: once",
            id="a second list of checks",
        ),
        pytest.param("mode: pod\nchekcs: []", f"chekcs: unknown key, allowed: {ROOT_KEYS}", id="an unknown key"),
        pytest.param("mode: pod\n1: 2", "line 2, column 1: a key that is not text", id="a key that is no text"),
        pytest.param(
            "mode: pod\nlisten: {port: '80'}",
            'listen.port: is the text "80", allowed: a port, 1 to 65535',
            id="a wrong type",
        ),
        pytest.param(
            "mode: pod\nlisten: {port: 0}", "listen.port: is 0, allowed: a port, 1 to 65535", id="a port of 0"
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, cni: {confdir: x}}]",
            "checks[0].cni.confdir: unknown key, allowed: confDir, binDirs",
            id="an unknown key deep down",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, cni: {}, severity: fatal}]",
            'checks[0].severity: is the text "fatal", allowed: gate, warn',
            id="another severity",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, cni: {}, periodSeconds: -1}]",
            "checks[0].periodSeconds: is -1, allowed: a whole number, 0 or more",
            id="a negative period",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: A b, cni: {}}]",
            'checks[0].name: is the text "A b", allowed: lower case letters, digits and -',
            id="a name with a space",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a}]",
            "checks[0]: has no kind, allowed: one of cni, exec, httpGet, tcpSocket",
            id="no handler",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, cni: {}, tcpSocket: {port: 1}}]",
            "checks[0]: has cni and tcpSocket, allowed: one of cni, exec, httpGet, tcpSocket",
            id="two handlers",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, exec: {command: []}}]",
            "checks[0].exec.command: is an empty list, allowed: ",
            id="an empty command",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, httpGet: {port: 1, scheme: FTP}}]",
            'checks[0].httpGet.scheme: is the text "FTP", allowed: HTTP, HTTPS',
            id="another scheme",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, httpGet: {port: 1, httpHeaders: [{name: 'a b'}]}}]",
            'checks[0].httpGet.httpHeaders[0].name: is the text "a b", allowed: ',
            id="a header name with a space",
        ),
        pytest.param(
            "mode: pod\nchecks: [{name: a, cni: {}}, {name: a, cni: {}}]",
            "checks[1].name: a is there twice, allowed: a name for each check",
            id="a name twice",
        ),
        pytest.param("mode: pod", "checks: missing, allowed: a list of at least one check", id="no checks"),
        pytest.param("mode: kubelet", "kubelet: missing, allowed: a mapping with nodeName", id="no kubelet"),
        pytest.param(
            KUBELET + "}\n" + CHECKS,
            "checks: not for mode kubelet, allowed: only with mode: pod",
            id="checks in mode kubelet",
        ),
        pytest.param(
            "mode: pod\n" + CHECKS + KUBELET[14:] + "}",
            "kubelet: not for mode pod, allowed: only with mode: kubelet",
            id="kubelet in mode pod",
        ),
        pytest.param(
            KUBELET.replace("/24", "/33") + "}", "kubelet.podCIDR: '127.20.1.0/33' does not", id="a broken CIDR"
        ),
        pytest.param(
            KUBELET.replace("/24", "/32") + "}",
            "kubelet.podCIDR: is 127.20.1.0/32, allowed: an IPv4 network of at most /30",
            id="a narrow CIDR",
        ),
        pytest.param(
            KUBELET.replace("nodeName: n", "nodeName: N_1") + "}",
            'kubelet.nodeName: is the text "N_1", allowed: a DNS name',
            id="a node name",
        ),
        pytest.param(
            KUBELET + ", capacity: {cpu: 0x" + "f" * 9999 + "}}",
            "kubelet.capacity.cpu: is a huge number, allowed: a quantity",
            id="a number without end",
        ),
        pytest.param(
            KUBELET.replace("nodeName: n", 'nodeName: "n\\n"') + "}", "kubelet.nodeName: is the text", id="a line"
        ),
        pytest.param(
            KUBELET + ", capacity: {cpu: many}}",
            'kubelet.capacity.cpu: is the text "many", allowed: a quantity',
            id="no quantity",
        ),
        pytest.param(
            "mode: pod\nlisten: {address: $(POD_IP)}\n" + CHECKS,
            "listen.address: the environment variable POD_IP is not set",
            id="an environment variable that is not there",
        ),
        pytest.param(
            "mode: pod\ncondition: {publish: true}\n" + CHECKS, "condition.podName: the environment", id="no pod"
        ),
        pytest.param("mode: " + "[" * 1000, "not YAML: nested too deeply", id="a deep file"),
    ],
)
def test_one_line_names_the_key_and_the_cause(text: str, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text)
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match="cannot be read: No such file or directory, allowed: a file that this user may read"
    ):
        settings.load(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param("", 110, id="the default"),
        pytest.param("maxPods: 20", 20, id="maxPods alone"),
        pytest.param("capacity: {cpu: 1, pods: 50}", 50, id="capacity alone"),
        pytest.param("maxPods: 20, capacity: {cpu: 1, pods: 50}", 20, id="both: maxPods"),
        pytest.param("capacity: {cpu: 1}", 110, id="a capacity without pods"),
    ],
)
def test_what_the_node_reports_and_what_it_admits_are_one_number(more: str, expected: int) -> None:
    text = f"mode: kubelet\nkubelet: {{nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /run/x, {more}}}"
    loaded = settings.parse(text.encode(), {})
    assert loaded.kubelet is not None
    assert expected == loaded.kubelet.most_pods


def test_what_becomes_of_an_unknown_check_is_keep_or_close() -> None:
    text = "mode: pod\nchecks:\n- {name: a, cni: {}}\n- {name: b, cni: {}, unknown: close}"
    assert ["keep", "close"] == [check.unknown for check in settings.parse(text.encode(), {}).checks]
    with pytest.raises(SettingsError, match=r"checks\[0\]\.unknown: .*allowed: keep, close"):
        settings.parse(b"mode: pod\nchecks: [{name: a, cni: {}, unknown: open}]", {})
