"""python -m tools.bench.pods: seconds from no pod to many on one node and back, of the agent and of the real kubelet.

Root, on Debian or Ubuntu: a host of ring 3, whose containerd serves both, in turns. Prints a table. Saves the figures
in build/bench-pods.json, and each round with its time in build/bench-pods-rounds.json. On hosts that are up
(`python -m tools.testbed --ring hosts up`) the kubelet is back at the end; else hosts are made for this and ended.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.hosts.alone import HOST, NODE, alone
from tests.hosts.conftest import with_image
from tests.hosts.waiting import wait_until
from tools.bench.arms import ROOT
from tools.bench.figures import save, table
from tools.bench.pods.results import AGENT, ARMS, figures
from tools.bench.pods.rounds import Pods, Round
from tools.bench.processes import MeasurementError
from tools.kit.commands import BuildError
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tools.testbed.hosts.access import AdminApi
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import chosen
from tools.testbed.shared.api import ApiError
from tools.testbed.shared.binaries import BinariesMissing

SAVED = ROOT / "build" / "bench-pods.json"
SIZES = (1, 10, 50, 100, 200)
MOST_PODS = 250  # of both: a kubelet has 110 by default
FOLDER, FLAGS = "/etc/kubernetes/readygate-bench.d", "/etc/default/kubelet"
SETTINGS = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": MOST_PODS}
EXIT_CODES = """exit codes:
  0    measured
  1    not measured: the hosts could not be made, or pods did not become Ready or did not go
  2    wrong usage
  130  ended by Ctrl-C or SIGTERM; the kubelet is back, or the hosts have ended
"""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.pods",
        description=__doc__,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=_sizes, default=SIZES, help="numbers of pods (default: 1,10,50,100,200)")
    parser.add_argument("--rounds", type=int, default=3, help="of each arm and size (default: 3)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.add_argument("--save", type=Path, default=SAVED, help="default: build/bench-pods.json")
    return parser.parse_args()


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(word) for word in text.split(",") if word.isdigit())
    if not sizes or len(sizes) != len(text.split(",")) or not all(0 < size <= 200 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text}: give numbers of 1 to 200, as 1,10,200")
    return sizes


@contextmanager
def _hosts(say: Callable[[str], None]) -> Iterator[Hosts]:
    """Those that are up, else some made for this."""
    hosts = Hosts(chosen(), progress=lambda text: say(f"hosts: {text}"))
    if hosts.running():
        yield hosts
    else:
        with hosts:
            yield hosts


@contextmanager
def _kubelet(hosts: Hosts) -> Iterator[None]:
    """The real one, which takes as many pods as the agent."""
    path, before = f"{FOLDER}/10-pods.conf", f"{FLAGS}.before"
    lines = [f"mkdir -p {FOLDER}", f"echo {shlex.quote(json.dumps(SETTINGS))} > {path}"]
    lines += [f"if [ -e {FLAGS} ]; then cp {FLAGS} {before}; fi"]
    lines += [f"echo 'KUBELET_EXTRA_ARGS=--config-dir={FOLDER}' > {FLAGS}", "systemctl restart kubelet"]
    try:
        hosts.ssh(HOST, "; ".join(lines))
        room = "--output=jsonpath={.status.allocatable.pods}"
        wait_until(
            lambda: hosts.kubectl("get", "node", HOST, room, check=False).stdout == str(MOST_PODS),
            "the kubelet takes as many pods as the agent",
        )
        yield
    finally:
        back = f"rm -rf {FOLDER} {FLAGS}; if [ -e {before} ]; then mv {before} {FLAGS}; fi; systemctl restart kubelet"
        hosts.ssh(HOST, back)


@contextmanager
def _agent(hosts: Hosts, image: str) -> Iterator[None]:
    with alone(hosts, image, maxPods=MOST_PODS):
        yield


def _measured(options: argparse.Namespace, say: Callable[[str], None], keep: Callable[[Round], None]) -> None:
    """Raises HostsError, MeasurementError, ApiError, BinariesMissing, BuildError, AssertionError."""
    with tempfile.TemporaryDirectory() as folder, _hosts(say) as hosts:
        image = with_image(hosts)
        with Pods(AdminApi(hosts.kubeconfig, Path(folder)), image) as pods:
            for number in range(options.rounds):
                # Each arm is as often the first: what a machine does better the second time helps none.
                for arm in ARMS if number % 2 == 0 else reversed(ARMS):
                    node = NODE if arm == AGENT else HOST
                    with _agent(hosts, image) if arm == AGENT else _kubelet(hosts):
                        pods.play(node, 1)  # warms up
                        for size in options.sizes:
                            load = os.getloadavg()[0]
                            keep(Round(arm, size, *pods.play(node, size), load))


def main() -> int:
    options, started, rounds = _options(), time.monotonic(), list[Round]()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:5.0f} s] {text}", file=sys.stderr, flush=True)

    def keep(one: Round) -> None:
        """What was measured is saved at once: what comes later may be interrupted."""
        rounds.append(one)
        took = f"Ready after {one.ready_s:.2f} s, gone after {one.gone_s:.2f} s"
        say(f"{one.arm}: {one.pods} pods {took}; load {one.load:.1f}")
        save(figures(rounds), options.save)
        raw = [{**asdict(each), "began": f"{datetime.fromtimestamp(each.began, UTC):%FT%TZ}"} for each in rounds]
        options.save.with_name(f"{options.save.stem}-rounds.json").write_text(json.dumps(raw, indent=1) + "\n")

    say(f"{os.cpu_count()} cores; load before the start {os.getloadavg()[0]:.1f}; {datetime.now(UTC):%FT%TZ}")
    interrupt_once()
    code = 0
    try:
        _measured(options, say, keep)
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except (HostsError, MeasurementError, ApiError, BinariesMissing, BuildError, AssertionError) as e:
        say(f"FAILED: {e}")
        code = 1
    found = figures(rounds)
    if options.output == "json":
        print(json.dumps([asdict(figure) for figure in found], indent=1))
    elif found:
        print(f"\n{table(found)}\n\nsaved in {options.save}")
    return code


if __name__ == "__main__":
    sys.exit(main())
