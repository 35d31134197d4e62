"""python -m tools.bench.deploying: how long the playbooks take, how long no scheduler runs meanwhile, what they leave.

Real hosts (ring 3, root). Plays site.yml on a fresh cluster, again, and with a setting by which each scheduler starts
anew, then uninstall.yml. Prints the longest tasks and a table with the machine's load; saves it in
build/bench-deploying.json, where figures of another number of control planes stay. On hosts that are up
(`python -m tools.testbed --ring hosts up`) and have no readygate, else on hosts made for this and ended.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from kube import contract
from tests.hosts.conftest import with_image
from tests.hosts.deployment.api import AdminApi
from tests.hosts.deployment.conftest import KUBEADM_CONFIG, ansible_for, namespaces
from tests.hosts.deployment.landing import Landings
from tests.hosts.deployment.playbook import Run
from tools.bench.arms import ROOT
from tools.bench.figures import Figure, save, table
from tools.bench.processes import MeasurementError
from tools.kit.commands import BuildError
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tools.kit.waiting import wait_for
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.hosts.layout import ONE_CONTROL, THREE_CONTROLS
from tools.testbed.shared.api import ApiError
from tools.testbed.shared.binaries import BinariesMissing

SAVED = ROOT / "build" / "bench-deploying.json"
CALLBACKS = ROOT / "tests" / "hosts" / "deployment" / "callback_plugins"
LIMIT_S = 1200.0
WATCH_S = 0.1
NOTICED_S = 1.0  # a pause between two answers that is longer is a scheduler that is not there
LONGEST = 8
UNIT = "readygate-bench-watch"
# As the roles have it; the tests' plays wait less.
DEFAULTS = {"readygate_agent_min_ready_seconds": 60}
ANOTHER = {"readygate_scheduler_config_http_timeout": "2s"}
# When kube-scheduler of this host answers, by the clock that all hosts share.
_WATCH = f"""
import ssl, time, urllib.request
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}), urllib.request.HTTPSHandler(context=context))
while True:
    try:
        opener.open("https://127.0.0.1:10259/healthz", timeout=1).read()
        print(time.monotonic(), flush=True)
    except OSError:
        pass
    time.sleep({WATCH_S})
"""
# What a host is made of, and whatever has our name elsewhere.
_FILES = (
    "find /etc/kubernetes /etc/systemd/system -not -path '*/pki/*' -type f"
    " -printf '%m %U:%G %p ' -exec sha256sum {} ';';"
    " find /etc/kubernetes /etc/systemd/system -not -path '*/pki/*' -type d;"
    " find /etc /opt /run /root /usr/local /var/lib -xdev -iname '*readygate*' -not -path '/var/lib/containerd/*'"
    " -not -path '/run/containerd/*' -not -path '/var/lib/kubelet/pods/*'"
)
Span = tuple[float, float]


def absences(answered: Sequence[float]) -> list[Span]:
    """Between two answers, where that is long; times in any order."""
    return [(begin, end) for begin, end in pairwise(sorted(answered)) if end - begin > NOTICED_S]


def longest(spans: Sequence[Span]) -> float:
    return max((end - begin for begin, end in spans), default=0.0)


def together(hosts: Sequence[Sequence[Span]]) -> list[Span]:
    """When all were absent at once."""
    found = list(hosts[0])
    for more in hosts[1:]:
        found = [(max(a, c), min(b, d)) for a, b in found for c, d in more if max(a, c) < min(b, d)]
    return found


def merged(earlier: Sequence[Figure], now: Sequence[Figure]) -> list[Figure]:
    """Those of another number of control planes stay."""
    names = {figure.name for figure in now}
    return [*(figure for figure in earlier if figure.name not in names), *now]


@contextmanager
def cluster(controls: int) -> Iterator[Hosts]:
    hosts = Hosts(THREE_CONTROLS if controls > 1 else ONE_CONTROL, progress=progress)
    found = hosts.running()
    if not found:
        hosts.up()
    try:
        yield hosts
    finally:
        if not found:
            hosts.down()


class Bench:
    """A cluster and its control planes; `figures` grow."""

    def __init__(self, hosts: Hosts, controls: Sequence[str], folder: Path) -> None:
        self._hosts, self._controls, self._folder = hosts, controls, folder
        self._api = AdminApi(hosts.kubeconfig, folder)
        self._ansible = ansible_for(hosts, with_image(hosts), folder, "bench-deploying", limit_s=LIMIT_S)
        self._of = f"deploy_{len(controls)}"
        self.figures: list[Figure] = []

    def whole(self) -> None:
        if len(self._controls) > 1:
            self._complete()
        if contract.NAMESPACE in namespaces(self._api):
            raise MeasurementError(f"namespace {contract.NAMESPACE} is there already: uninstall.yml first")
        before = self._state()
        spans: dict[str, list[Span]] = {host: [] for host in self._controls}
        with self._watched(spans):
            self._add("first_s", self._play("site.yml").seconds)
        second = self._play("site.yml")
        self._add("second_s", second.seconds)
        self._add("second_changed", second.changed, "tasks")
        with self._watched(spans), Landings(self._api) as landings:
            self._add("change_s", self._play("site.yml", **ANOTHER).seconds)
            waited_s = landings.settle()
        if not math.isfinite(waited_s):
            raise MeasurementError("a pod has not landed")
        with self._watched(spans):
            self._add("uninstall_s", self._play("uninstall.yml").seconds)
        each = ", ".join(f"{end - begin:.1f}" for found in spans.values() for begin, end in found)
        self._add("scheduler_absent_s", max(map(longest, spans.values())), note=f"at each start: {each}")
        self._add("all_absent_s", longest(together(list(spans.values()))))
        self._add("pod_waited_s", waited_s)
        wait_for(lambda: self._state() == before, timeout_s=10.0, every_s=1)
        left = sorted(before ^ self._state())
        self._add("left", len(left), "files", note="; ".join(left[:3]))

    def _complete(self) -> None:
        """The third joins, and pods may land: there is no other node."""
        names = {node["metadata"]["name"] for node in self._api.items("/api/v1/nodes")}
        for name in set(self._controls) - names:
            self._hosts.join(name)
        for name in self._controls:
            self._api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def _play(self, playbook: str, **variables: Any) -> Run:
        """Raises MeasurementError."""
        times = self._folder / "times"
        times.unlink(missing_ok=True)
        callback = {
            "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACKS),
            "ANSIBLE_CALLBACKS_ENABLED": "task_times",
            "READYGATE_TIMES": str(times),
        }
        try:
            run = self._ansible.run(playbook, hosts=self._controls, environ=callback, **{**DEFAULTS, **variables})
        except subprocess.TimeoutExpired as e:
            raise MeasurementError(f"{playbook} has not ended after {e.timeout:.0f} s") from e
        if run.code != 0:
            raise MeasurementError(f"{playbook} failed: {run.told()[-600:]}")
        told = sorted((float(line.partition(" ")[0]), line) for line in times.read_text().splitlines())
        for _, line in reversed(told[-LONGEST:]):
            progress(f"  {line}")
        progress(f"  {len(told)} tasks in all")
        return run

    @contextmanager
    def _watched(self, spans: dict[str, list[Span]]) -> Iterator[None]:
        """When each host's scheduler did not answer meanwhile."""
        log = f"/root/{UNIT}.log"
        with ExitStack() as stack:
            for host in self._controls:
                self._hosts.ssh(host, "cat > /root/watch.py", stdin=_WATCH)
                output = f"--property=StandardOutput=file:{log}"
                start = f"systemd-run --unit={UNIT} --collect --quiet {output} python3 /root/watch.py"
                stack.callback(self._hosts.ssh, host, f"systemctl stop {UNIT}; rm -f /root/watch.py {log}", check=False)
                self._hosts.ssh(host, f"rm -f {log}; {start}")
            yield
            for host in self._controls:
                said = self._hosts.ssh(host, f"cat {log}").stdout.split()
                if not said:
                    raise MeasurementError(f"kube-scheduler of {host} has never answered")
                spans[host] += absences([float(each) for each in said])

    def _state(self) -> set[str]:
        """A line for each file of each host, and one for what kubeadm's ClusterConfiguration says."""
        found = {f"{host} {line}" for host in self._hosts.names for line in self._lines(host)}
        cluster = yaml.safe_load(self._api.get(KUBEADM_CONFIG)["data"]["ClusterConfiguration"])
        return found | {"kubeadm-config " + json.dumps(cluster, sort_keys=True)}

    def _lines(self, host: str) -> list[str]:
        return self._hosts.ssh(host, _FILES, check=False).stdout.splitlines()

    def _add(self, name: str, value: float, unit: str = "s", note: str = "") -> None:
        load = f"load {os.getloadavg()[0]:.1f}"
        self.figures.append(Figure(f"{self._of}_{name}", value, unit, f"{load}; {note}" if note else load))
        progress(f"{name}: {value:.2f}, {load}{'; ' if note else ''}{note}")


_started = time.monotonic()


def progress(text: str) -> None:
    print(f"[{time.monotonic() - _started:5.0f} s] {text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.deploying", description=__doc__)
    parser.add_argument("--controls", type=int, choices=[1, 3], default=1, help="control planes; default: 1")
    parser.add_argument("--save", type=Path, default=SAVED, help="default: build/bench-deploying.json")
    arguments = parser.parse_args()
    interrupt_once()
    progress(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}")
    try:
        with tempfile.TemporaryDirectory() as folder, cluster(arguments.controls) as hosts:
            bench = Bench(hosts, [f"control-{number + 1}" for number in range(arguments.controls)], Path(folder))
            bench.whole()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (MeasurementError, HostsError, ApiError, BinariesMissing, BuildError) as e:
        print(f"bench-deploying: {e}", file=sys.stderr)
        return 1
    earlier = json.loads(arguments.save.read_text()) if arguments.save.exists() else []
    save(merged([Figure(**each) for each in earlier], bench.figures), arguments.save)
    print(f"\n{table(bench.figures)}\n\nsaved in {arguments.save}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
