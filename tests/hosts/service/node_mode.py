"""A DaemonSet whose pods do as a file on their host says, agents in mode node beside real kubelets, and who reads both.

The pods have a readiness gate that a test flips. Our own condition is none of their readiness gates: so what the
kubelet says of them does not follow from what the agent says.
"""

import itertools
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import urllib3

from agent.wire.condition import ANNOTATION_SPEAKER
from kube import contract
from tests.charts import rendering as chart
from tests.hosts.deployment.api import AdminApi
from tests.hosts.waiting import PATIENT_S, wait_until
from tools.kit import brakes
from tools.kit.ports import free_port
from tools.kit.programs import Program
from tools.testbed.hosts.hosts import Hosts
from tools.testbed.shared.api import ApiError, Object, condition

NAME = "node-health"
NS = contract.NAMESPACE
LABELS = {"app": NAME}
PODS = f"/api/v1/namespaces/{NS}/pods"
FLIPPED = "example.com/flipped"  # a readiness gate
FOLDER = f"/run/{NAME}"  # of each host; the file `mode` in it is what its pod does
UNIT = "readygate-node"
PORT = 8080
GRANTED = {"ServiceAccount", "Role", "RoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
READINESS = {"periodSeconds": 1, "timeoutSeconds": 6, "failureThreshold": 2}
BUDGET_S = 2 * 1 + 6  # failures, period, timeout
SILENT_S = 20  # an agent that is silent for so long closes its node
RELIST_S = 1.5  # a kubelet's second, and the time to tell of it

ASK = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9374/checks', timeout=5).read().decode())"

# "ok"; "failing": not ready; "slow": no answer in time; "dead": its kubelet kills it. It begins as "ok".
APP = f"""# {NAME}-app
import http.server, pathlib, time
mode = pathlib.Path("/host/mode")
mode.write_text("ok")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = mode.read_text().strip()
        live = self.path == "/live"
        if told == "slow" and not live:
            time.sleep(20)
        bad = told == "dead" if live else told == "failing"
        try:
            self.send_response(500 if bad else 200)
            self.end_headers()
        except OSError:
            pass
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
Server(("", {PORT}), Handler).serve_forever()
"""


def granted() -> str:
    """The agent's account, what it may do, and the policies that leave it its own pod and its own Lease."""
    given = ['image.repository="readygate"', "agent.heartbeat=true"]
    ours = [
        body
        for (kind, _, name), body in chart.objects(given=given).items()
        if kind in GRANTED and name.startswith(contract.NAME_AGENT)
    ]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, *ours]})


def daemon_set(image: str) -> Object:
    readiness = {"httpGet": {"path": "/ready", "port": PORT}, **READINESS}
    liveness = {"httpGet": {"path": "/live", "port": PORT}, "periodSeconds": 1, "timeoutSeconds": 20}
    container = {
        "name": "app",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["python3", "-c", APP],
        "readinessProbe": readiness,
        "livenessProbe": {**liveness, "failureThreshold": 1},
        "startupProbe": {**liveness, "failureThreshold": 120},
        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
        "securityContext": {"runAsUser": 0},
    }
    spec = {
        "serviceAccountName": contract.NAME_AGENT,
        "terminationGracePeriodSeconds": 1,
        "readinessGates": [{"conditionType": FLIPPED}],
        "containers": [container],
        "volumes": [{"name": "host", "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"}}],
        "tolerations": [{"operator": "Exists"}],
    }
    template = {"metadata": {"labels": LABELS, "annotations": {ANNOTATION_SPEAKER: "node"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NS},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template},
    }


@dataclass(frozen=True)
class Said:
    """A word on a pod at a moment, wall seconds. None: it is not known."""

    at: float
    containers_ready: bool | None
    ready: bool | None


_LINE = re.compile(
    r"^(\S+Z) INFO agent\.opinion\.judge our word on a health pod "
    r'pod="([^"]*)" containers_ready="([^"]*)" ready="([^"]*)"'
)
_WORDS = {"ready": True, "not ready": False}


def ours_in(text: str, pod: str) -> list[Said]:
    """What the agent has said of a pod in its log."""
    found = [_LINE.match(line) for line in text.splitlines()]
    return [
        Said(datetime.fromisoformat(line[1]).timestamp(), _WORDS.get(line[3]), _WORDS.get(line[4]))
        for line in found
        if line is not None and line[2] == f"{NS}/{pod}"
    ]


def theirs_of(pod: Object, at: float) -> Said:
    """What its kubelet says of a pod."""
    found = {kind: condition(pod, kind).get("status") for kind in ("ContainersReady", "Ready")}
    words = {kind: {"True": True, "False": False}.get(status or "") for kind, status in found.items()}
    return Said(at, words["ContainersReady"], words["Ready"])


Word = tuple[float, bool | None]  # since when


def same(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether two say the same in the same order, but for words that one of them takes back within a relist.

    Between the death of a container and its relist, a second later, a kubelet may still believe what a probe of it
    said, and so say ready once more (pkg/kubelet/kubelet.go, genericPlegRelistPeriod).
    """
    longer, shorter = sorted((_turns(ours), _turns(theirs)), key=len, reverse=True)
    while len(longer) > len(shorter):
        stood = [after[0] - word[0] for word, after in itertools.pairwise(longer)]
        briefest = min(range(1, len(stood)), key=stood.__getitem__, default=0)  # the first is where both began
        if not briefest or stood[briefest] > RELIST_S:
            return False
        longer = _turns([*longer[:briefest], *longer[briefest + 1 :]])
    return [word for _, word in longer] == [word for _, word in shorter]


def _turns(words: Sequence[Word]) -> list[Word]:
    """Each word once as long as it stands."""
    known = [word for word in words if word[1] is not None]
    return [word for index, word in enumerate(known) if index == 0 or word[1] is not known[index - 1][1]]


@dataclass
class Node:
    """One host: its pod and its agent. `theirs`: every word of its kubelet on the pod, as the API server told it."""

    hosts: Hosts
    api: AdminApi
    name: str
    log: Path
    theirs: list[Said] = field(default_factory=list)
    pod: Object = field(default_factory=dict)

    def ssh(self, command: str) -> str:
        return self.hosts.ssh(self.name, command).stdout

    def mode(self, mode: str) -> None:
        self.ssh(f"echo {mode} > {FOLDER}/mode")

    @property
    def path(self) -> str:
        return f"{PODS}/{self.pod['metadata']['name']}"

    def flip(self, status: str) -> None:
        self.api.request(
            "PATCH",
            f"{self.path}/status",
            {"status": {"conditions": [{"type": FLIPPED, "status": status}]}},
            content_type="application/strategic-merge-patch+json",
        )

    def find(self) -> bool:
        """Whether it has its pod."""
        items = self.api.items(f"{PODS}?labelSelector=app%3D{NAME}&fieldSelector=spec.nodeName%3D{self.name}")
        alive = [item for item in items if "deletionTimestamp" not in item["metadata"]]
        self.pod = alive[0] if alive else {}
        return bool(alive)

    @property
    def container(self) -> str:
        """Its id, as told last."""
        return (self.api.get(self.path)["status"].get("containerStatuses") or [{}])[0].get("containerID", "")

    def ours(self) -> list[Said]:
        return ours_in(self.log.read_text(errors="replace"), self.pod["metadata"]["name"])

    def checks(self) -> dict[str, dict[str, Any]]:
        """What its agent says of each; none where it does not answer."""
        page = json.loads(self.ssh(f'python3 -c "{ASK}" 2>/dev/null || echo {{}}') or "{}")
        return {check["name"]: check for check in page.get("checks", [])}

    @contextmanager
    def read(self) -> Iterator[None]:
        """Reads what both say, until it ends."""
        stopping = threading.Event()
        follow = ["ssh", "-F", str(self.hosts.ssh_config), self.name, f"journalctl -u {UNIT} -f -o cat -n 1000"]

        def watch() -> None:
            name = self.pod["metadata"]["name"]
            while not stopping.is_set():
                try:
                    for _, found in self.api.watch(f"{PODS}?fieldSelector=metadata.name%3D{name}", timeout_s=60):
                        self.theirs.append(theirs_of(found, time.time()))
                        if stopping.is_set():
                            return
                except (ApiError, urllib3.exceptions.HTTPError):
                    stopping.wait(0.2)

        with self.log.open("wb") as output, subprocess.Popen(follow, stdin=subprocess.DEVNULL, stdout=output) as reads:
            threading.Thread(target=watch, name="theirs", daemon=True).start()
            try:
                yield
            finally:
                stopping.set()
                reads.kill()


@contextmanager
def beside_health_pods(nodes: Sequence[Node], image: str) -> Iterator[None]:
    """Each node has a health pod whose readiness gate is flipped, and an agent on it may speak for that."""
    hosts = nodes[0].hosts
    try:
        hosts.kubectl("apply", "--validate=false", "-f-", stdin=granted())
        hosts.kubectl("apply", "--validate=false", "-f-", stdin=json.dumps(daemon_set(image)))
        wait_until(lambda: all(node.find() for node in nodes), "a health pod on each node")
        for node in nodes:
            node.flip("True")
        yield
    finally:
        hosts.kubectl("delete", "--ignore-not-found", "--timeout=60s", "-f-", stdin=granted(), timeout_s=90.0)


@contextmanager
def deciding(nodes: Sequence[Node], folder: Path) -> Iterator[Program]:
    """An extender as a process of this machine, once it says that these nodes are open. It looks at agents' heartbeats
    and at no kubelet's, and closes whatever is bad."""
    settings = brakes.off(
        {
            "listen": {"address": "127.0.0.1", "port": free_port()},
            "kubernetes": {"kubeconfig": str(nodes[0].hosts.kubeconfig)},
            "gates": [{"healthPods": {"namespace": NS, "labelSelector": f"app={NAME}", "daemonSet": NAME}}],
            "feed": {"socket": str(folder / "feed" / "socket")},
            "statusApi": {"address": "127.0.0.1", "port": free_port()},
            "heartbeat": {"limitSeconds": 0, "agents": {"limitSeconds": SILENT_S}},
            "outlets": {"nodeCondition": {"enabled": False}, "events": {"enabled": False}},
        }
    )
    made = Program("extender", settings, folder)
    made.start()
    try:
        made.process.wait_ready(made.ready, timeout_s=PATIENT_S)
        for node in nodes:
            wait_until(
                lambda name=node.name: Verdicts(made, name).ask() == "open",
                lambda name=node.name: f"{name} is open: {made.process.text()[-1000:]}",
            )
        yield made
    finally:
        made.stop()


@dataclass
class Verdicts:
    """What an extender says of a node, asked all the time. `seen`: (monotonic seconds, word), where it has changed."""

    extender: Program
    node: str
    seen: list[tuple[float, str]] = field(default_factory=list)

    def ask(self) -> str:
        body = json.dumps({"Pod": {}, "Nodes": None, "NodeNames": [self.node]})
        try:
            reply = urllib3.request("POST", f"{self.extender.url}/filter", body=body, timeout=60.0, retries=False)
        except urllib3.exceptions.HTTPError:
            return "no answer"
        said = reply.json()
        if said.get("Error"):
            return "no answer"
        return "closed" if self.node in (said["FailedAndUnresolvableNodes"] or {}) else "open"

    @contextmanager
    def asked(self) -> Iterator["Verdicts"]:
        """From when the node is open: what the test before has left behind is over then."""
        wait_until(lambda: self.ask() == "open", f"{self.node} is open")
        stopping = threading.Event()

        def run() -> None:
            while not stopping.is_set():
                verdict = self.ask()
                if not self.seen or self.seen[-1][1] != verdict:
                    self.seen.append((time.monotonic(), verdict))
                stopping.wait(0.05)

        thread = threading.Thread(target=run, name="verdicts", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stopping.set()
            thread.join()

    @property
    def words(self) -> list[str]:
        return [word for _, word in self.seen]

    def is_last(self, word: str) -> Callable[[], bool]:
        return lambda: bool(self.seen) and self.seen[-1][1] == word
