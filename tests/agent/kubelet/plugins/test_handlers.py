"""Which plugins are taken (rows PM13 to PM16)."""

import pytest

from agent.kubelet.plugins.handlers import CsiHandler, handlers, highest_version, is_extended_resource


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ((), None),
        (("1.0.0",), (1, 0, 0)),
        (("v1.2",), (1, 2)),
        (("0.3.0", "1.0.0"), (1, 0, 0)),
        (("1.0.0", "2.0.0"), (1, 0, 0)),
        (("1.9.0", "1.10.0"), (1, 10, 0)),
        (("1.0.0-rc1",), (1, 0, 0)),
        ((" 1.0.0 ",), (1, 0, 0)),
        (("0.3.0",), None),
        (("2.0.0",), None),
        (("1",), None),
        (("01.0",), None),
        (("one",), None),
        (("one", "1.1"), (1, 1)),
        (("1.2.x",), (1, 2)),
        (("1.2..3",), (1, 2)),
        (("1.0\n",), None),
        (("\v1.0",), None),
        (("1.18446744073709551616",), None),
    ],
    ids=str,
)
def test_pm13_a_driver_of_volumes_is_of_version_1(versions: tuple[str, ...], expected: tuple[int, ...] | None) -> None:
    assert expected == highest_version(versions)


def test_pm14_of_two_drivers_with_a_name_the_one_with_the_higher_version_is_taken() -> None:
    csi = CsiHandler()
    assert "" == csi.register("x", ["1.1.0"])
    said = "validation failed for CSI Driver x: one of this name is registered, with version 1.1.0"
    assert (said, said) == (csi.validate("x", ["1.1"]), csi.register("x", ["1.0.0"]))
    assert ("", "") == (csi.validate("y", ["1.0.0"]), csi.register("x", ["1.2.0"]))
    csi.deregister("x")
    assert "" == csi.validate("x", ["1.0.0"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("example.com/gpu", True),
        ("a.b/C_d.e", True),
        ("gpu", False),
        ("kubernetes.io/gpu", False),
        ("sub.kubernetes.io/gpu", False),
        ("requests.example.com/gpu", False),
        ("Example.com/gpu", False),
        ("example.com/", False),
        ("example.com/a/b", False),
        ("/gpu", False),
        (f"example.com/{'a' * 64}", False),
        (f"{'a' * 250}/gpu", False),
    ],
)
def test_pm15_a_device_is_named_as_an_extended_resource(name: str, expected: bool) -> None:
    assert expected == is_extended_resource(name)


@pytest.mark.parametrize(
    ("type_", "name", "versions", "expected"),
    [
        ("DevicePlugin", "example.com/gpu", ["v1alpha", "v1beta1"], ""),
        (
            "DevicePlugin",
            "example.com/gpu",
            ["v1"],
            "manager version, v1beta1, is not among plugin supported versions ['v1']",
        ),
        ("DevicePlugin", "gpu", ["v1beta1"], 'the ResourceName "gpu" is invalid'),
        ("DRAPlugin", "d", ["v9.DRAPlugin", "v1beta1.DRAPlugin"], ""),
        (
            "DRAPlugin",
            "d",
            ["1.0.0"],
            "DRA driver d: none of its services ['1.0.0'] is one of ['v1.DRAPlugin', 'v1beta1.DRAPlugin']",
        ),
        ("CSIPlugin", "c", [], "validation failed for CSI Driver c: it names no supported versions"),
    ],
)
def test_pm15_pm16_versions_and_services(type_: str, name: str, versions: list[str], expected: str) -> None:
    assert expected == handlers()[type_].validate(name, versions)
