"""Which pods a gate speaks for by the devices that they claim (DRA), and by the resources that a DRA driver serves.

Operators reported tools that look at resources alone and so miss these pods: kubernetes/kubernetes#141912,
NVIDIA/NVSentinel#1867 and #1865, NVIDIA/k8s-driver-manager#204, ray-project/kuberay#3527.
"""

import pytest

from extender.config.settings import parse
from extender.policy.devices import CLASS_PREFIX, DeviceClass, NoDevices, PodClaim, Request, class_by_prefix
from extender.policy.pods import NoVolumes, PodSeen, class_of
from tools.kit.cases import cases

GPU, MIG, NIC = "gpu.nvidia.com", "mig.nvidia.com", "nic.example.com"
NVIDIA, DRANET = frozenset({"gpu.nvidia.com"}), frozenset({"dra.net"})
CLAIMED = [PodClaim("mine")]
BY_CLASS, BY_RESOURCE = "deviceClasses: [gpu.nvidia.com]", "resources: [nvidia.com/gpu]"


class Known(NoDevices):
    """A cluster with the classes of NVIDIA's driver and one for network devices."""

    def __init__(self, claims=None, templates=None, classes=(), serving=None):
        self.claims, self.templates, self.serving = claims or {}, templates or {}, serving or {}
        nvidia = DeviceClass(GPU, NVIDIA), DeviceClass(MIG, NVIDIA)
        each = (*nvidia, DeviceClass(NIC, DRANET), DeviceClass("any"), *classes)
        self.classes = {one.name: one for one in each}

    def requests_of_claim(self, namespace, name):
        return self.claims.get((namespace, name))

    def requests_of_template(self, namespace, name):
        return self.templates.get((namespace, name))

    def device_class(self, name):
        return self.classes.get(name)

    def class_of_resource(self, resource):
        return class_by_prefix(resource) or self.serving.get(resource, "")

    def drivers_of_resource(self, resource):
        serving = self.classes.get(self.serving.get(resource, ""))
        return frozenset() if serving is None else serving.drivers or frozenset()


def speaks(text, devices, **fields):
    found = class_of(parse(f"gates: [{{for: {{{text}}}}}]").gate.pods_for)
    return found.matches(PodSeen(**{"namespace": "ml", **fields}), NoVolumes(), devices)


def claim_of(*requests, **others):
    return Known({("ml", "mine"): requests}, **others)


@cases(
    "requests, by_class, by_resource",
    ("the class of the gate", [Request(GPU)], True, True),
    ("another class of the driver: whole GPUs only by class (dra-driver-nvidia-gpu#940)", [Request(MIG)], False, True),
    ("a class of another driver", [Request(NIC)], False, False),
    ("one request of several", [Request(NIC), Request(GPU)], True, True),
    ("one alternative of several (ray-project/kuberay#3527)", [Request(NIC), Request(MIG)], False, True),
    ("nothing is asked for", [], False, False),
    ("a class that any driver may serve: which one is not known", [Request("any")], False, True),
    ("such a class, and the request names the driver", [Request("any", NVIDIA)], False, True),
    ("such a class, and the request names another driver", [Request("any", DRANET)], False, False),
    ("a class that nobody has heard of", [Request("new.example.com")], False, True),
    ("class and request name two drivers, so no device", [Request(NIC, NVIDIA)], False, False),
    ("allocated by the driver (NVIDIA/k8s-driver-manager#204)", [Request("any", NVIDIA, True)], False, True),
    ("allocated by another driver", [Request("any", DRANET, True)], False, False),
    ("allocated before its class changed", [Request(NIC, NVIDIA, True)], False, True),
)
def test_a_claim_that_is_known(requests, by_class, by_resource):
    devices = claim_of(*requests)
    assert (by_class, by_resource) == tuple(speaks(text, devices, claims=CLAIMED) for text in (BY_CLASS, BY_RESOURCE))


@cases(
    "claims, expected",
    ("no claim", [], False),
    ("a claim that is not known yet counts", [PodClaim("unheard")], True),
    ("a template that is not known yet counts", [PodClaim(template="unheard")], True),
    ("a claim of a form that a later Kubernetes has counts", [PodClaim()], True),
    ("its claim is not known yet, but its template is", [PodClaim("unheard", "nics")], False),
    ("by the template before there is a claim (NVIDIA/NVSentinel#1867)", [PodClaim(template="gpus")], True),
    ("the claim knows better than the template", [PodClaim("mine", "gpus")], False),
    ("a claim of another device, and one that is not known", [PodClaim("mine"), PodClaim("unheard")], True),
)
def test_what_is_known_of_the_claims(claims, expected):
    devices = Known({("ml", "mine"): [Request(NIC)]}, {("ml", "gpus"): [Request(GPU)], ("ml", "nics"): [Request(NIC)]})
    assert [expected] * 2 == [speaks(text, devices, claims=claims) for text in (BY_CLASS, BY_RESOURCE)]


def test_the_claim_of_another_namespace_says_nothing_of_this_pod():
    assert speaks(BY_CLASS, claim_of(Request(NIC)), claims=CLAIMED, namespace="web")


@pytest.mark.parametrize("text", ["resources: [cpu, memory, hugepages-2Mi]", "podSelector: app=a", "namespaces: [web]"])
def test_claims_say_nothing_to_a_gate_of_no_device(text):
    assert not speaks(text, NoDevices(), claims=CLAIMED)


@cases(
    "resource, driver, expected",
    ("NVIDIA's slices (NVIDIA/k8s-driver-manager#204)", "nvidia.com/mig-1g.5gb", "gpu.nvidia.com", True),
    ("NVIDIA's shared GPUs", "nvidia.com/gpu.shared", "gpu.nvidia.com", True),
    ("NVIDIA's network resources are none of its GPU driver's", "nvidia.com/hostdev", "gpu.nvidia.com", False),
    ("the domains of NVLink are no GPUs", "nvidia.com/gpu", "compute-domain.nvidia.com", False),
    ("AMD", "amd.com/gpu", "gpu.amd.com", True),
    ("Intel, whose resources begin with the driver's name", "gpu.intel.com/xe", "gpu.intel.com", True),
    ("AWS", "aws.amazon.com/neuroncore", "neuron.aws.com", True),
    ("a driver that is called as the resource", "example.com/gpu", "gpu.example.com", True),
    ("another driver of that vendor", "example.com/gpu", "nic.example.com", False),
    ("the same word of another vendor", "example.com/gpu", "gpu.nvidia.com", False),
)
def test_which_driver_serves_a_resource_by_its_name(resource, driver, expected):
    devices = claim_of(Request("any", frozenset({driver}), allocated=True))
    assert expected == speaks(f"resources: ['{resource}']", devices, claims=CLAIMED)


INTEL = DeviceClass("arc", frozenset({"gpu.intel.com"}), "intel.com/gpu")


@cases(
    "asked, expected",
    ("of the class that serves the resource", Request("arc"), True),
    ("of another class of its driver", Request("any", frozenset({"gpu.intel.com"})), True),
    ("of a class of another driver", Request(NIC), False),
)
def test_a_device_class_tells_which_driver_serves_a_resource(asked, expected):
    devices = claim_of(asked, classes=[INTEL], serving={"intel.com/gpu": "arc"})
    assert expected == speaks("resources: [intel.com/gpu]", devices, claims=CLAIMED)


@cases(
    "resources, expected",
    ("the resource that the class serves (kubernetes-sigs/dra-driver-nvidia-gpu#738)", {"nvidia.com/gpu"}, True),
    ("the class by the prefix (llm-d/llm-d-autoscaling#1378)", {CLASS_PREFIX + GPU}, True),
    ("another class by the prefix", {CLASS_PREFIX + NIC}, False),
    ("a resource that another class serves", {"example.com/nic"}, False),
    ("a resource that no class serves", {"example.com/fpga"}, False),
    ("processors and memory", {"cpu", "memory"}, False),
)
def test_an_extended_resource_that_dra_serves_counts_as_its_class(resources, expected):
    """kube-scheduler makes the claim when it binds the pod, so there is none to look at."""
    devices = Known(serving={"nvidia.com/gpu": GPU, "example.com/nic": NIC})
    assert expected == speaks(BY_CLASS, devices, resources=frozenset(resources))


def test_a_gate_of_the_prefix_speaks_for_claims_of_the_class():
    text = f"resources: [{CLASS_PREFIX}{GPU}]"
    assert speaks(text, claim_of(Request(GPU)), claims=CLAIMED)
    assert not speaks(text, claim_of(Request(NIC)), claims=CLAIMED)


@cases(
    "fields, expected",
    ("the resource", {"resources": frozenset({"nvidia.com/gpu"})}, True),
    ("a device of the class", {"claims": CLAIMED}, True),
    ("neither", {"resources": frozenset({"cpu"})}, False),
)
def test_of_a_resource_and_a_class_one_is_enough(fields, expected):
    text = f"resources: [nvidia.com/gpu], deviceClasses: [{MIG}]"
    assert expected == speaks(text, claim_of(Request(MIG)), **fields)


def test_all_else_that_is_given_has_to_hold_too():
    devices = claim_of(Request(GPU))
    assert not speaks(f"{BY_CLASS}, namespaces: [web]", devices, claims=CLAIMED)
    assert speaks(f"{BY_CLASS}, namespaces: [ml]", devices, claims=CLAIMED)
