"""The token of a static pod's extender, from renewals that fail to the repair: the status API, the metrics and doctor
report it before the token ends, and the running extender goes on with the renewed file."""

import json
import re
import time
from dataclasses import replace

import pytest

from cli.doctor.examine import examine
from tests.cli.doctor import facts
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tests.scripted.test_static_credentials import HOUR_S, token
from tests.scripted.tls import make_authority
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children

DAY_S = 24 * HOUR_S
SLACK_S = 300.0  # of a busy machine


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("authority"))


def put(path, text):
    """By a rename, as the program on the host does it."""
    new = path.with_name(path.name + ".new")
    new.write_text(text + "\n")
    new.rename(path)


def gates(status_api):
    return json.loads(status_api.get("/api/v1/gates")[1])


def left_s(status_api):
    return gates(status_api)["credentialsLeftSeconds"]


def timestamps(status_api):
    """When the token was issued and when it ends, as Prometheus reads it."""
    page = status_api.get("/metrics")[1]
    pattern = r"^readygate_credentials_%s_timestamp_seconds (\S+)$"
    return [float(re.search(pattern % name, page, re.MULTILINE)[1]) for name in ("issued", "expiry")]


def findings(answer):
    life_s = answer["credentialsLifeSeconds"]
    replica = facts.with_replica(owner="Node", token_left_s=answer["credentialsLeftSeconds"], token_life_s=life_s)
    every = examine(replace(facts.FACTS, **replica))
    return [(one.severity.value, one.name) for one in every if one.about == facts.REPLICA.name]


def test_failed_renewals_are_reported_before_the_end_and_a_renewed_token_is_used_without_a_restart(authority, tmp_path):
    file, old, new = tmp_path / "token", token(hours_ago=13), token(hours_ago=0)
    put(file, old)
    with FakeApiServer(tls=authority.server_context()) as api:
        api.tokens = {old}
        for name in ("h1", "u1"):
            api.put(node_json(name, Ready="True"))
        api.put(pod_json("h1"))
        files = {"server": api.url, "tokenFile": str(file), "caFile": str(authority.folder / "ca.crt")}
        with (
            ExtenderProcess(api, tmp_path, config={"kubernetes": files}) as extender,
            StatusApiProcess(extender.settings, tmp_path) as status_api,
        ):
            extender.wait_ready()
            status_api.wait_follows()
            workers = children(extender.process.pid)
            issued, ends = timestamps(status_api)
            assert abs(time.time() - 13 * HOUR_S - issued) < SLACK_S
            assert ends - issued == gates(status_api)["credentialsLifeSeconds"] == DAY_S
            assert findings(gates(status_api)) == [("warning", "token-ends")]

            api.tokens = {new}  # the old one has ended
            seen = len(api.requests)
            api.cut_connections()
            extender.wait(lambda: len(api.requests) > seen + 2)
            put(file, new)
            api.put(pod_json("u1"))
            extender.wait(lambda: extender.filter(["h1", "u1"]).NodeNames == ["h1", "u1"])
            status_api.wait(lambda: left_s(status_api) > DAY_S - SLACK_S)
            assert findings(gates(status_api)) == []
            assert workers == children(extender.process.pid)
