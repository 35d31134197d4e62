"""A watch whose news come late, or not at all: verdicts are those of then, for a while, and whoever asks is told."""

import dataclasses
import json
import time

import msgspec
import pytest

from extender.config.settings import Settings
from extender.process.services import build
from extender.verbs.filter import answer_filter
from extender.verbs.source import Sync
from kube import contract
from kube.times import format_micro_time, format_time
from tests.contract.go_types import read_filter_result
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ORDINARY_POD, ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tools.chaos.paths import Path
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until

NODES = [f"h{number}" for number in range(3)]
LATE_S = 2.0
CACHES = ("leases", "nodes", "pods")
# A silence that takes a minute and a quarter at least, in seconds.
SILENCE_LIMIT_S, STALE_LIMIT_S = 0.9, 1.5
FRESH_WITHIN_S = 3.0


@pytest.fixture
def api():
    with FakeApiServer() as api:
        for name in NODES:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name))
        yield api


def renew(api: FakeApiServer):
    """All kubelets, now."""
    for name in NODES:
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format_micro_time(time.time())}
        meta = {"name": name, "namespace": contract.NAMESPACE_NODE_LEASE}
        api.put({"kind": "Lease", "metadata": meta, "spec": spec})


def dated(value: dict):
    """The object, its conditions written now."""
    for condition in value["status"]["conditions"]:
        condition["lastTransitionTime"] = format_time(time.time())
    return value


def lag_s(program, *caches):
    """The least of these caches."""
    shown = json.loads(program.get("/readyz")[1])["caches"]
    return min(shown[name].get("lagSeconds", -1.0) for name in caches or ("leases",))


def test_a_lag_of_seconds_shows_in_readyz_and_the_metrics_and_goes_with_it(api, tmp_path):
    renew(api)
    # What the extender itself writes is news of a Node, too.
    config = {"heartbeat": {"limitSeconds": 40}, "outlets": {"nodeCondition": {"enabled": False}}}
    with (
        ExtenderProcess(api, tmp_path, config=config) as extender,
        StatusApiProcess(extender.settings, tmp_path) as status_api,
    ):
        extender.wait_ready()
        status_api.wait_follows()
        api.wait_watchers(5)
        api.hold_events()
        renew(api)
        api.put(dated(pod_json("h0", Ready="False")))
        api.put(dated(node_json("h1", Ready="Unknown")))
        time.sleep(LATE_S)
        meanwhile = extender.filter(["h0"]).NodeNames
        api.release_events()
        for program in (extender, status_api):
            # Conditions are written to the second.
            wait_until(lambda program=program: LATE_S <= lag_s(program, *CACHES) < LATE_S + 6, "the lag", timeout_s=5)
        lines = status_api.get("/metrics")[1].splitlines()
        told = [line for line in lines if line.startswith('readygate_cache_lag_seconds{cache="leases"}')]
        wait_until(lambda: extender.filter(["h0"]).NodeNames == [], "the change", timeout_s=5)
        for program in (extender, status_api):
            # The middle one of the last fifteen: some more have to come.
            wait_until(lambda program=program: renew(api) or lag_s(program) < 1, "the lag's end", timeout_s=10)
    assert (["h0"], True) == (meanwhile, float(told[0].split()[-1]) >= LATE_S)


@pytest.fixture
def behind_a_path(api):
    """(services, the path to their API server), synced. Their limits are short."""
    settings = msgspec.structs.replace(Settings(), stale_limit_seconds=STALE_LIMIT_S, cap=False, storm=False)
    with Path(int(api.url.rpartition(":")[2])) as path:
        connection = dataclasses.replace(api.connection(), server=path.url)
        services = build(settings, connection)
        for reflector in services.caches.values():
            reflector._silence_limit_s = SILENCE_LIMIT_S
        services.start()
        assert services.wait_synced(30)
        api.wait_watchers(len(services.caches))
        yield services, path
        services.stop()


@pytest.mark.parametrize("silent_s", [2.0, 6.0], ids=lambda seconds: f"for {seconds:g} s")
def test_silence_ends_the_verdicts_and_they_are_back_soon_after_it(api, behind_a_path, silent_s):
    services, path = behind_a_path
    question = json.dumps({"Pod": ORDINARY_POD, "Nodes": None, "NodeNames": ["h0"]}).encode()

    def answer():
        return read_filter_result(answer_filter(services, question).body)

    assert ["h0"] == answer().NodeNames
    path.silent = True
    silent = time.monotonic()
    api.put(pod_json("h0", Ready="False"))
    wait_until(lambda: answer().Error, "the error", timeout_s=5)
    ended_s = time.monotonic() - silent
    assert Sync.STALE.value == services.why_not()
    time.sleep(max(0.0, silent + silent_s - time.monotonic()))
    assert (True, []) == (bool(answer().Error), services.unhealthy())
    path.silent = False
    wait_until(lambda: "h0" in answer().FailedAndUnresolvableNodes, "the news", timeout_s=FRESH_WITHIN_S)
    assert ended_s < STALE_LIMIT_S * 2
