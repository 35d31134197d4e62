"""What is kept of ResourceClaims, templates and DeviceClasses, as the API server sends them."""

import pytest

from extender.cluster import objects
from extender.cluster.devices import Devices
from extender.policy.devices import CLASS_PREFIX, DeviceClass, Request
from tests.extender.builders import seen
from tools.kit.cases import cases

GPU = "gpu.nvidia.com"
NVIDIA = frozenset({GPU})


def selector(expression):
    return {"cel": {"expression": expression}}


def exactly(device_class, name="gpu", **others):
    return {"name": name, "exactly": {"deviceClassName": device_class, **others}}


def either(*names, name="gpu"):
    return {"name": name, "firstAvailable": [{"name": one, "deviceClassName": f"{one}.example.com"} for one in names]}


def claim(*requests, name="mine", given=None):
    status = {} if given is None else {"status": {"allocation": {"devices": {"results": given}}}}
    found = {"metadata": {"name": name, "namespace": "ml"}, "spec": {"devices": {"requests": list(requests)}}}
    return seen(objects.ResourceClaim, found | status)


def device_class(name, expression="", resource="", created=""):
    selectors = {"selectors": [selector(expression)]} if expression else {}
    serves = {"extendedResourceName": resource} if resource else {}
    meta = {"name": name, "creationTimestamp": created or None}
    return seen(objects.DeviceClass, {"metadata": meta, "spec": selectors | serves})


@cases(
    "item, expected",
    ("one request", claim(exactly(GPU)), (Request(GPU),)),
    (
        "a request that selects by driver",
        claim(exactly("any", selectors=[selector("device.driver == 'gpu.nvidia.com'"), selector("true")])),
        (Request("any", NVIDIA),),
    ),
    ("a selector of a later Kubernetes admits any", claim(exactly("any", selectors=[{}])), (Request("any"),)),
    ("alternatives", claim(either("a", "b")), (Request("a.example.com"), Request("b.example.com"))),
    ("several requests", claim(exactly("a"), exactly("b", "nic")), (Request("a"), Request("b"))),
    ("no requests", claim(), ()),
    ("a request of a later Kubernetes", claim(exactly(GPU), {"name": "x", "anyOf": []}), None),
    (
        "of Kubernetes before 1.34 (dra-driver-nvidia-gpu#338), which this path never serves",
        claim({"name": "gpu", "deviceClassName": GPU}),
        None,
    ),
    (
        "allocated",
        claim(exactly("any"), given=[{"request": "gpu", "driver": GPU, "pool": "n1", "device": "gpu-0"}]),
        (Request("any", NVIDIA, allocated=True),),
    ),
    (
        "one alternative was allocated",
        claim(either("a", "b"), given=[{"request": "gpu/b", "driver": "b.example"}] * 2),
        (Request("b.example.com", frozenset({"b.example"}), allocated=True),),
    ),
    ("allocated, and nothing was asked for", claim(given=[]), ()),
    (
        "allocated for a request of a later Kubernetes",
        claim({"name": "x", "anyOf": []}, given=[{"request": "x/a", "driver": GPU}]),
        (Request("", NVIDIA, allocated=True),),
    ),
    ("no devices", seen(objects.ResourceClaim, {"metadata": {"name": "mine", "namespace": "ml"}, "spec": {}}), ()),
)
def test_what_a_claim_asks_for(item, expected):
    devices = Devices()
    devices.upsert_claim(item)
    assert expected == devices.requests_of_claim("ml", "mine")


def test_what_a_template_asks_for():
    found = {"metadata": {"name": "t", "namespace": "ml"}, "spec": {"spec": {"devices": {"requests": [exactly(GPU)]}}}}
    template = seen(objects.ResourceClaimTemplate, found)
    devices = Devices()
    devices.replace_templates([template])
    assert (Request(GPU),) == devices.requests_of_template("ml", "t")
    assert devices.requests_of_template("web", "t") is None
    devices.remove_template(template)
    devices.remove_template(template)
    assert devices.requests_of_template("ml", "t") is None
    devices.upsert_template(template)
    assert (Request(GPU),) == devices.requests_of_template("ml", "t")


def test_events_change_it():
    devices = Devices()
    devices.replace_claims([claim(exactly("a"))])
    devices.upsert_claim(claim(exactly("a"), given=[{"request": "gpu", "driver": "x"}]))
    assert (Request("a", frozenset({"x"}), allocated=True),) == devices.requests_of_claim("ml", "mine")
    for _ in range(2):
        devices.remove_claim(claim(exactly("a")))
    assert devices.requests_of_claim("ml", "mine") is None


def test_classes_and_the_resources_that_they_serve():
    devices = Devices()
    devices.replace_classes([device_class(GPU, f"device.driver == '{GPU}'", "nvidia.com/gpu"), device_class("any")])
    assert DeviceClass(GPU, NVIDIA, "nvidia.com/gpu") == devices.device_class(GPU)
    assert (DeviceClass("any"), None) == (devices.device_class("any"), devices.device_class("other"))
    assert (GPU, "") == (devices.class_of_resource("nvidia.com/gpu"), devices.class_of_resource("cpu"))
    assert devices.class_of_resource(f"{CLASS_PREFIX}whatever") == "whatever"
    assert (NVIDIA, frozenset()) == (devices.drivers_of_resource("nvidia.com/gpu"), devices.drivers_of_resource("cpu"))
    devices.upsert_class(device_class(GPU))
    assert ("", frozenset()) == (
        devices.class_of_resource("nvidia.com/gpu"),
        devices.drivers_of_resource("nvidia.com/gpu"),
    )
    devices.remove_class(device_class(GPU))
    devices.remove_class(device_class(GPU))
    assert devices.device_class(GPU) is None


OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@cases(
    "classes, expected",
    ("the newest class", [("a", NEW), ("b", OLD)], "a"),
    ("whatever came first", [("b", OLD), ("a", NEW)], "a"),
    ("of two at once the first by name", [("b", NEW), ("a", NEW)], "a"),
)
def test_the_class_that_kube_scheduler_takes_of_several_that_serve_a_resource(classes, expected):
    devices = Devices()
    devices.replace_classes([device_class(name, resource="example.com/gpu", created=at) for name, at in classes])
    assert expected == devices.class_of_resource("example.com/gpu")


def test_each_class_tells_a_driver_of_the_resource():
    devices = Devices()
    devices.replace_classes(
        [device_class(name, f"device.driver == '{name}'", "example.com/gpu") for name in ("a", "b")]
        + [device_class("c", resource="example.com/gpu")]
    )
    assert frozenset({"a", "b"}) == devices.drivers_of_resource("example.com/gpu")


def test_what_is_not_listed_yet_is_missing():
    told = []
    devices = Devices(on_listed=lambda: told.append(1))
    assert frozenset({"resourceclaims", "resourceclaimtemplates", "deviceclasses"}) == devices.missing
    for _ in range(2):
        devices.replace_claims([])
        devices.replace_templates([])
        devices.replace_classes([])
    assert (frozenset(), 3) == (devices.missing, len(told))


@pytest.mark.parametrize("wrong", [{"requests": 1}, {"requests": [{"exactly": {"deviceClassName": 7}}]}])
def test_an_object_of_wrong_types_cannot_be_decoded_and_is_skipped(wrong):
    with pytest.raises(Exception, match="Expected"):
        seen(objects.ResourceClaim, {"metadata": {"name": "m", "namespace": "n"}, "spec": {"devices": wrong}})
