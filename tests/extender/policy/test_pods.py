"""For which pods a gate speaks."""

import pytest

from extender.policy.pods import EVERY_POD, Classes, PodClass, PodSeen, PodVolume, class_of
from extender.settings import parse

EBS, CEPH = "ebs.csi.aws.com", "rbd.csi.ceph.com"
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


@pytest.mark.parametrize(
    ("text", "seen", "expected"),
    [
        pytest.param("", pod(), True, id="nothing asked is every pod"),
        pytest.param("podSelector: app=train", pod(labels={"app": "train"}), True, id="a label"),
        pytest.param("podSelector: app=train", pod(), False, id="a label it has not"),
        pytest.param("podSelector: '!app'", pod(), True, id="a label it shall not have"),
        pytest.param("namespaces: [web, ml]", pod(), True, id="one of the namespaces"),
        pytest.param("namespaces: [web]", pod(), False, id="another namespace"),
        pytest.param(
            "resources: [nvidia.com/gpu]", pod(resources=frozenset({"nvidia.com/gpu"})), True, id="a resource"
        ),
        pytest.param("resources: [nvidia.com/gpu]", pod(resources=frozenset({"cpu"})), False, id="another resource"),
        pytest.param(
            "resources: [nvidia.com/gpu, amd.com/gpu]",
            pod(resources=frozenset({"amd.com/gpu", "cpu"})),
            True,
            id="one of the resources",
        ),
        pytest.param("priority: {from: 100}", pod(priority=100), True, id="a priority at the lower end"),
        pytest.param("priority: {from: 100}", pod(priority=99), False, id="a priority below it"),
        pytest.param("priority: {to: 100}", pod(priority=100), True, id="a priority at the upper end"),
        pytest.param("priority: {to: 100}", pod(priority=101), False, id="a priority above it"),
        pytest.param("priority: {from: -10, to: -1}", pod(), False, id="no priority is zero"),
        pytest.param("schedulerNames: [default-scheduler]", pod(), True, id="the scheduler"),
        pytest.param("schedulerNames: [batch]", pod(), False, id="another scheduler"),
        pytest.param(
            "podSelector: app=train, namespaces: [ml]", pod(labels={"app": "train"}), True, id="all that is given holds"
        ),
        pytest.param(
            "podSelector: app=train, namespaces: [web]",
            pod(labels={"app": "train"}),
            False,
            id="all but one that is given",
        ),
    ],
)
def test_a_pod_is_of_the_class(text, seen, expected):
    assert expected == class_in(text).matches(seen, Known())


KNOWN = Known(
    {("ml", "data"): EBS, ("ml", "scratch"): "", ("ml", "old"): "kubernetes.io/aws-ebs", ("ml", "pod-tmp"): CEPH},
    {"fast": EBS, "slow": CEPH, "old": "kubernetes.io/aws-ebs"},
)


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param([], False, id="no volume"),
        pytest.param([PodVolume()], False, id="a volume of another kind"),
        pytest.param([PodVolume(driver=EBS)], True, id="an inline volume of the driver"),
        pytest.param([INLINE], False, id="one of another driver"),
        pytest.param([CLAIM], True, id="a claim that the driver serves"),
        pytest.param([PodVolume(claim="scratch")], False, id="a claim that no CSI driver serves"),
        pytest.param([PodVolume(claim="old")], True, id="a claim of the plugin that the driver replaces"),
        pytest.param([PodVolume(claim="unheard")], True, id="a claim that nobody has heard of yet counts"),
        pytest.param([PodVolume(claim="unheard", storage_class="fast")], True, id="an ephemeral one, by its class"),
        pytest.param([PodVolume(claim="unheard", storage_class="slow")], False, id="by its class, of another driver"),
        pytest.param([PodVolume(claim="unheard", storage_class="gone")], True, id="of a class that nobody knows"),
        pytest.param(
            [PodVolume(claim="pod-tmp", storage_class="fast")], False, id="its claim knows better than its class"
        ),
        pytest.param([INLINE, PodVolume(claim="scratch"), CLAIM], True, id="one volume of several"),
    ],
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
        ("schedulerNames: [batch]", "pods of scheduler batch"),
        ("csiDrivers: [ebs.csi.aws.com]", "pods with volumes of ebs.csi.aws.com"),
    ],
)
def test_a_class_in_words(text, expected):
    assert expected == str(class_in(text))
