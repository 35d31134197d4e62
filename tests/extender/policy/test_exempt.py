import pytest

from extender.policy.exempt import Exemption, Rules, exemption_of, rules_of
from extender.settings import parse
from kube.objects import OwnerReference

RULES = Rules(
    health=frozenset({("readygate-system", "readygate-agent")}),
    namespaces=frozenset({"kube-system"}),
    label="readygate.dev/exempt",
    label_namespaces=frozenset({"ours"}),
)
OPTED_OUT = {"readygate.dev/exempt": "true"}
ONLY_HEALTH = Rules(health=frozenset({("gates", "probe")}), daemon_set_pods=False)


def daemon_set(name, *, api_version="apps/v1", kind="DaemonSet", controller=True):
    return [OwnerReference(api_version=api_version, kind=kind, name=name, uid="u", controller=controller)]


def cause(rules=RULES, *, namespace="default", labels=None, owners=None, priority_class="", priority=None):
    return exemption_of(
        rules, namespace=namespace, labels=labels, owners=owners, priority_class=priority_class, priority=priority
    )


@pytest.mark.parametrize(
    ("expected", "pod"),
    [
        pytest.param(Exemption.NONE, {}, id="an ordinary pod"),
        pytest.param(
            "health-pod",
            {"namespace": "readygate-system", "owners": daemon_set("readygate-agent")},
            id="X15: the health DaemonSet's pod",
        ),
        pytest.param("daemonset", {"owners": daemon_set("cni")}, id="X16: any DaemonSet's pod"),
        pytest.param(
            Exemption.NONE, {"owners": daemon_set("cni", controller=False)}, id="X17: an owner, no controller"
        ),
        pytest.param(Exemption.NONE, {"owners": daemon_set("cni", controller=None)}, id="X17: controller not said"),
        pytest.param(
            Exemption.NONE, {"owners": daemon_set("cni", api_version="extensions/v1beta1")}, id="X17: wrong apiVersion"
        ),
        pytest.param(Exemption.NONE, {"owners": daemon_set("web", kind="ReplicaSet")}, id="another kind of owner"),
        pytest.param(
            Exemption.NONE,
            {"labels": {"app.kubernetes.io/name": "readygate-agent"}},
            id="X18: the health label in another namespace",
        ),
        pytest.param("readygate", {"namespace": "readygate-system"}, id="our own namespace"),
        pytest.param("namespace", {"namespace": "kube-system"}, id="X19: an exempt namespace"),
        pytest.param("label", {"namespace": "ours", "labels": OPTED_OUT}, id="X19: the opt-out label"),
        pytest.param(
            "label",
            {"namespace": "ours", "labels": {"readygate.dev/exempt": ""}},
            id="the opt-out label without a value",
        ),
        pytest.param(
            Exemption.NONE,
            {"namespace": "ours", "labels": {"readygate.dev/exempt": "false"}},
            id="opted out of opting out",
        ),
        pytest.param(
            Exemption.NONE, {"namespace": "tenant", "labels": OPTED_OUT}, id="X19: the label where it does not count"
        ),
        pytest.param("system-critical", {"priority_class": "system-node-critical"}, id="critical by class"),
        pytest.param("system-critical", {"priority": 2_000_000_000}, id="critical by number"),
        pytest.param(Exemption.NONE, {"priority": 1_000_000_000}, id="the highest priority of a user"),
    ],
)
def test_the_word_for_a_pod(expected, pod):
    assert expected == cause(**pod)


@pytest.mark.parametrize(
    ("expected", "pod"),
    [
        pytest.param("health-pod", {"namespace": "gates", "owners": daemon_set("probe")}, id="health pods stay exempt"),
        pytest.param(
            Exemption.NONE, {"namespace": "gates", "owners": daemon_set("other")}, id="others of its namespace not"
        ),
        pytest.param(
            Exemption.NONE, {"owners": daemon_set("cni")}, id="X16: DaemonSets are held back when the option is off"
        ),
        pytest.param(Exemption.NONE, {"labels": {"": "x"}}, id="no opt-out label configured"),
    ],
)
def test_exemption_switched_off(expected, pod):
    assert expected == cause(ONLY_HEALTH, **pod)


@pytest.mark.parametrize(
    ("text", "pod", "expected"),
    [
        pytest.param("", {"labels": OPTED_OUT}, Exemption.NONE, id="by default the label counts nowhere"),
        pytest.param(
            "exempt: {labelNamespaces: ['*']}", {"labels": OPTED_OUT}, Exemption.LABEL, id="everywhere, where so said"
        ),
        pytest.param(
            "exempt: {labelNamespaces: [ours], label: null}",
            {"namespace": "ours", "labels": OPTED_OUT},
            Exemption.NONE,
            id="no label at all",
        ),
        pytest.param(
            "exempt: {daemonSetPods: false, namespaces: [], label: null}",
            {"namespace": "kube-system"},
            Exemption.NAMESPACE,
            id="kube-system, whatever is configured",
        ),
        pytest.param(
            "namespace: ours", {"namespace": "ours"}, Exemption.READYGATE, id="our own namespace, whichever it is"
        ),
        pytest.param(
            "namespace: ours",
            {"namespace": "readygate-system"},
            Exemption.NONE,
            id="the usual one is nobody's where it is not ours",
        ),
        pytest.param(
            "gates: [{healthPods: {namespace: kube-system, labelSelector: k8s-app=cilium, daemonSet: cilium}}]",
            {"namespace": "kube-system", "owners": daemon_set("cilium")},
            Exemption.HEALTH_POD,
            id="a gate's own health pods",
        ),
        pytest.param(
            "{gates: [{healthPods: {namespace: cni, labelSelector: app=cni}}], exempt: {daemonSetPods: false}}",
            {"namespace": "cni", "owners": daemon_set("whatever")},
            Exemption.HEALTH_POD,
            id="those of any DaemonSet, where the gate names none",
        ),
    ],
)
def test_the_rules_of_a_configuration(text, pod, expected):
    assert expected == cause(rules_of(parse(text)), **pod)
