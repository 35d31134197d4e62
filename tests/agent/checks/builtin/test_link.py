"""The check `link`: what sysfs shows of ports, what is remembered of them, and what is made of both."""

import os
import random
from pathlib import Path

import pytest

from agent.checks.builtin.link import Check, History, Port, Settings, after, judged, port_of
from agent.checks.ports import ports_in
from agent.checks.state import CheckState, Finding
from component.settings import SettingsError, convert
from tools.kit.cases import cases


class Sys:
    """A folder like sysfs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "class/net").mkdir(parents=True)

    def file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}\n")

    def interface(self, name: str = "eth0", *, is_device: bool = True, **more: str) -> None:
        files = {"operstate": "up", "flags": "0x1003", "carrier_down_count": "1", "speed": "25000"} | more
        for file, text in files.items():
            self.file(f"class/net/{name}/{file}", text)
        for file in ("rx_errors", "tx_errors"):
            self.file(f"class/net/{name}/statistics/{file}", more.get(file, "0"))
        if is_device:
            (self.root / f"class/net/{name}/device").mkdir(exist_ok=True)

    def infiniband(self, name: str = "mlx5_0", **more: str) -> None:
        files = {"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)"} | more
        (self.root / f"class/infiniband/{name}/device").mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            self.file(f"class/infiniband/{name}/ports/1/{file}", text)

    def counters(self, name: str, **texts: str) -> None:
        for file, text in texts.items():
            self.file(f"class/infiniband/{name}/ports/1/counters/{file}", text)

    def check(self, **more: object) -> Check:
        return Check(Settings(**({"sys": str(self.root)} | more)), 30.0)

    def ports(self, *wanted: str, with_speed: bool = True) -> list[Port]:
        return [port_of(raw) for raw in ports_in(str(self.root), [*wanted], with_speed)]


@pytest.fixture
def sys(tmp_path: Path) -> Sys:
    return Sys(tmp_path)


def test_an_interface_is_read(sys: Sys) -> None:
    sys.interface(rx_errors="3", tx_errors="4")
    assert [Port("eth0", "up", True, 1, 25.0, 7)] == sys.ports("eth0")


def test_a_port_of_infiniband_is_read(sys: Sys) -> None:
    sys.infiniband()
    sys.counters("mlx5_0", link_downed="2", symbol_error="5", port_rcv_errors="6")
    assert [Port("mlx5_0/1", "ACTIVE", True, 2, 400.0, 11)] == sys.ports("mlx5_*/1")


@cases(
    "counters, expected",
    (
        "node_exporter#966: a virtual function without counters",
        {"link_downed": "N/A (no PMA)", "symbol_error": "N/A (no PMA)"},
        (None, None),
    ),
    ("node_exporter#2769: a driver without counters", {}, (None, None)),
    ("one counter of several", {"symbol_error": "N/A (no PMA)", "port_rcv_errors": "3"}, (None, 3)),
)
def test_a_port_without_counters_has_none(
    sys: Sys, counters: dict[str, str], expected: tuple[int | None, int | None]
) -> None:
    sys.infiniband()
    sys.counters("mlx5_0", **counters)
    (port,) = sys.ports()
    assert expected == (port.downs, port.errors)


@cases(
    "more, expected",
    ("a link that is down shows no speed", {"speed": "-1"}, None),
    ("a virtual machine's", {"speed": ""}, None),
    ("fast", {"speed": "100000"}, 100.0),
    ("slow", {"speed": "10"}, 0.01),
)
def test_the_speed_of_an_interface(sys: Sys, more: dict[str, str], expected: float | None) -> None:
    sys.interface(**more)
    assert [expected] == [port.gbps for port in sys.ports("eth0")]


def test_the_speed_is_read_of_named_ports_alone(sys: Sys) -> None:
    """gpud#1164, node_exporter#3434: devices of the fabric manager log an error each time."""
    sys.infiniband("mlx5_0")
    sys.infiniband("mlx5_1")
    assert [400.0, None] == [port.gbps for port in sys.ports("mlx5_0/1")]
    assert [None, None] == [port.gbps for port in sys.ports("mlx5_*/1", with_speed=False)]


def test_virtual_functions_and_what_is_no_device_count_where_they_are_named(sys: Sys) -> None:
    """NVSentinel#1229."""
    sys.interface("eth0")
    sys.interface("eth0v1")
    (sys.root / "class/net/eth0v1/device/physfn").mkdir()
    sys.interface("bond0", is_device=False)
    sys.interface("lo", is_device=False, operstate="unknown")
    sys.infiniband("mlx5_9")
    (sys.root / "class/infiniband/mlx5_9/device/physfn").mkdir()
    assert ["eth0"] == [port.name for port in sys.ports()]
    assert ["bond0", "eth0", "mlx5_9/1"] == [port.name for port in sys.ports("bond0", "mlx5_9/1")]


def test_a_machine_without_infiniband_has_none(sys: Sys) -> None:
    """node_exporter#1511."""
    assert [] == sys.ports()


def history(**more: object) -> History:
    values = {"was_up": True, "ever_up": True, "downs": 0, "flaps": (), "errors": 0, "at_s": 0.0, "rate": None} | more
    return History(**values)


def found(port: Port, settings: Settings, **more: object) -> tuple[str, str]:
    finding = judged([port], {port.name: history(**more)}, settings)
    return str(finding.state), finding.output


NEEDED = Settings(ports=("eth0", "mlx5_*/1"), min_gbps=25.0, fail_errors_per_second=100.0)
ETH, IB = Port("eth0", "up", True, 0, 25.0, 0), Port("mlx5_0/1", "ACTIVE", True, 0, 400.0, 0)
DOWN = Port("eth0", "down", True, 0, None, 0)


@cases(
    "port, expected",
    ("up", ETH, ("passed", "eth0 is up (25 Gb/s)")),
    ("down", DOWN, ("failed", "eth0 is down (down)")),
    ("one whose peer is down", Port("eth0", "lowerlayerdown"), ("failed", "eth0 is down (lowerlayerdown)")),
    ("set down", Port("eth0", "down", is_set_up=False), ("failed", "eth0 is set down")),
    ("set down, and not yet off", Port("eth0", "up", is_set_up=False), ("failed", "eth0 is set down")),
    ("waiting for 802.1X", Port("eth0", "dormant"), ("warned", "eth0 waits (dormant)")),
    ("too slow", Port("eth0", "up", gbps=10.0), ("failed", "eth0 has 10 Gb/s, needs 25")),
    ("without a speed", Port("eth0", "up"), ("unknown", "eth0 does not show its speed, needs 25 Gb/s")),
    ("NVSentinel#1488: that cannot be read", Port("eth0", None), ("unknown", "eth0 does not show its state")),
    ("of InfiniBand, up", IB, ("passed", "mlx5_0/1 is up (400 Gb/s)")),
    ("of InfiniBand, down", Port("mlx5_0/1", "DOWN"), ("failed", "mlx5_0/1 is down (DOWN)")),
    ("of InfiniBand, turned off", Port("mlx5_0/1", "DOWN", is_set_up=False), ("failed", "mlx5_0/1 is set down")),
    ("waiting for the subnet manager", Port("mlx5_0/1", "INIT"), ("warned", "mlx5_0/1 waits (INIT)")),
)
def test_a_needed_port_that_is(port: Port, expected: tuple[str, str]) -> None:
    finding = judged([port], {port.name: history()}, Settings(ports=(port.name,), min_gbps=25.0))
    assert expected == (str(finding.state), finding.output)


@cases(
    "port, more, expected",
    (
        "NVSentinel#1361, gpud#295: never seen up, as without a cable",
        DOWN,
        {"ever_up": False},
        ("passed", "1 ports"),
    ),
    ("that went down", DOWN, {}, ("warned", "eth0 went down (down)")),
    ("that was set down", Port("eth0", "down", is_set_up=False), {}, ("passed", "1 ports")),
    ("that cannot be read", Port("eth0", None), {}, ("passed", "1 ports")),
    ("that flaps", ETH, {"flaps": ((1.0, 4),)}, ("warned", "eth0 went down 4 times in 600 s, at most 3")),
    ("with errors", ETH, {"rate": 5000.0}, ("warned", "eth0 has 5000.0 errors a second")),
)
def test_another_port_closes_nothing(port: Port, more: dict[str, object], expected: tuple[str, str]) -> None:
    assert expected == found(port, Settings(fail_errors_per_second=1.0), **more)


def test_ports_can_be_left_out_by_their_names() -> None:
    """eks-node-monitoring-agent#155, #202."""
    assert ("passed", "1 ports") == found(DOWN, Settings(exclude=("eth*",)))


@cases(
    "more, expected",
    ("steady", {"flaps": ((1.0, 3),)}, ("passed", "eth0 is up (25 Gb/s)")),
    ("flapping", {"flaps": ((1.0, 2), (2.0, 2))}, ("failed", "eth0 went down 4 times in 600 s, at most 3")),
    ("few errors", {"rate": 9.9}, ("passed", "eth0 is up (25 Gb/s)")),
    ("many", {"rate": 10.0}, ("warned", "eth0 has 10.0 errors a second")),
    ("too many", {"rate": 100.0}, ("failed", "eth0 has 100.0 errors a second, fails from 100 on")),
)
def test_a_needed_port_with_a_history(more: dict[str, object], expected: tuple[str, str]) -> None:
    settings = Settings(ports=("eth0",), fail_errors_per_second=100.0)
    assert expected == found(ETH, settings, **more)


def test_the_worst_port_is_the_finding_and_a_missing_one_fails() -> None:
    histories = {port.name: history() for port in (ETH, IB)}
    assert Finding(CheckState.PASSED, "eth0 is up (25 Gb/s); mlx5_0/1 is up (400 Gb/s)") == judged(
        [ETH, IB], histories, NEEDED
    )
    missing = judged([ETH], histories, NEEDED)
    assert Finding(CheckState.FAILED, "not there: mlx5_*/1") == missing


def test_sysfs_of_another_network_namespace_is_unknown() -> None:
    """As on a host that is a container: the agent has the interface, and its sysfs does not show it."""
    words = "not in sysfs: eth0: needs the sysfs of the host's network namespace"
    other = Port("eth9", "up")
    assert Finding(CheckState.UNKNOWN, words) == judged(
        [other], {"eth9": history()}, Settings(ports=("eth0",)), {"eth0"}
    )


def test_without_any_port_it_is_another_network_namespace() -> None:
    words = "no port of the host is seen, so neither are eth0, mlx5_*/1: needs the host's network"
    assert Finding(CheckState.UNKNOWN, words) == judged([], {}, NEEDED)
    assert Finding(CheckState.NOT_APPLICABLE, "no ports") == judged([], {}, Settings())


def looked(*ports: tuple[float, Port], flap_s: float = 600.0) -> History:
    known = None
    for at_s, port in ports:
        known = after(known, port, at_s, flap_s)
    return known


def eth(**more: object) -> Port:
    return Port("eth0", **({"state": "up", "downs": 0, "errors": 0} | more))


@cases(
    "looks, expected",
    ("before the first look", [(0.0, eth(downs=9))], 0),
    ("down and up again between two looks", [(0.0, eth()), (10.0, eth(downs=2))], 2),
    ("a driver that was loaded again", [(0.0, eth(downs=9)), (10.0, eth(downs=1))], 1),
    (
        "a kernel that does not count",
        [(0.0, eth(downs=None)), (10.0, eth(downs=None, state="down")), (20.0, eth(downs=None))],
        1,
    ),
    ("not counted, and not to be read", [(0.0, eth(downs=None)), (10.0, eth(downs=None, state=None))], 0),
    ("forgotten after the window", [(0.0, eth()), (10.0, eth(downs=2)), (610.0, eth(downs=2))], 0),
    ("in the window", [(0.0, eth()), (10.0, eth(downs=2)), (609.0, eth(downs=2))], 2),
)
def test_how_often_a_link_went_down(looks: list[tuple[float, Port]], expected: int) -> None:
    assert expected == looked(*looks).flapped


@cases(
    "looks, expected",
    ("one look", [(0.0, eth(errors=500))], None),
    ("ten seconds", [(0.0, eth(errors=500)), (10.0, eth(errors=700))], 20.0),
    ("a count that was set back", [(0.0, eth(errors=500)), (10.0, eth(errors=3))], None),
    ("and goes on", [(0.0, eth(errors=500)), (10.0, eth(errors=3)), (20.0, eth(errors=53))], 5.0),
    ("two looks at once", [(0.0, eth(errors=0)), (10.0, eth(errors=100)), (10.1, eth(errors=200))], 10.0),
    ("not counted", [(0.0, eth(errors=None)), (10.0, eth(errors=None))], None),
)
def test_how_many_errors_a_second(looks: list[tuple[float, Port]], expected: float | None) -> None:
    assert expected == looked(*looks).rate


def test_no_drawn_history_of_a_port_that_was_never_up_says_anything(seed: int) -> None:
    """Nor does a port that is not needed ever fail, whatever its history; what is remembered is bounded."""
    draw = random.Random(seed)
    for _ in range(300):
        known, at_s, ever, downs, errors = None, 0.0, False, 0, 0
        for _ in range(draw.randrange(1, 40)):
            at_s += draw.choice([0.1, 1.0, 10.0])
            state = draw.choice(["up", "down", "down", "lowerlayerdown", "dormant", None])
            downs, errors = downs + draw.choice([0, 0, 1]), errors + draw.choice([0, 0, 5000])
            port = Port(
                "eth0", state, draw.random() < 0.9, draw.choice([downs, None]), None, draw.choice([errors, None, 0])
            )
            ever |= port.is_up
            known = after(known, port, at_s, 50.0)
            finding = judged([port], {"eth0": known}, Settings(max_flaps=1000))
            assert finding.state in (CheckState.PASSED, CheckState.WARNED)
            assert ever or "went down" not in finding.output
            assert all(at_s - seen_s < 50.0 for seen_s, _ in known.flaps)


def test_the_check_looks_in_a_child_process(sys: Sys) -> None:
    sys.interface()
    check = sys.check(ports=("eth0",), min_gbps=25.0)
    assert Finding(CheckState.PASSED, "eth0 is up (25 Gb/s)") == check()
    sys.interface(operstate="down")
    assert Finding(CheckState.FAILED, "eth0 is down (down)") == check()
    sys.interface()
    assert Finding(CheckState.PASSED, "eth0 is up (25 Gb/s)") == check()


def test_no_sysfs_is_unknown(tmp_path: Path) -> None:
    words = f"cannot look at {tmp_path}/class/net: No such file or directory"
    assert Finding(CheckState.UNKNOWN, words) == Check(Settings(sys=str(tmp_path)), 30.0)()


def test_a_driver_that_hangs_is_hung(sys: Sys) -> None:
    sys.interface()
    (sys.root / "class/net/eth0/operstate").unlink()
    os.mkfifo(sys.root / "class/net/eth0/operstate")
    check = Check(Settings(sys=str(sys.root)), 1.0)
    assert Finding(CheckState.HUNG, f"{sys.root}/class/net: no end after 0.8 s") == check()


@cases(
    "given, rule",
    ("an empty name", {"ports": [""]}, 'ports[0]: is the text "", allowed: text, not empty'),
    ("no speed", {"minGbps": 0}, "minGbps: is 0, allowed: a number above 0 or null"),
    ("a window of nothing", {"flapSeconds": 0}, "flapSeconds: is 0, allowed: whole seconds, 1 to 86400"),
)
def test_what_is_wrong_in_the_settings_is_named(given: dict[str, object], rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        convert(given, Settings)
    assert rule == str(caught.value)
