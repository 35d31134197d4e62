"""python -m tools.bench.faults.rival --source FOLDER: node-problem-detector beside readygate, through the same faults.

FOLDER is a checkout of github.com/kubernetes/node-problem-detector in which these were built:

    CGO_ENABLED=0 go build -tags disable_stackdriver_exporter -o bin/node-problem-detector ./cmd/nodeproblemdetector
    CGO_ENABLED=0 go build -o bin/health-checker ./cmd/healthchecker

It runs as a service on both workers, with the check rules that it publishes in `config`. Each fault stays for HOLD_S or
until both have told of it. Saves tools/bench/faults/rival.json, and puts the table into docs/comparison.md.
"""

import argparse
import json
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.hosts.deployment.probing import clear
from tools.bench.arms import ROOT
from tools.bench.faults import plan
from tools.bench.faults.rounds import Player
from tools.bench.faults.stage import Stage, on_hosts
from tools.bench.faults.watch import Watch
from tools.faults.fault import Fault
from tools.faults.tables import PROC
from tools.kit.endings import EXIT_INTERRUPTED, interrupt_once
from tools.testbed.hosts.errors import HostsError
from tools.testbed.shared.api import ApiError

DOCUMENT = ROOT / "docs" / "comparison.md"
PLACE = re.compile(r"(<!-- table: rival -->\n).*?(<!-- end -->)", re.DOTALL)
SAVED = ROOT / "tools" / "bench" / "faults" / "rival.json"
HOLD_S, HEALED_S = 40.0, 20.0
FOLDER, UNIT = "/var/lib/readygate-rival", "readygate-rival"
KERNEL = ("kernel-monitor.json", "readonly-monitor.json")
# Not custom-plugin-monitor: the hosts have no time service of their own, so it would tell of that for ever.
SCRIPTS = (
    "network-problem-monitor.json",
    "health-checker-containerd.json",
    "health-checker-kubelet.json",
)
SOURCES = ("kernel-monitor", "readonly-monitor", "health-checker", "network-custom-plugin-monitor")
CONDITIONS = {"KernelDeadlock", "XfsShutdown", "ReadonlyFilesystem", "ContainerRuntimeUnhealthy", "KubeletUnhealthy"}
# Of the hosts none has a name server; pods have the cluster's.
RESOLVER = "nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"
PLAYED = (
    "disk-read-only",
    "disk-full",
    "runtime-gone",
    "runtime-hangs",
    "cni-gone",
    "addresses-leaked",
    "dns-service",
    "service-path",
    "gpu-missing",
    "kubelet-hangs",
    "conntrack-drops",
    "log-shutdown",
)
# Played on a copy of /proc, as the table is the whole machine's: the rival sees the copy where it looks for its own.
TABLES = "sys/net/netfilter"
# The hosts have no crictl: containerd's own client asks the same of the same socket, with the same limit.
CRICTL = "#!/bin/sh\nexec timeout 10 ctr --namespace k8s.io containers list --quiet\n"


@dataclass(frozen=True)
class Told:
    """One fault. Seconds since its first command, and since it was healed; None: not within the time. `how`: the
    rival's condition or event."""

    fault: str
    check: str
    ours_s: float | None
    rival_s: float | None
    how: str
    ours_back_s: float | None
    rival_back_s: float | None


def install(stage: Stage, source: Path) -> None:
    """As published but for paths, and without its repairs (it would end the runtime that the fault has stopped)."""
    for node in stage.workers:
        stage.hosts.ssh(node, f"mkdir -p {FOLDER}/config/plugin")
        for name in ("node-problem-detector", "health-checker"):
            with (source / "bin" / name).open("rb") as file:
                stage.hosts.ssh(node, f"cat > {FOLDER}/{name}; chmod +x {FOLDER}/{name}", stdin=file)
        for name in (*KERNEL, *SCRIPTS):
            text = (source / "config" / name).read_text()
            text = text.replace("/home/kubernetes/bin/", f"{FOLDER}/").replace("./config/", f"{FOLDER}/config/")
            text = text.replace("--enable-repair=true", "--enable-repair=false")
            text = text.replace('"--component=cri",', f'"--component=cri", "--crictl-path={FOLDER}/crictl",')
            stage.hosts.ssh(node, f"cat > {FOLDER}/config/{name}", stdin=text)
        for path in (source / "config" / "plugin").glob("*.sh"):
            stage.hosts.ssh(node, f"cat > {FOLDER}/config/plugin/{path.name}", stdin=path.read_text())
        stage.hosts.ssh(node, f"cat > {FOLDER}/crictl", stdin=CRICTL)
        stage.hosts.ssh(node, f"cat > {FOLDER}/resolv.conf", stdin=RESOLVER)
        logs, scripts = (",".join(f"{FOLDER}/config/{name}" for name in names) for names in (KERNEL, SCRIPTS))
        server = f"https://{stage.hosts.layout.first.address}:6443"
        words = (
            f"--logtostderr --hostname-override={node} --config.system-log-monitor={logs} "
            f"--config.custom-plugin-monitor={scripts} --prometheus-port=0 "
            f"'--apiserver-override={server}?inClusterConfig=false&auth=/etc/kubernetes/kubelet.conf'"
        )
        stage.hosts.ssh(
            node,
            f"chmod +x {FOLDER}/crictl {FOLDER}/config/plugin/*.sh; systemctl stop {UNIT} 2>/dev/null; "
            f"systemd-run --unit={UNIT} --collect --quiet --property=WorkingDirectory={FOLDER} "
            f"--property=BindReadOnlyPaths={FOLDER}/resolv.conf:/etc/resolv.conf "
            f"--property=BindReadOnlyPaths={PROC}/{TABLES}:/proc/{TABLES} "
            f"{FOLDER}/node-problem-detector {words}",
        )


def remove(stage: Stage) -> None:
    for node in stage.workers:
        stage.hosts.ssh(node, f"systemctl stop {UNIT}; rm -rf {FOLDER}", check=False)


class Listener:
    """What the rival says of a node: its conditions that are true, and how often it has told each event."""

    def __init__(self, stage: Stage, node: str) -> None:
        self._api, self._node = stage.api, node

    def said(self) -> dict[str, int]:
        conditions = self._api.get(f"/api/v1/nodes/{self._node}")["status"].get("conditions") or []
        told = {f"condition {c['type']}": 1 for c in conditions if c["type"] in CONDITIONS and c["status"] == "True"}
        selector = f"?fieldSelector=involvedObject.kind=Node,involvedObject.name={self._node}"
        for event in self._api.items(f"/api/v1/namespaces/default/events{selector}"):
            source = (event.get("source") or {}).get("component") or ""
            if source.startswith(SOURCES) and event["type"] == "Warning":
                name = f"event {event['reason']}"
                told[name] = told.get(name, 0) + (event.get("count") or 1)
        return told


def new(before: dict[str, int], now: dict[str, int]) -> list[str]:
    return sorted(name for name, count in now.items() if count > before.get(name, 0))


def play(stage: Stage, player: Player, watch: Watch, fault: Fault, node: str) -> Told:
    listener = Listener(stage, node)
    if watch.wait(node, closed=False, timeout_s=60) is None:
        raise HostsError(f"{node} is closed before {fault.name}: {watch.reason(node)}")
    before = listener.said()
    began, _ = player.inject(node, fault)
    ours: float | None = None
    rival: float | None = None
    how: list[str] = []
    try:
        while time.time() - began < HOLD_S and (rival is None or ours is None):
            closed = watch.wait(node, closed=True, timeout_s=0)
            ours = ours if ours is not None or closed is None else closed - began
            if rival is None and (how := new(before, listener.said())):
                rival = time.time() - began
            time.sleep(0.3)
    finally:
        _, healed = player.run(node, fault.heal)
    opened = watch.wait(node, closed=False, timeout_s=60) if ours is not None else None
    back: float | None = None
    conditions = [name for name in how if name.startswith("condition ")]
    while conditions and back is None and time.time() - healed < HEALED_S:
        if not set(conditions) & set(listener.said()):
            back = time.time() - healed
        time.sleep(0.3)
    opened_s = max(0.0, opened - healed) if opened is not None else None
    return Told(fault.name, fault.check, ours, rival, ", ".join(how), opened_s, back)


def table(told: list[Told]) -> str:
    lines = [
        "| fault | readygate closes, s | opens again, s | node-problem-detector tells, s | first by |",
        "|---|---|---|---|---|",
    ]
    for each in told:
        cells = [_shown(value) for value in (each.ours_s, each.ours_back_s, each.rival_s)]
        what = plan.TRIED[each.fault].what
        lines.append(f"| {what} | {' | '.join(cells)} | {each.how or '-'} |")
    return "\n".join(lines) + "\n"


def _shown(value: float | None) -> str:
    return "not" if value is None else f"{value:.1f}"


def whole(
    source: Path, progress: Callable[[str], None], save: Path, names: list[str], *, keep: bool, installed: bool
) -> None:
    told: dict[str, Told] = {}
    faults = [plan.TRIED[name] for name in (names or PLAYED)]
    with tempfile.TemporaryDirectory() as folder, on_hosts(Path(folder), progress, keep=keep) as stage:
        if not installed:
            stage.install("fast", anew=False)
        with Watch(stage.hosts, stage.hosts.names) as watch:
            player = Player(stage.hosts, stage.api, watch, plan.TRIED)
            try:
                install(stage, source)
                time.sleep(40)  # its first conditions

                def some(node: str, mine: list[Fault]) -> None:
                    for fault in mine:
                        try:
                            told[fault.name] = play(stage, player, watch, fault, node)
                            progress(f"{node}: {told[fault.name]}")
                        except (HostsError, ApiError) as e:
                            progress(f"{node}: {fault.name}: {e}")

                alone = [fault for fault in faults if fault.name in plan.EVERYWHERE]
                others = [fault for fault in faults if fault not in alone]
                threads = [
                    threading.Thread(target=some, args=(node, others[n :: len(stage.workers)]), daemon=True)
                    for n, node in enumerate(stage.workers)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    while thread.is_alive():
                        thread.join(0.5)
                some(stage.workers[0], alone)
            finally:
                player.heal_all(stage.workers, progress)
                remove(stage)
                clear(stage.api)
    found = [told[fault.name] for fault in faults if fault.name in told]
    save.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.faults.rival", description=__doc__)
    parser.add_argument(
        "--source", type=Path, help="checkout of node-problem-detector; none: the table of what is saved"
    )
    parser.add_argument("--only", action="append", choices=list(plan.TRIED), default=[], help="may be repeated")
    parser.add_argument("--keep", action="store_true", help="leave hosts and readygate as they are")
    parser.add_argument("--installed", action="store_true", help="readygate is there as an earlier --keep has left it")
    parser.add_argument("--save", type=Path, default=SAVED)
    arguments = parser.parse_args()
    interrupt_once()
    started = time.monotonic()
    if arguments.source is not None:

        def progress(text: str) -> None:
            print(f"[{time.monotonic() - started:5.0f} s] {text}", flush=True)

        try:
            whole(
                arguments.source,
                progress,
                arguments.save,
                arguments.only,
                keep=arguments.keep,
                installed=arguments.installed,
            )
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
    if arguments.save == SAVED:
        DOCUMENT.write_text(filled(DOCUMENT.read_text()))
    print(table(saved(arguments.save)))
    return 0


def filled(document: str) -> str:
    """With the table of what is saved."""
    return PLACE.sub(lambda place: f"{place[1]}\n{table(saved())}\n{place[2]}", document)


def saved(path: Path = SAVED) -> list[Told]:
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return [Told(**row) for row in rows]


if __name__ == "__main__":
    sys.exit(main())
