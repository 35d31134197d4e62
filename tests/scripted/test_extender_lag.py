"""A watch whose news come late: verdicts are those of then, and whoever asks is told by how much."""

import json
import time

from kube import contract
from kube.times import format_micro_time
from tests.extender.builders import node_json, pod_json
from tests.fakes.api_server import FakeApiServer
from tests.kit.waiting import wait_until
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.people_process import PeopleProcess

NODES = [f"h{number}" for number in range(3)]
LATE_S = 2.0


def renew(api: FakeApiServer):
    """All kubelets, now."""
    for name in NODES:
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format_micro_time(time.time())}
        meta = {"name": name, "namespace": contract.NAMESPACE_NODE_LEASE}
        api.put({"kind": "Lease", "metadata": meta, "spec": spec})


def lag_s(program):
    return json.loads(program.get("/readyz")[1])["caches"]["leases"].get("lagSeconds", -1.0)


def test_a_lag_of_seconds_shows_in_readyz_and_the_metrics_and_goes_with_it(tmp_path):
    with FakeApiServer() as api:
        for name in NODES:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name))
        renew(api)
        config = {"gates": [{"heartbeat": {"limitSeconds": 40}}]}
        with (
            ExtenderProcess(api, tmp_path, config=config) as extender,
            PeopleProcess(extender.settings, tmp_path) as people,
        ):
            extender.wait_ready()
            people.process.wait_ready(people.ready, timeout_s=20)
            api.wait_watchers(3)
            api.hold_events()
            renew(api)
            api.put(pod_json("h0", Ready="False"))
            time.sleep(LATE_S)
            meanwhile = extender.filter(["h0"]).NodeNames
            api.release_events()
            for program in (extender, people):
                wait_until(lambda program=program: LATE_S <= lag_s(program) < LATE_S + 5, "the lag", timeout_s=5)
            lines = people.get("/metrics")[1].splitlines()
            told = [line for line in lines if line.startswith('readygate_cache_lag_seconds{cache="leases"}')]
            wait_until(lambda: extender.filter(["h0"]).NodeNames == [], "the change", timeout_s=5)
            for program in (extender, people):
                # The middle one of the last fifteen: some more have to come.
                wait_until(lambda program=program: renew(api) or lag_s(program) < 1, "the lag's end", timeout_s=10)
        assert (["h0"], True) == (meanwhile, float(told[0].split()[-1]) >= LATE_S)
