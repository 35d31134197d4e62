"""Which drivers a CEL expression of a DeviceClass admits: at least all whose devices it can select."""

import pytest

from extender.policy.cel import DEPTH_LIMIT, EXPRESSION_LIMIT, both, drivers_of
from tools.kit.cases import cases

GPU, NIC = "gpu.nvidia.com", "dra.net"
ANY = None


@cases(
    "expression, expected",
    ("one driver", f"device.driver == '{GPU}'", {GPU}),
    ("with double quotes", f'device.driver == "{GPU}"', {GPU}),
    ("the text first", f"'{GPU}' == device.driver", {GPU}),
    (
        "the class of NVIDIA's driver (kubernetes-sigs/dra-driver-nvidia-gpu#738)",
        f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == 'gpu'",
        {GPU},
    ),
    ("attributes first", f"device.attributes['{GPU}'].type == 'mig' && device.driver == '{GPU}'", {GPU}),
    ("a call within", f"device.driver == '{GPU}' && device.attributes['{GPU}'].productName.contains('5090')", {GPU}),
    ("over several lines", f"device.driver == '{GPU}' &&\n  has(device.attributes['{GPU}'].uuid) // not MIG\n", {GPU}),
    ("one of two drivers", f"device.driver == '{GPU}' || device.driver == 'gpu.amd.com'", {GPU, "gpu.amd.com"}),
    ("a list of drivers", f"device.driver in ['{GPU}', '{NIC}']", {GPU, NIC}),
    ("an alternative within what holds", f"device.driver == '{GPU}' && (device.attributes['a'].b || true)", {GPU}),
    ("drivers in parentheses", f"((device.driver == '{GPU}') || (device.driver == '{NIC}'))", {GPU, NIC}),
    ("&& binds before ||", f"device.driver == 'a' || device.driver == 'b' && device.driver == '{NIC}'", {"a"}),
    ("two drivers at once is none", f"device.driver == '{GPU}' && device.driver == '{NIC}'", set()),
    ("no word of a driver", "device.attributes['dra.net'].rdma == true", ANY),
    ("an empty expression", "", ANY),
    ("true", "true", ANY),
    ("any driver but one", f"device.driver != '{GPU}'", ANY),
    ("not that driver", f"!(device.driver == '{GPU}')", ANY),
    ("an alternative without a driver", f"device.driver == '{GPU}' || device.attributes['a'].b", ANY),
    ("a choice", f"device.driver == '{GPU}' ? true : true", ANY),
    ("a choice within parentheses", f"(device.driver == '{GPU}' ? true : true)", ANY),
    ("compared once more", f"(device.driver == '{GPU}') == false", ANY),
    ("a method of the driver", "device.driver.startsWith('gpu.')", ANY),
    ("a part of the driver", f"device.driver[0] == '{GPU}'", ANY),
    ("a key of that name", f"x.device.driver == '{GPU}'", ANY),
    ("a text with an escape", r"device.driver == 'gpu\x2envidia.com'", ANY),
    ("a raw text", f"device.driver == r'{GPU}'", ANY),
    ("a text that does not end", f"device.driver == '{GPU}", ANY),
    ("a binding", f"cel.bind(d, device.driver, d == '{GPU}')", ANY),
    ("a driver in a text is none", '"device.driver == \'x\'" != "y"', ANY),
    ("a macro over a list", f"['{GPU}'].exists(d, d == device.driver)", ANY),
    ("a bracket too many", f"device.driver == '{GPU}')", ANY),
    ("no character of CEL", f"device.driver == '{GPU}' && §", ANY),
)
def test_drivers_of_an_expression(expression, expected):
    assert (None if expected is None else frozenset(expected)) == drivers_of(expression)


@pytest.mark.parametrize("depth", [DEPTH_LIMIT + 1, 4000])
def test_deep_parentheses_admit_any_driver(depth):
    assert drivers_of("(" * depth + "device.driver == 'a'" + ")" * depth) is None


def test_an_expression_beyond_the_limit_of_the_api_admits_any_driver():
    assert drivers_of("device.driver == 'a'" + " " * EXPRESSION_LIMIT) is None


def test_both_of_two_expressions():
    one, other = frozenset({"a", "b"}), frozenset({"b", "c"})
    assert (frozenset({"b"}), one, other, None) == (
        both(one, other),
        both(one, None),
        both(None, other),
        both(None, None),
    )
