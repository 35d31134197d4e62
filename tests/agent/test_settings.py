"""The configuration file: what it may say, and the one line for what it may not."""

from pathlib import Path

import pytest

from agent import settings
from agent.checks import catalogue
from component.settings import SettingsError

CHECKS = "checks: [{name: cni, cni: {}}]\n"
KUBELET = "mode: kubelet\nkubelet: {nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /r"
ROOT_KEYS = "mode, listen, log, kubernetes, profile, checks, stateFile, condition, kubelet, node"


def parse(text: str, **environ: str) -> settings.Settings:
    return settings.parse(text.encode(), environ)


def test_defaults_of_mode_pod() -> None:
    found = parse("mode: pod\n" + CHECKS)
    assert ("::", 9375, "info") == (found.listen.address, found.listen.port, found.log.level)
    check = found.checks[0]
    assert ("/etc/cni/net.d", ("/opt/cni/bin",)) == (check.cni.conf_dir, check.cni.bin_dirs)
    assert (0, 10, 0, 1, 3, "gate") == (
        check.initial_delay_seconds,
        check.period_seconds,
        check.timeout_seconds,
        check.success_threshold,
        check.failure_threshold,
        check.severity,
    )


def test_defaults_of_mode_kubelet() -> None:
    kubelet = parse(KUBELET + "}").kubelet
    assert ({}, 40, 10, 110) == (
        kubelet.capacity,
        kubelet.lease_duration_seconds,
        kubelet.node_status_update_seconds,
        kubelet.most_pods,
    )


def test_defaults_of_mode_node() -> None:
    """No check is needed: the second opinion is enough to run for."""
    found = parse(NODE + "}")
    assert found.node is not None
    (health_pods,) = found.node.health_pods
    assert ("readygate-system", "app.kubernetes.io/name=readygate-agent", "readygate-agent") == (
        health_pods.namespace,
        health_pods.label_selector,
        health_pods.daemon_set,
    )
    assert ((), True, "http://127.0.0.1:10248/healthz", 24, 10) == (
        found.checks,
        found.node.publish,
        found.node.kubelet_healthz,
        found.node.lease_limit_seconds,
        found.node.disagreement_seconds,
    )


def test_checks_of_a_profile_may_be_named_and_without_names_there_are_none() -> None:
    found = parse(
        f"profile: gpu\n{NODE}, healthPods: [{{}}, {{namespace: g, labelSelector: a=b, checks: [gpu, time]}}]}}"
    )
    assert found.node is not None
    assert [None, ("gpu", "time")] == [one.checks for one in found.node.health_pods]


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


def row(name: str, text: str, expected: str) -> object:
    """expected: how the one line begins."""
    return pytest.param(text, expected, id=name)


def pod_row(name: str, text: str, expected: str) -> object:
    """text: what mode pod has beside its mode."""
    return row(name, f"mode: pod\n{text}", expected)


def check_row(name: str, fields: str, expected: str) -> object:
    """fields: of the one check, beside its name; expected: behind checks[0]."""
    return pod_row(name, f"checks: [{{name: a, {fields}}}]", f"checks[0]{expected}")


def kubelet_row(name: str, change: tuple[str, str], expected: str) -> object:
    """change: what stands in the good configuration, and what is put there instead."""
    assert change[0] in KUBELET
    return row(name, KUBELET.replace(*change) + "}", f"kubelet.{expected}")


def cri_row(name: str, given: str, expected: str) -> object:
    """given: the section cri, and what comes behind it."""
    root = "" if "rootDir" in given else ", rootDir: /r"
    return row(name, f"mode: kubelet\nkubelet: {{nodeName: n, cri: {given}{root}}}", f"kubelet.{expected}")


NODE = "mode: node\nnode: {name: n, server: 'https://192.0.2.1:6443'"


def node_row(name: str, fields: str, expected: str) -> object:
    """fields: of the section node, beside its name and server."""
    return row(name, f"{NODE}, {fields}}}", f"node.{expected}")


def names_row(name: str, given: str, expected: str) -> object:
    """given: `checks` of the second of two entries, beside two checks; expected: behind that key."""
    checks = "checks: [{name: disk, tcpSocket: {port: 1}}, {name: gpu, gpu: {}}]"
    pods = f"healthPods: [{{}}, {{namespace: g, labelSelector: a=b, checks: {given}}}]"
    return row(name, f"{NODE}, {pods}}}\n{checks}", f"node.healthPods[1].checks{expected}")


A_LIST = f"is a list, allowed: a mapping with the keys {ROOT_KEYS}"
TWO_CHECKS = "checks: [{name: a, cni: {}}, {name: a, cni: {}}]"
TWICE = "line 3, column 1: the key checks is given twice, allowed: once"
KINDS = f"allowed: one of {', '.join(catalogue.KINDS)}"
PORT = "allowed: a port, 1 to 65535"
NAME = "allowed: lower case letters, digits and -"
NO_ADDRESS = "listen: {address: $(POD_IP)}\n" + CHECKS
NO_ADDRESS_IS = "listen.address: the environment variable POD_IP is not set"
HEADER = "httpGet: {port: 1, httpHeaders: [{name: 'a b'}]}"
ENDLESS = "/r, capacity: {cpu: 0x" + "f" * 9999 + "}"
QUANTITY = "allowed: a quantity"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        row("an empty file", "", "mode: missing, allowed: pod, node, kubelet"),
        row("a list", "[1]", A_LIST),
        row("no YAML", "a: [", "line 1, column 5: expected the node content"),
        row("a deep file", "mode: " + "[" * 1000, "not YAML: nested too deeply"),
        row("no mode", "listen: {}", "mode: missing, allowed: pod, node, kubelet"),
        row("another mode", "mode: pods", 'mode: is the text "pods", allowed: pod, node, kubelet'),
        pod_row("a second list of checks", "checks: []\nchecks: []", TWICE),
        pod_row("an unknown key", "chekcs: []", f"chekcs: unknown key, allowed: {ROOT_KEYS}"),
        pod_row("a key that is no text", "1: 2", "line 2, column 1: a key that is not text"),
        pod_row("a wrong type", "listen: {port: '80'}", f'listen.port: is the text "80", {PORT}'),
        pod_row("a port of 0", "listen: {port: 0}", f"listen.port: is 0, {PORT}"),
        pod_row("an environment variable that is not there", NO_ADDRESS, NO_ADDRESS_IS),
        pod_row("no pod", "condition: {publish: true}\n" + CHECKS, "condition.podName: the environment"),
        pod_row("no checks", "", "checks: missing, allowed: a list of at least one check"),
        pod_row("a name twice", TWO_CHECKS, "checks[1].name: a is there twice, allowed: a name for each check"),
        pod_row("a name with a space", "checks: [{name: A b, cni: {}}]", f'checks[0].name: is the text "A b", {NAME}'),
        check_row(
            "an unknown key deep down",
            "cni: {confdir: x}",
            ".cni.confdir: unknown key, allowed: confDir, binDirs, runtime, ",
        ),
        check_row(
            "another severity", "cni: {}, severity: fatal", '.severity: is the text "fatal", allowed: gate, warn'
        ),
        check_row(
            "a negative period",
            "cni: {}, periodSeconds: -1",
            ".periodSeconds: is -1, allowed: a whole number, 0 or more",
        ),
        check_row("no kind", "", f": has no kind, {KINDS}"),
        check_row("two kinds", "cni: {}, tcpSocket: {port: 1}", f": has cni and tcpSocket, {KINDS}"),
        check_row("an empty command", "exec: {command: []}", ".exec.command: is an empty list, allowed: "),
        check_row(
            "another scheme",
            "httpGet: {port: 1, scheme: FTP}",
            '.httpGet.scheme: is the text "FTP", allowed: HTTP, HTTPS',
        ),
        check_row("a header name with a space", HEADER, '.httpGet.httpHeaders[0].name: is the text "a b", allowed: '),
        row("no kubelet", "mode: kubelet", "kubelet: missing, allowed: a mapping with nodeName"),
        row(
            "checks in mode kubelet",
            KUBELET + "}\n" + CHECKS,
            "checks: not for mode kubelet, allowed: only with mode: pod",
        ),
        pod_row(
            "kubelet in mode pod",
            CHECKS + KUBELET[14:] + "}",
            "kubelet: not for mode pod, allowed: only with mode: kubelet",
        ),
        row("no node", "mode: node", "node: missing, allowed: a mapping with name and server"),
        pod_row("node in mode pod", CHECKS + NODE[11:] + "}", "node: not for mode pod, allowed: only with mode: node"),
        row("the own pod's condition in mode node", NODE + "}\ncondition: {publish: true}", "condition.podName: the"),
        row(
            "a server without TLS",
            "mode: node\nnode: {name: n, server: 'http://x'}",
            "node.server: is http://x, allowed: https://HOST:PORT",
        ),
        node_row("no health pods", "healthPods: []", "healthPods: is empty, allowed: at least one"),
        node_row(
            "a broken selector",
            "healthPods: [{labelSelector: 'a in b'}]",
            "healthPods[0].labelSelector: ",
        ),
        names_row("a check that there is not", "[gpuu]", "[0]: gpuu is no check of this file, allowed: disk, gpu"),
        names_row("a second one", "[gpu, GPU]", "[1]: GPU is no check of this file, allowed: disk, gpu"),
        names_row("a name over two lines", '["g\\npu"]', "[0]: g pu is no check of this file, allowed: disk, gpu"),
        names_row("an empty name", "['']", '[0]: is the text "", allowed: text, not empty'),
        names_row("no name", "[]", ": is empty, allowed: disk, gpu, or leave the key out"),
        names_row("a name that is no list", "gpu", ': is the text "gpu", allowed: '),
        names_row("a number", "[1]", "[0]: is 1, allowed: text"),
        row(
            "a check that the profile leaves out",
            f"profile: {{name: gpu, leaveOut: [gpu]}}\n{NODE}, healthPods: [{{checks: [gpu]}}]}}",
            "node.healthPods[0].checks[0]: gpu is left out by profile.leaveOut, allowed: cni, pressure, time, ",
        ),
        node_row(
            "a check of a file without any",
            "healthPods: [{checks: [gpu]}]",
            "healthPods[0].checks[0]: gpu is no check of this file, allowed: none, as the file has no checks",
        ),
        node_row("no health port", "kubeletHealthz: 10248", "kubeletHealthz: is"),
        node_row("half an address", "kubeletHealthz: 'http://[::1/healthz'", "kubeletHealthz: is http://[::1/healthz"),
        node_row("a health port of five nines", "kubeletHealthz: 'http://[::1]:99999/'", "kubeletHealthz: is http"),
        node_row("a health port in words", "kubeletHealthz: 'http://[::1]:http/'", "kubeletHealthz: is http://[::1]"),
        row(
            "a server that is half an address",
            "mode: node\nnode: {name: n, server: 'https://[::1:6443'}",
            "node.server: is https://[::1:6443, allowed: https://HOST:PORT",
        ),
        node_row("a health port without a scheme", "kubeletHealthz: '127.0.0.1:1'", "kubeletHealthz: is 127.0.0.1:1"),
        node_row("a socket's URL", "criSocket: 'unix:///run/a.sock'", "criSocket: is unix:///run/a.sock, "),
        node_row("commands without a runtime", "execProbes: true", "execProbes: is true without node.criSocket"),
        node_row("a Lease that every kubelet outlives", "leaseLimitSeconds: 10", "leaseLimitSeconds: is 10, allowed:"),
        kubelet_row("a broken CIDR", ("/24", "/33"), "podCIDR: '127.20.1.0/33' does not"),
        kubelet_row(
            "a narrow CIDR", ("/24", "/32"), "podCIDR: is 127.20.1.0/32, allowed: an IPv4 network of at most /30"
        ),
        kubelet_row(
            "a node name", ("nodeName: n", "nodeName: N_1"), 'nodeName: is the text "N_1", allowed: a DNS name'
        ),
        kubelet_row("a line", ("nodeName: n", 'nodeName: "n\\n"'), "nodeName: is the text"),
        kubelet_row("no addresses for pods", (", podCIDR: 127.20.1.0/24", ""), "podCIDR: missing, allowed: an IPv4"),
        kubelet_row(
            "addresses that CNI gives", ("/r", "/r, cri: {address: 192.0.2.7}"), "podCIDR: not with kubelet.cri"
        ),
        cri_row("no address of the node", "{}", "cri.address: missing, allowed: text"),
        cri_row(
            "a name as its address", "{address: here}", "cri.address: 'here' does not appear to be an IPv4 or IPv6"
        ),
        cri_row(
            "a folder of nowhere", "{address: '::1'}, rootDir: r", "rootDir: is r, allowed: with kubelet.cri a path"
        ),
        cri_row(
            "no health port of a kubelet",
            "{address: '::1', kubeletHealthz: '127.0.0.1:10248'}",
            "cri.kubeletHealthz: is 127.0.0.1:10248, allowed: http://127.0.0.1:10248/healthz",
        ),
        cri_row(
            "a port that there is not",
            "{address: '::1', kubeletHealthz: 'http://[::1]:99999/'}",
            "cri.kubeletHealthz: is http://[::1]:99999/",
        ),
        cri_row(
            "a health port by a name",
            "{address: '::1', kubeletHealthz: 'http://node-1:10248/'}",
            "cri.kubeletHealthz: is http://node-1:10248/, allowed: ",
        ),
        kubelet_row("a number without end", ("/r", ENDLESS), f"capacity.cpu: is a huge number, {QUANTITY}"),
        kubelet_row(
            "no quantity", ("/r", "/r, capacity: {cpu: many}"), f'capacity.cpu: is the text "many", {QUANTITY}'
        ),
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


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(
            "evictionHard: {memory.free: 1Gi}", "kubelet.evictionHard.memory.free: is not known", id="EP6 no signal"
        ),
        pytest.param(
            "evictionHard: {imagefs.available: 15%}",
            "kubelet.evictionHard.imagefs.available: is not measured without kubelet.cri, allowed: memory.available, ",
            id="EP12 one that only a container runtime tells",
        ),
        pytest.param(
            "evictionPressureTransitionPeriod: 300",
            "kubelet.evictionPressureTransitionPeriod: ",
            id="EP6 a number for a period",
        ),
        pytest.param(
            "evictionPressureTransitionPeriod: -5m",
            "kubelet.evictionPressureTransitionPeriod: ",
            id="EP6 less than nothing for a period",
        ),
        pytest.param("compat: v1.17", "kubelet.compat: ", id="a release that there is not"),
        pytest.param(
            "featureGates: {NoSuch: true}",
            "kubelet.featureGates.NoSuch: is no gate of ours",
            id="a gate that there is not",
        ),
        pytest.param(
            "featureGates: {RestartAllContainersOnContainerExits: true}",
            "kubelet.featureGates.RestartAllContainersOnContainerExits: is no gate of ours",
            id="a gate whose feature is not reproduced",
        ),
    ],
)
def test_what_kubelet_there_is_not(more: str, expected: str) -> None:
    text = f"mode: kubelet\nkubelet: {{nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /run/x, {more}}}"
    with pytest.raises(SettingsError) as caught:
        settings.parse(text.encode(), {})
    assert str(caught.value).startswith(expected)


@pytest.mark.parametrize("given", [pytest.param("0", id="none"), pytest.param("301", id="more than a kubelet takes")])
def test_bo2_the_longest_wait_lies_between_1_and_300_seconds(given: str) -> None:
    text = f"mode: kubelet\nkubelet: {{nodeName: n, podCIDR: 127.20.1.0/24, rootDir: /run/x, {PERIOD}: {given}}}"
    with pytest.raises(SettingsError, match=rf"kubelet\.{PERIOD}: .*allowed: whole seconds, 1 to 300"):
        settings.parse(text.encode(), {})


PERIOD = "maxContainerRestartPeriodSeconds"


@pytest.mark.parametrize("signal", ["imagefs.available", "imagefs.inodesFree", "containerfs.available"])
def test_ep10_with_a_container_runtime_images_may_have_thresholds(signal: str) -> None:
    text = f"""
mode: kubelet
kubelet: {{nodeName: n, rootDir: /r, cri: {{address: 192.0.2.7}}, evictionHard: {{{signal}: 15%}}}}
"""
    kubelet = settings.parse(text.encode(), {}).kubelet
    assert kubelet is not None
    assert {signal: "15%"} == kubelet.eviction_hard
