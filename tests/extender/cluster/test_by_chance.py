"""Whatever was heard in whatever order, what is decided is what one who starts now decides.

Nodes and health pods come, change, go and are made again under the same name, DaemonSets and orders too; each watch
lags by itself, or breaks and is followed by a list. Without graces, caps and damping nothing else is to be remembered.
"""

import itertools
import json
import random

import msgspec
import pytest

from extender.cluster import objects, observed
from extender.cluster.decider import Decider
from extender.cluster.index import Index
from extender.cluster.placement_inputs import PlacementInputs
from extender.config.settings import parse
from extender.policy.decide import Rules
from extender.policy.gates import gates_of
from extender.policy.snapshot import Board
from extender.process.services import daemon_sets_of, speakers_of, wanted_of
from kube.times import format_time
from tools.kit.clock import Clock
from tools.kit.scope import draws

PARTS, HISTORIES, STEPS = 4, draws(3, 10), 40
FORGETFUL = {"missingGraceSeconds": 0, "replaceGraceSeconds": 0, "damping": False}
OF_NODE = {"of": "node", "type": "N", "missing": "open", "staleAfterSeconds": 60}


def pods_of(namespace, daemon_set):
    return {"namespace": namespace, "labelSelector": "app=h", "daemonSet": daemon_set}


# Two of one DaemonSet, one of any in the same list, one by conditions, one of another namespace, one of no pods at all.
SETTINGS = parse(
    json.dumps(
        {
            "cap": False,
            "gates": [
                {**FORGETFUL, "name": "a", "healthPods": pods_of("ns", "da")},
                {**FORGETFUL, "name": "any", "healthPods": pods_of("ns", None)},
                {**FORGETFUL, "name": "same", "nodes": "pool=x", "healthPods": pods_of("ns", "da")},
                {
                    **FORGETFUL,
                    "name": "b",
                    "healthPods": pods_of("ns", "db"),
                    "conditions": {"allOf": [{"of": "pod", "type": "P"}, OF_NODE]},
                },
                {**FORGETFUL, "name": "other", "healthPods": pods_of("other", "da")},
                {**FORGETFUL, "name": "node", "healthPods": None, "conditions": {"allOf": [OF_NODE]}},
            ],
        }
    )
)
GATES = gates_of(SETTINGS)
NODES, POD_NAMESPACES, DAEMON_SETS = ("n0", "n1", "n2", "n3"), ("ns", "other"), ("da", "db")
OF_NODES = ("Ready", "N", "readygate.dev/NodeHealthy")
OF_PODS = ("Ready", "ContainersReady", "P", "readygate.dev/NodeHealthy")


class Extender:
    """What stands between the watches and the snapshot. streams: by name, the type of its objects and its store."""

    def __init__(self, clock, wall):
        nothing = {"on_change": lambda: None}
        self.inputs = PlacementInputs(daemon_sets=daemon_sets_of(SETTINGS), config_map="readygate-orders", **nothing)
        index = Index(speakers=speakers_of(SETTINGS), wanted=wanted_of(GATES), monotonic=clock, wall=wall, **nothing)
        self.board = Board(lambda _: None)
        self.decider = Decider(
            index,
            Rules(GATES),
            self.board,
            on_release=lambda _: None,
            surroundings=lambda: self.inputs.surroundings,
            monotonic=clock,
            wall=wall,
            sleep=lambda _: None,
        )
        inputs = self.inputs
        self.streams = {
            "nodes": (observed.Node, index.replace_nodes, index.upsert_node, index.remove_node),
            "orders": (
                objects.ConfigMap,
                inputs.replace_orders,
                inputs.upsert_orders,
                inputs.remove_orders,
            ),
        }
        for of in index.lists.values():
            store = (index.replace_pods, index.upsert_pod, index.remove_pod)
            self.streams[f"pods/{of.namespace}"] = (
                observed.Pod,
                *(lambda it, of=of, do=do: do(of, it) for do in store),
            )
        for where in inputs.namespaces:
            self.streams[f"sets/{where}"] = (
                objects.DaemonSet,
                lambda them, where=where: inputs.replace_daemon_sets(where, them),
                inputs.upsert_daemon_set,
                inputs.remove_daemon_set,
            )

    def list(self, stream, them):
        kind, replace, _, _ = self.streams[stream]
        replace([msgspec.convert(one, kind) for one in them])

    def hear(self, stream, one, *, gone):
        kind, _, upsert, remove = self.streams[stream]
        (remove if gone else upsert)(msgspec.convert(one, kind))

    def told(self):
        """All that is decided, but for its words."""
        gates = self.board.snapshot.gates.values()
        decisions = {
            (state.name, node): (one.reason, one.verdict, one.held_by.value, state.closed.get(node, ""))
            for state in gates
            for node, one in state.decisions.items()
        }
        return decisions, [(state.name, state.armed, len(state.closed)) for state in gates], self.board.snapshot.reasons


class History:
    def __init__(self, chance):
        self.chance = chance
        self.clock = Clock(1000.0)
        self.extender = Extender(self.clock, self.wall)
        self.truth = {stream: {} for stream in self.extender.streams}
        self.unheard = {stream: [] for stream in self.truth}
        self.young = chance.random() < 0.5  # the Nodes; then it matters whether a pod was there before its Node
        self.numbers = itertools.count()
        for stream in self.truth:
            self.list(stream)

    def wall(self):
        return 1.8e9 + self.clock.time

    def step(self):
        chance = self.chance
        for _ in range(chance.choice([1, 1, 2, 5])):
            self.change()
        for stream, unheard in self.unheard.items():
            if chance.random() < 0.1:
                self.list(stream)
            else:
                self.hear(stream, chance.randrange(len(unheard) + 1))
        if chance.random() < 0.7:
            self.extender.decider.turn()
        self.clock.time += chance.choice([0.0, 0.02, 1.0, 7.0])

    def told_by_both(self):
        """What the one who was there all the time says when all was heard, and one who starts now."""
        for stream, unheard in self.unheard.items():
            self.hear(stream, len(unheard))
        self.clock.time += 70.0 if self.young else 0.0  # by then a pod that is older than its Node counts
        for _ in range(3):
            self.extender.decider.turn()
        needs_all = Extender(self.clock, self.wall)
        for stream, there in self.truth.items():
            needs_all.list(stream, there.values())
        needs_all.decider.turn()
        return self.extender.told(), needs_all.told()

    def list(self, stream):
        self.unheard[stream].clear()
        there = list(self.truth[stream].values())
        self.chance.shuffle(there)
        self.extender.list(stream, there)

    def hear(self, stream, number):
        for _ in range(number):
            one, gone = self.unheard[stream].pop(0)
            self.extender.hear(stream, one, gone=gone)

    def put(self, stream, key, one):
        self.truth[stream][key] = one
        self.unheard[stream].append((one, False))

    def remove(self, stream, key):
        self.unheard[stream].append((self.truth[stream].pop(key), True))

    def change(self):
        what = self.chance.random()
        if what < 0.25:
            self.change_node(self.chance.choice(NODES))
        elif what < 0.85:
            self.change_pod(self.chance.choice(["ns", *POD_NAMESPACES]))
        elif what < 0.95:
            self.change_set(self.chance.choice(POD_NAMESPACES), self.chance.choice(DAEMON_SETS))
        else:
            self.change_orders()

    def change_node(self, name):
        there = self.truth["nodes"].get(name)
        if there is not None and self.chance.random() < 0.65:
            self.put("nodes", name, self.changed(there, OF_NODES) | {"spec": self.node_spec()})
            return
        if there is not None:  # and made again, as by a kubelet that registers anew
            self.remove("nodes", name)
        if there is None or self.chance.random() < 0.6:
            made = self.made("u", name, ago_s=self.chance.choice([0, 3, 50]) if self.young else 86_400)
            made["metadata"]["labels"] = {"pool": self.chance.choice("xy")}
            self.put("nodes", name, self.changed(made, OF_NODES) | {"spec": self.node_spec()})

    def node_spec(self):
        taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
        return {"unschedulable": self.chance.random() < 0.1, "taints": self.chance.choice([[], [taint]])}

    def change_pod(self, namespace):
        stream, chance = f"pods/{namespace}", self.chance
        there = self.truth[stream]
        if there and chance.random() < 0.65:
            uid = chance.choice(sorted(there))
            if chance.random() < 0.3:
                self.remove(stream, uid)
            else:
                self.put(stream, uid, self.changed(there[uid], OF_PODS))
            return
        pod = self.made("p", "", ago_s=chance.choice([0, 3, 40, 400]), namespace=namespace)
        pod["metadata"]["name"] = pod["metadata"]["uid"]
        if (daemon_set := chance.choice([*DAEMON_SETS, "da", None])) is not None:
            owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon_set, "controller": True}
            pod["metadata"]["ownerReferences"] = [owner]
        self.put(stream, pod["metadata"]["uid"], self.changed(pod, OF_PODS))

    def change_set(self, namespace, name):
        stream = f"sets/{namespace}"
        if name in self.truth[stream] and self.chance.random() < 0.5:
            self.remove(stream, name)
            return
        made = self.made("d", name, namespace=namespace)
        pod = {
            "nodeSelector": self.chance.choice([{}, {"pool": "x"}]),
            "tolerations": self.chance.choice([[], [{"operator": "Exists"}]]),
        }
        self.put(stream, name, made | {"spec": {"template": {"spec": pod}}})

    def change_orders(self):
        if self.truth["orders"] and self.chance.random() < 0.4:
            self.remove("orders", "all")
            return
        data = {
            f"o{i}": json.dumps(
                {
                    "order": self.chance.choice(["hold", "exempt", "arm", "disarm"]),
                    "scope": self.chance.choice([{}, {"gate": "a"}]),
                    "expires": self.stamp(-self.chance.choice([20, 1000])),
                }
            )
            for i in range(self.chance.randrange(3))
        }
        self.put("orders", "all", self.made("c", "readygate-orders") | {"data": data})

    def made(self, kind, name, *, ago_s=0, namespace=""):
        created, uid = self.stamp(ago_s), f"{kind}{next(self.numbers)}"
        return {"metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": created}}

    def changed(self, one, types):
        """Another status. A pod gets its node, once; it may lose its owner, be told to end, and have ended."""
        chance, meta, spec = self.chance, dict(one["metadata"]), dict(one.get("spec", {}))
        if types is OF_PODS:
            spec["nodeName"] = spec.get("nodeName") or chance.choice([*NODES, ""])
        if chance.random() < 0.1:  # its DaemonSet was deleted, and it was not
            meta.pop("ownerReferences", None)
        if chance.random() < 0.15:
            meta.setdefault("deletionTimestamp", self.stamp(-30))
            meta.setdefault("deletionGracePeriodSeconds", 30)
        conditions = [
            {
                "type": kind,
                "status": chance.choice(["True", "True", "False", "Unknown"]),
                "reason": chance.choice(["", "R"]),
                "message": chance.choice(["", "m\n%s\x1b[2J"]),
                "lastTransitionTime": self.stamp(chance.choice([0, 5, 100])),
                "lastHeartbeatTime": self.stamp(chance.choice([0, 30, 70])),
            }
            for kind in types
            if chance.random() < 0.75
        ]
        phase = chance.choice(["Running"] * 8 + ["Pending", "Failed"])
        status = {"phase": phase, "startTime": meta["creationTimestamp"], "conditions": conditions}
        return {"metadata": meta, "spec": spec, "status": status}

    def stamp(self, ago_s):
        return format_time(self.wall() - ago_s)


@pytest.mark.parametrize("part", range(PARTS))
def test_who_has_heard_all_decides_as_one_who_starts_now(seed, part):
    for number in range(HISTORIES):
        history = History(random.Random(f"{seed}/{part}/{number}"))
        for step in range(STEPS):
            history.step()
            if history.chance.random() < 0.3:
                long, needs_all = history.told_by_both()
                assert needs_all == long, f"history {part}/{number} of seed {seed}, step {step}"
