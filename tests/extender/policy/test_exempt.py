from extender.config.settings import parse
from extender.policy.exempt import Exemption, Rules, exemption_of, rules_of
from kube.objects import OwnerReference
from tools.kit.cases import cases

RULES = Rules(
    health=frozenset({("readygate-system", "readygate-agent")}),
    namespaces=frozenset({"kube-system"}),
    label="readygate.dev/exempt",
    label_namespaces=frozenset({"ours"}),
)
READYGATE = {"namespace": "readygate-system"}
OPTED_OUT = {"labels": {"readygate.dev/exempt": "true"}}
ONLY_HEALTH = Rules(health=frozenset({("gates", "probe")}), daemon_set_pods=False)


def daemon_set(name, *, api_version="apps/v1", kind="DaemonSet", controller=True):
    return [OwnerReference(api_version=api_version, kind=kind, name=name, uid="u", controller=controller)]


def cause(rules=RULES, *, namespace="default", labels=None, owners=None, priority_class="", priority=None):
    return exemption_of(
        rules, namespace=namespace, labels=labels, owners=owners, priority_class=priority_class, priority=priority
    )


@cases(
    "expected, pod",
    ("an ordinary pod", Exemption.NONE, {}),
    ("X15: a pod of the health DaemonSet", "health-pod", READYGATE | {"owners": daemon_set("readygate-agent")}),
    ("X16: any DaemonSet's pod", "daemonset", {"owners": daemon_set("cni")}),
    ("X17: an owner, no controller", Exemption.NONE, {"owners": daemon_set("cni", controller=False)}),
    ("X17: controller not said", Exemption.NONE, {"owners": daemon_set("cni", controller=None)}),
    ("X17: wrong apiVersion", Exemption.NONE, {"owners": daemon_set("cni", api_version="extensions/v1beta1")}),
    ("another kind of owner", Exemption.NONE, {"owners": daemon_set("web", kind="ReplicaSet")}),
    ("X18: health label elsewhere", Exemption.NONE, {"labels": {"app.kubernetes.io/name": "readygate-agent"}}),
    ("readygate's own namespace", "readygate", READYGATE),
    ("X19: an exempt namespace", "namespace", {"namespace": "kube-system"}),
    ("X19: the opt-out label", "label", {"namespace": "ours", **OPTED_OUT}),
    ("the opt-out label without a value", "label", {"namespace": "ours", "labels": {"readygate.dev/exempt": ""}}),
    ("the opt-out label is false", Exemption.NONE, {"namespace": "ours", "labels": {"readygate.dev/exempt": "false"}}),
    ("X19: the label where it does not count", Exemption.NONE, {"namespace": "tenant", **OPTED_OUT}),
    ("critical by class", "system-critical", {"priority_class": "system-node-critical"}),
    ("critical by number", "system-critical", {"priority": 2_000_000_000}),
    ("the highest priority of a user", Exemption.NONE, {"priority": 1_000_000_000}),
)
def test_the_word_for_a_pod(expected, pod):
    assert expected == cause(**pod)


@cases(
    "expected, pod",
    ("health pods stay exempt", "health-pod", {"namespace": "gates", "owners": daemon_set("probe")}),
    ("other pods of its namespace are held", Exemption.NONE, {"namespace": "gates", "owners": daemon_set("other")}),
    ("X16: DaemonSets are held back when the option is off", Exemption.NONE, {"owners": daemon_set("cni")}),
    ("no opt-out label is configured", Exemption.NONE, {"labels": {"": "x"}}),
)
def test_exemption_switched_off(expected, pod):
    assert expected == cause(ONLY_HEALTH, **pod)


NOTHING_EXEMPT = "exempt: {daemonSetPods: false, namespaces: [], label: null}"
CILIUM = "gates: [{healthPods: {namespace: kube-system, labelSelector: k8s-app=cilium, daemonSet: cilium}}]"
ANY_DAEMON_SET = "{gates: [{healthPods: {namespace: cni, labelSelector: app=cni}}], exempt: {daemonSetPods: false}}"


@cases(
    "text, pod, expected",
    ("by default the label counts nowhere", "", OPTED_OUT, Exemption.NONE),
    ("an asterisk means every namespace", "exempt: {labelNamespaces: ['*']}", OPTED_OUT, Exemption.LABEL),
    ("no label", "exempt: {labelNamespaces: [ours], label: null}", {"namespace": "ours", **OPTED_OUT}, Exemption.NONE),
    ("kube-system always", NOTHING_EXEMPT, {"namespace": "kube-system"}, Exemption.NAMESPACE),
    ("readygate's own namespace", "namespace: ours", {"namespace": "ours"}, Exemption.READYGATE),
    ("not readygate's namespace", "namespace: ours", READYGATE, Exemption.NONE),
    ("its health pods", CILIUM, {"namespace": "kube-system", "owners": daemon_set("cilium")}, Exemption.HEALTH_POD),
    ("any DaemonSet", ANY_DAEMON_SET, {"namespace": "cni", "owners": daemon_set("whatever")}, Exemption.HEALTH_POD),
)
def test_the_rules_of_a_configuration(text, pod, expected):
    assert expected == cause(rules_of(parse(text)), **pod)
