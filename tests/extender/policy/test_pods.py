"""For which pods a gate speaks."""

import pytest

from extender.config.settings import parse
from extender.policy.pods import EVERY_POD, Classes, PodClass, PodSeen, PodVolume, class_of
from tools.kit.cases import cases

EBS, CEPH = "ebs.csi.aws.com", "rbd.csi.ceph.com"
AMD = frozenset({"amd.com/gpu", "cpu"})
CLAIM, INLINE = PodVolume(claim="data"), PodVolume(driver=CEPH)


class Known:
    """Claims and classes by name; None is not known."""

    def __init__(self, claims=None, classes=None):
        self.claims, self.classes = claims or {}, classes or {}

    def driver_of_claim(self, namespace, name):
        return self.claims.get((namespace, name))

    def driver_of_class(self, name):
        return self.classes.get(name)


def class_in(text):
    return class_of(parse(f"gates: [{{for: {{{text}}}}}]").gate.pods_for)


def pod(**fields):
    return PodSeen(**{"namespace": "ml", "scheduler_name": "default-scheduler", **fields})


@cases(
    "text, seen, expected",
    ("nothing asked is every pod", "", pod(), True),
    ("a label", "podSelector: app=train", pod(labels={"app": "train"}), True),
    ("a label it has not", "podSelector: app=train", pod(), False),
    ("a label it shall not have", "podSelector: '!app'", pod(), True),
    ("one of the namespaces", "namespaces: [web, ml]", pod(), True),
    ("another namespace", "namespaces: [web]", pod(), False),
    ("a resource", "resources: [nvidia.com/gpu]", pod(resources=frozenset({"nvidia.com/gpu"})), True),
    ("another resource", "resources: [nvidia.com/gpu]", pod(resources=frozenset({"cpu"})), False),
    ("one of the resources", "resources: [nvidia.com/gpu, amd.com/gpu]", pod(resources=AMD), True),
    ("a priority at the lower end", "priority: {from: 100}", pod(priority=100), True),
    ("a priority below it", "priority: {from: 100}", pod(priority=99), False),
    ("a priority at the upper end", "priority: {to: 100}", pod(priority=100), True),
    ("a priority above it", "priority: {to: 100}", pod(priority=101), False),
    ("no priority is zero", "priority: {from: -10, to: -1}", pod(), False),
    ("the scheduler", "schedulerNames: [default-scheduler]", pod(), True),
    ("another scheduler", "schedulerNames: [batch]", pod(), False),
    ("all that is given holds", "podSelector: app=train, namespaces: [ml]", pod(labels={"app": "train"}), True),
    ("all but one that is given", "podSelector: app=train, namespaces: [web]", pod(labels={"app": "train"}), False),
)
def test_a_pod_is_of_the_class(text, seen, expected):
    assert expected == class_in(text).matches(seen, Known())


KNOWN = Known(
    {("ml", "data"): EBS, ("ml", "scratch"): "", ("ml", "old"): "kubernetes.io/aws-ebs", ("ml", "pod-tmp"): CEPH},
    {"fast": EBS, "slow": CEPH, "old": "kubernetes.io/aws-ebs"},
)


@cases(
    "volumes, expected",
    ("no volume", [], False),
    ("a volume of another kind", [PodVolume()], False),
    ("an inline volume of the driver", [PodVolume(driver=EBS)], True),
    ("one of another driver", [INLINE], False),
    ("a claim that the driver serves", [CLAIM], True),
    ("a claim that no CSI driver serves", [PodVolume(claim="scratch")], False),
    ("a claim of the plugin that the driver replaces", [PodVolume(claim="old")], True),
    ("a claim that nobody has heard of yet counts", [PodVolume(claim="unheard")], True),
    ("an ephemeral one, by its class", [PodVolume(claim="unheard", storage_class="fast")], True),
    ("by its class, of another driver", [PodVolume(claim="unheard", storage_class="slow")], False),
    ("of a class that nobody knows", [PodVolume(claim="unheard", storage_class="gone")], True),
    ("its claim knows better than its class", [PodVolume(claim="pod-tmp", storage_class="fast")], False),
    ("one volume of several", [INLINE, PodVolume(claim="scratch"), CLAIM], True),
)
def test_a_pod_has_volumes_of_the_driver(volumes, expected):
    assert expected == class_in(f"csiDrivers: [{EBS}]").matches(pod(volumes=volumes), KNOWN)


def test_the_claim_of_another_namespace_says_nothing_of_this_pod():
    seen = pod(namespace="web", volumes=[PodVolume(claim="scratch")])
    assert class_in(f"csiDrivers: [{EBS}]").matches(seen, KNOWN)


GPU = PodClass(resources=frozenset({"nvidia.com/gpu"}))
WEB = PodClass(namespaces=frozenset({"web"}))


@pytest.mark.parametrize(
    ("classes", "seen", "expected"),
    [
        pytest.param([], pod(), 0b0, id="no gate"),
        pytest.param([EVERY_POD], pod(), 0b1, id="one gate for every pod"),
        pytest.param([EVERY_POD, GPU, WEB], pod(), 0b001, id="an ordinary pod"),
        pytest.param([EVERY_POD, GPU, WEB], pod(resources=GPU.resources), 0b011, id="a pod with a GPU"),
        pytest.param([GPU, WEB, EVERY_POD], pod(namespace="web"), 0b110, id="the bits are in the order of the gates"),
        pytest.param([GPU, WEB], pod(), 0b00, id="a pod no gate speaks for"),
    ],
)
def test_the_mask_of_a_pod(classes, seen, expected):
    assert expected == Classes(classes).mask_of(seen)


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([EVERY_POD, EVERY_POD], (True, False, 0b11), id="for everybody nothing is looked at"),
        pytest.param([EVERY_POD, WEB], (False, False, 0b11), id="a namespace is known without the spec"),
        pytest.param([EVERY_POD, GPU], (False, True, 0b11), id="resources are in the spec"),
        pytest.param([PodClass(device_classes=frozenset({"gpu.nvidia.com"}))], (False, True, 0b1), id="so are claims"),
        pytest.param([PodClass(drivers=frozenset({EBS}))], (False, True, 0b1), id="so are volumes"),
    ],
)
def test_what_has_to_be_looked_at(classes, expected):
    found = Classes(classes)
    assert expected == (found.everybody, found.needs_spec, found.all)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "every pod"),
        ("resources: [nvidia.com/gpu, amd.com/gpu]", "pods that request amd.com/gpu or nvidia.com/gpu"),
        (
            "podSelector: app=train, namespaces: [ml], priority: {from: 1, to: 9}",
            "pods of namespace ml, labelled app=train, of priority 1 and more, of priority 9 and less",
        ),
        ("deviceClasses: [gpu.nvidia.com]", "pods that claim devices of class gpu.nvidia.com"),
        (
            "deviceClasses: [gpu.nvidia.com], resources: [nvidia.com/gpu], namespaces: [ml]",
            "pods that request nvidia.com/gpu or claim devices of class gpu.nvidia.com, of namespace ml",
        ),
        ("schedulerNames: [batch]", "pods of scheduler batch"),
        ("csiDrivers: [ebs.csi.aws.com]", "pods with volumes of ebs.csi.aws.com"),
    ],
)
def test_a_class_in_words(text, expected):
    assert expected == str(class_in(text))
