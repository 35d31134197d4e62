"""Six nodes and four gates to be shown, and a client that holds every answer against the document."""

from extender.policy.decision import CapState, Decision, GateState, HeldBy, Storm
from tests.extender.web import openapi
from tests.extender.why.attempting import UNHEALTHY

WALL = 1_800_000_000.0
NODES = [f"n{number}" for number in range(1, 7)]
SETTINGS = """
mode: protect
gates: [{name: base}, {name: gpu, for: {resources: [nvidia.com/gpu]}}, {name: dns}, {name: disk}]
"""
DATA = {
    "rma": '{"order": "hold", "scope": {"node": "n5"}, "author": "ana", "reason": "RMA 4711",'
    ' "expires": "2099-01-01T00:00:00Z"}',
    "old": '{"order": "pause", "scope": {}, "author": "bob", "reason": "x", "expires": "2020-01-01T00:00:00Z"}',
    "bad": "rubbish",
}


def gates():
    """Of n1 to n6: n2 is closed at both, n3 at one, n4 is held open, n5 held closed, n6 closed in shadow."""
    base = dict.fromkeys(NODES, Decision("", "ns/agent", "", 4.0))
    base["n2"] = Decision(UNHEALTHY, "ns/agent-2", "dns: timed out\n\x1b[31m" + "x" * 999, 5.0, verdict=UNHEALTHY)
    base["n4"] = Decision("", "", "", 6.0, verdict=UNHEALTHY, held_by=HeldBy.CAP, note="cap of 1")
    base["n5"] = Decision("held", "", "", 7.0, held_by=HeldBy.HOLD, note="hold by ana: RMA", until=60.0)
    gpu = {"n2": Decision("lost", verdict="lost"), "n3": Decision("lost", "", "silent", 9.0, verdict="lost")}
    gpu["n1"] = Decision("", held_by=HeldBy.NOT_GATED)
    storm = Storm(UNHEALTHY, "dns", 3, "10.96.0.10 timed out", 3.0, 20.0)
    return (
        GateState("base", base, {"n2": UNHEALTHY, "n5": "held"}, cap=CapState(1, 1, 1), storms=(storm,)),
        GateState("gpu", gpu, {"n2": "lost", "n3": "lost"}),
        GateState("dns", {"n6": Decision("lost", since_monotonic=2.0)}, {"n6": "lost"}, armed=False),
        GateState("disk", {"n1": Decision("lost")}, {"n1": "lost"}, severity="preferNot"),
    )


class Client:
    """Asks, and holds every answer against the document. asked: (template, status) of all of them."""

    def __init__(self, application):
        self.asked = set()
        self._client = application.test_client()

    def get(self, path, **headers):
        response = self._client.get(path, headers=headers)
        self.asked.add((openapi.check(path, response), response.status_code))
        return response

    def json(self, path, status=200):
        response = self.get(path)
        assert response.status_code == status
        return response.json
