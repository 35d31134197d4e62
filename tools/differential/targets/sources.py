"""Where pods come from, step by step: manifest files that come, change, break and go, lists of the API server, and the
mirrors of static pods. podStorage.Merge, sourceFile, the pod manager and the mirror client.

Left out: how the kernel reports changes (here the folder is read at each step), explicit defaults and unknown fields,
which are no part of a kubelet's hash, and terminal phases that somebody else writes.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from agent.kubelet.pods.manifest_folder import GONE_S, Folder
from agent.kubelet.pods.mirrors import RETRY_S, Mirrors
from agent.kubelet.pods.source import PodTable
from agent.wire.manifest import StaticPod
from agent.wire.model import Node, Pod
from agent.wire.pod import PodObject
from agent.wire.semantics import Semantics
from kube.errors import Conflict, KubeError, NotFound, ServerError
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

NODE = "n"
FILES = ("a.yaml", "b.yaml", "c.json")
NAMES = ("web", "web", "db", "x" * 251, "x" * 252, "a.b", "Up", "")
BROKEN = (
    "",
    "kind: [",
    "{",
    "null",
    "- a",
    "apiVersion: v1\nkind: Pod\n",
    "apiVersion: v1\nkind: Pod\nmetadata: {name: 3}\nspec: {containers: [{name: c, image: i}]}\n",
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {a: yes}}\nspec: {containers: [{name: c, image: i}]}\n",
    "apiVersion: v1\nkind: PodList\nitems: []\n",
    "apiVersion: apps/v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n",
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [',
    "\tapiVersion: v1",
)
# Values as YAML writes them.
GRACES = ("5", "0x1F", "010", "1_0", "45.0", "'5'", "5.5", "1:30", "09", "-1", "1e1", "yes")
FLAGS = ("true", "yes", "On", "y", "'true'", "1", "TRUE", "oN")
REFERENCES = (
    "serviceAccountName: a",
    "imagePullSecrets: [{name: s}]",
    "volumes: [{name: v, configMap: {name: m}}]",
    "volumes: [{name: v, hostPath: {path: /a}}]",
    "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]",
    "volumes: [{name: v, projected: {sources: [{downwardAPI: {}}]}}]",
    "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]",
)
CONTAINERS = (
    "{name: c, image: i}",
    "{name: c, image: j}",
    "{name: d, image: i, env: [{name: A, value: b}]}",
    "{name: C, image: i}",
    "{name: c}",
    "{name: e, image: i, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}",
    "{name: g, image: 'a:1/b', args: [a:1, b:, c]}",
    "{name: h, image: a:1}",
    "{name:k, image: i}",
    "{name: l, image: i, env:[]}",
    "{name: f, image: i, envFrom: [{configMapRef: {name: m}}]}",
)


class SourcesTarget:
    name = "sources"

    def draw(self, random: Random) -> History:
        wall, node, steps, mirrors = worlds.START, "there", [], itertools.count()
        # Several files may have one pod's name, and one file another name than before: only a scan puts that right.
        doubles = maybe(random, 0.3)
        ours = {file: "web" if doubles else f"web-{index}" for index, file in enumerate(FILES)}
        pods: dict[str, Any] = {}
        gone = False
        for _ in range(random.randint(1, 7)):
            wall += random.choice((1.0, 10.0, GONE_S))
            was_gone, gone = gone, maybe(random, 0.12)
            files: dict[str, str | None] = {}
            for file in FILES:
                if maybe(random, 0.35):
                    files[file] = None if maybe(random, 0.25) else self._file(random, ours[file], doubles=doubles)
            self._change(random, pods, [f"{name}-{NODE}" for name in ours.values()], mirrors)
            node = random.choice((node, node, node, "", "deleting", "there"))
            names = sorted({f"default/{name}-{NODE}" for name in ours.values()})
            steps.append(
                {
                    "wall": wall,
                    "gone": gone,
                    "files": files,
                    "scan": doubles or was_gone or maybe(random, 0.6),
                    "listed": maybe(random, 0.7),
                    "pods": [json.loads(json.dumps(pod)) for pod in pods.values()],
                    "node": node,
                    "ending": [name for name in names if maybe(random, 0.15)],
                    "faults": [random.choice(("", "", "gone", "conflict", "away")) for _ in range(3)],
                }
            )
        return {"steps": steps}

    def _file(self, random: Random, name: str, *, doubles: bool) -> str:
        if maybe(random, 0.2):
            return random.choice(BROKEN)
        if doubles:
            name = random.choice((name, name, name, name, random.choice(NAMES)))
        meta = [f"name: {name}" if name else "labels: {}"]
        if maybe(random, 0.2):
            meta.append(f"labels: {{a: {random.choice(('b', 'c', '2001-01-01', '1:30'))}}}")
        if name == "web-2" and maybe(random, 0.3):
            meta.append("uid: fixed")
        if maybe(random, 0.15):
            meta.append(f"annotations: {{a: {random.choice(('b', 'c'))}}}")
        if doubles and maybe(random, 0.1):
            meta.append(f"namespace: {random.choice(('default', 'other', 'a.b'))}")
        spec = []
        if maybe(random, 0.2):
            spec.append(f"terminationGracePeriodSeconds: {random.choice(GRACES)}")
        if maybe(random, 0.15):
            spec.append(f"hostNetwork: {random.choice(FLAGS)}")
        if maybe(random, 0.15):
            spec.append(f"restartPolicy: {random.choice(('OnFailure', 'Never', 'Sometimes'))}")
        if name != "web-2" and maybe(random, 0.15):  # volumes, which the agent does not read, are part of the hash
            spec.append(random.choice(REFERENCES))
        containers = [random.choice(CONTAINERS[:2]) if maybe(random, 0.8) else random.choice(CONTAINERS)]
        containers += [random.choice(CONTAINERS)] if maybe(random, 0.2) else []
        spec.append(f"containers: [{', '.join(containers)}]")
        text = f"apiVersion: v1\nkind: Pod\nmetadata: {{{', '.join(meta)}}}\nspec: {{{', '.join(spec)}}}\n"
        return random.choice((text, text, f"# a comment\n{text}", f"{text}---\nkind: [\n", f"\ufeff{text}"))

    def _change(self, random: Random, pods: dict[str, Any], static: Sequence[str], numbers: Iterator[int]) -> None:
        """The API server's pods, by uid: those of the node, and mirrors."""
        for uid in ("p1", "p2"):
            if maybe(random, 0.2):
                pods.pop(uid, None)
            elif maybe(random, 0.4):
                pods[uid] = self._pod(random, uid, uid, {"x": random.choice(("y", "z"))})
            elif uid in pods and maybe(random, 0.3):
                pods[uid]["status"] = self._status(random)
        for name in dict.fromkeys(static):
            known = [uid for uid, pod in pods.items() if pod["metadata"]["name"] == name]
            draws_new, changes = maybe(random, 0.35), maybe(random, 0.3)
            if draws_new or maybe(random, 0.15):
                for uid in known:
                    del pods[uid]
            elif changes:
                for uid in known:
                    given = pods[uid]["metadata"]["annotations"]
                    pods[uid] = self._pod(random, uid, name, given)
            if draws_new:
                uid = f"m{next(numbers)}"
                given = {
                    "kubernetes.io/config.mirror": random.choice(("@", "@", "@", "other", "")),
                    "kubernetes.io/config.source": "file",
                }
                pods[uid] = self._pod(random, uid, name, given)

    def _pod(self, random: Random, uid: str, name: str, annotations: dict[str, str]) -> Any:
        meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid, "annotations": annotations}
        if maybe(random, 0.2):
            meta |= {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": random.choice((1, 30))}
        if maybe(random, 0.2):
            meta["labels"] = {"a": random.choice("bc")}
        spec: dict[str, Any] = {"nodeName": NODE, "containers": [{"name": "c", "image": random.choice("ij")}]}
        spec |= {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
        if maybe(random, 0.3):
            spec["readinessGates"] = [{"conditionType": "g"}]
        return {"metadata": meta, "spec": spec, "status": self._status(random)}

    def _status(self, random: Random) -> Any:
        conditions = [
            {"type": t, "status": random.choice(("True", "False"))} for t in ("Ready", "g", "ContainersReady")
        ]
        return {"phase": random.choice(("Pending", "Running")), "conditions": conditions}

    def answer(self, history: History, semantics: Semantics) -> Answers:
        scene = _Scene(semantics)
        return [scene.take(step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        return answer


class _Table(PodTable):
    """Its mirrors in the order of their names."""

    def orphaned_mirrors(self) -> list[Pod]:
        return sorted(super().orphaned_mirrors(), key=lambda pod: f"{pod.name}_{pod.namespace}")


class _Scene:
    def __init__(self, semantics: Semantics) -> None:
        self.numbers: dict[str, str] = {}
        self.hashes: dict[str, str] = {}
        self.touched: set[str] = set()
        self.content: dict[str, bytes | str] = {}
        self.folder = Folder(NODE)
        self.table = _Table(self.touched.add, semantics)
        self.step: Any = {}
        self.calls: list[str] = []
        self.faults: list[str] = []
        self.clock = 0.0
        self.mirrors = Mirrors(
            self,
            self.table,
            pods=self.pods,
            synced=lambda: True,
            runs=lambda _uid: True,
            ends=lambda namespace, name: f"{namespace}/{name}" in self.step["ending"],
            node=lambda: Node(NODE, uid="node-uid") if self.step["node"] == "there" else None,
            monotonic=lambda: self.clock,
        )

    def take(self, step: Any) -> Any:
        self.step, self.calls, self.faults = step, [], list(step["faults"])
        self.touched.clear()
        self.clock += RETRY_S
        if step["gone"]:
            self.content = {}
        else:
            changed = {**self.content, **step["files"]}
            self.content = {name: _bytes(content) for name, content in changed.items() if content is not None}
        self.folder.scanned(None if step["gone"] else self.content, "t", step["wall"])
        self.table.replace_static([one.pod for one in self.folder.pods()])
        if step["listed"]:
            self.table.replace([self._decoded(pod) for pod in step["pods"]])
        self.mirrors.turn()
        return self._known()

    def pods(self) -> list[StaticPod]:
        return sorted(self.folder.pods(), key=lambda one: f"{one.pod.namespace}/{one.pod.name}")

    def number(self, uid: str) -> str:
        """A hash differs from a kubelet's, but not from itself."""
        return self.numbers.setdefault(uid, f"static-{len(self.numbers)}") if len(uid) == 32 else uid

    def _decoded(self, pod: Any) -> PodObject:
        annotations, name = pod["metadata"]["annotations"], (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if annotations.get("kubernetes.io/config.mirror") == "@":
            static = {(one.pod.namespace, one.pod.name): one.pod.uid for one in self.folder.pods()}
            found = self.hashes.setdefault(pod["metadata"]["uid"], static.get(name, "@"))
            annotations = {**annotations, "kubernetes.io/config.mirror": found}
        meta = {**pod["metadata"], "annotations": annotations}
        return msgspec.json.decode(json.dumps({**pod, "metadata": meta}).encode(), type=PodObject)

    # The API server, as the mirrors see it.

    def create(self, path: str, body: bytes) -> bytes:
        meta = json.loads(body)["metadata"]
        (owner,) = meta["ownerReferences"]
        assert path.endswith(f"/namespaces/{meta['namespace']}/pods")
        uid = self.number(meta["annotations"]["kubernetes.io/config.mirror"])
        controls = str(owner["controller"]).lower()
        return self._called(
            f"create {meta['namespace']}/{meta['name']} {uid} of {owner['kind']} {owner['uid']} {controls}"
        )

    def delete(self, path: str, body: bytes = b"") -> bytes:
        return self._called(f"delete {path.rpartition('/')[2]} in {json.loads(body)['gracePeriodSeconds']}")

    def _called(self, call: str) -> bytes:
        self.calls.append(call)
        fault = self.faults.pop(0) if self.faults else ""
        if fault:
            found: dict[str, type[KubeError]] = {"gone": NotFound, "conflict": Conflict, "away": ServerError}
            raise found[fault](path="/")
        return b"{}"

    def _known(self) -> Any:
        index = self.table._index
        pods = sorted(index.pods.values(), key=lambda pod: f"{pod.namespace}/{pod.name}")
        found = {self.number(pod.uid): self._shown(pod) for pod in pods}
        uids = [*index.pods, *index.mirrors]
        return {
            "pods": found,
            "resolved": {self.number(uid): self.number(index.resolved_uid(uid)) for uid in uids},
            "statuses": {
                self.number(pod.uid): index.status_uid(pod.uid) or "" for pod in pods if _is_mirrored(pod, index)
            },
            "touched": sorted(self.number(uid) for uid in self.touched),
            "calls": self.calls,
        }

    def _shown(self, pod: Pod) -> Any:
        hidden = {"kubernetes.io/config.seen"} | (set() if pod.static else {"kubernetes.io/config.source"})
        return {
            "name": f"{pod.namespace}/{pod.name}",
            "node": pod.node_name,
            "annotations": {key: self.number(value) for key, value in pod.annotations.items() if key not in hidden},
            "labels": dict(pod.labels),
            "containers": [f"{c.name} {c.image}" for c in pod.containers],
            "policy": pod.restart_policy,
            "grace": pod.termination_grace_period_s,
            "hostNetwork": pod.host_network,
            "static": pod.static,
            "ends": pod.deletion_timestamp is not None,
        }


def _is_mirrored(pod: Pod, index: Any) -> bool:
    """Whether the kubelet translates its uid."""
    return pod.static or index.status_uid(pod.uid) != pod.uid


def _bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
