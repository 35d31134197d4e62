"""The writer of the Nodes' condition with a clock, an API server and a watch of the test's."""

import json
from datetime import datetime

from extender.cluster.observed import Node
from extender.outlets.condition import Conditions
from extender.outlets.observed_conditions import ObservedConditions
from kube.errors import Invalid, NotFound
from tests.extender.builders import node_json, seen
from tests.extender.outlets.gate_states import gate, gates, opened
from tools.fakes.api_patches import strategic_merge
from tools.kit.clock import Clock

TYPE = "readygate.dev/NodeHealthy"
FOREIGN = {
    "type": "Ready",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "R",
    "message": "m",
}


class Cluster:
    """Nodes as an API server keeps them, with a watch that is behind while `held`. failures: of the next writes."""

    def __init__(self, *names):
        self.nodes = {}
        self.marks = ObservedConditions()
        self.failures = []
        self.sent = []
        self.held = False
        for name in names:
            self.add(name)

    def add(self, name, uid=None):
        self.nodes[name] = node_json(name, uid=uid, Ready="True")
        self.watch(name)

    def watch(self, *names):
        """The watch shows these as they are now."""
        for name in names:
            if name in self.nodes:
                self.marks.upsert(seen(Node, self.nodes[name]))
            else:
                self.marks.remove(seen(Node, node_json(name)))

    def condition(self, name):
        return next((c for c in self.nodes[name]["status"]["conditions"] if c["type"] == TYPE), None)

    def statuses(self):
        return {name: (self.condition(name) or {}).get("status") for name in self.nodes}

    # The client.

    def patch(self, path, body, *, content_type, deadline_s):
        name = path.removeprefix("/api/v1/nodes/").removesuffix("/status")
        value = json.loads(body)
        assert (path, content_type) == (
            f"/api/v1/nodes/{name}/status",
            "application/strategic-merge-patch+json",
        )
        assert deadline_s <= 5
        assert {"metadata": {"uid"}, "status": {"conditions"}} == {key: {*inner} for key, inner in value.items()}
        assert [TYPE] == [condition["type"] for condition in value["status"]["conditions"]]
        self.sent.append(name)
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
        if name not in self.nodes:
            raise NotFound(path=path, status=404)
        if value["metadata"]["uid"] != self.nodes[name]["metadata"]["uid"]:
            raise Invalid(path=path, status=422)
        self.nodes[name] = strategic_merge(self.nodes[name], value)
        if not self.held:
            self.watch(name)
        return json.dumps(self.nodes[name]).encode()

    def close(self):
        pass


class Played:
    """The writer's turns, and a clock that jumps to where the next one is due."""

    def __init__(self, cluster, *states, **options):
        self.clock = Clock(1000.0)
        self.start = datetime.fromisoformat("2026-11-22T00:00:00Z").timestamp()
        self.wall_step = 0.0
        self.cluster = cluster
        self.states = gates(*states)
        self.leads = True
        self.told = []
        settings = {"refresh_s": 300.0, "per_second": 20.0} | options
        self.writer = Conditions(
            cluster,
            cluster.marks,
            gates=lambda: self.states,
            leads=lambda: self.leads,
            on_change=lambda node, uid, standing: self.told.append((node, uid, standing.status, standing.reason)),
            monotonic=self.clock,
            wall=self.wall,
            random=lambda: 0.0,
            rest=lambda _: None,
            **settings,
        )
        self.due_at = self.clock.time

    def wall(self):
        return self.start + self.wall_step + self.clock.time - 1000.0

    def show(self, *states):
        """The next snapshot."""
        self.states = gates(*states)

    def pass_s(self, seconds):
        end = self.clock.time + seconds
        while self.due_at <= end:
            self.clock.time = max(self.clock.time, self.due_at)
            self.due_at = self.clock.time + self.writer.turn()
        self.clock.time = end


def all_open(*names):
    return gate("health", **{name: opened() for name in names})
