"""Two workers while a configuration is read anew: each knows whom it has refused, so both may kick."""

import http.client
import json
import os
import signal
import time

from extender.outlets.kick import ANNOTATION_KICK
from extender.outlets.schedule import APART_S
from extender.process.worker import RETIRE_LIMIT_S
from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ORDINARY_POD, ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children

NODES = [f"n{number:02d}" for number in range(30)]
HEALS_EVERY_S = 0.3
SLACK_S = 5.0  # of a machine with other work


def test_both_kick_until_the_old_one_ends_each_once_a_second_at_most(tmp_path):
    with FakeApiServer() as api:
        for name in NODES:
            api.put(node_json(name, Ready="True"))
            api.put(pod_json(name, Ready="False"))
        with ExtenderProcess(api, tmp_path, config=follows(api, tmp_path, "old")) as process:
            process.wait_ready()
            (old,) = children(process.process.pid)
            began = {"old": time.monotonic()}
            kept = [process.connection() for _ in NODES]  # each is good for one more answer of the old worker
            for connection in kept:
                refused_on(connection)
            process.settings |= follows(api, tmp_path, "new")
            process.write()
            began["new"] = time.monotonic()
            os.kill(process.process.pid, signal.SIGHUP)
            process.wait(lambda: "reloaded" in process.log, timeout_s=20)
            reloaded = time.monotonic()
            answering = process.connection()
            for name, connection in zip(NODES, kept, strict=True):
                if old in children(process.process.pid):
                    try:
                        refused_on(connection)
                    except ConnectionError:  # only if it ends just then
                        process.wait(lambda: old not in children(process.process.pid), timeout_s=2)
                refused_on(answering)
                api.put(pod_json(name, Ready="True"))
                time.sleep(HEALS_EVERY_S)
            process.wait(lambda: old not in children(process.process.pid), timeout_s=20)
            gone = time.monotonic()
            kicks = {who: at_s(api, who) for who in ("old", "new")}
    assert 4 < min(map(len, kicks.values())), "both have, again and again"
    for who, times in kicks.items():  # two may come close together where the first one was held up
        assert [] == [at for number, at in enumerate(times) if at - began[who] < number * APART_S]
    assert max(kicks["old"]) <= gone <= reloaded + RETIRE_LIMIT_S + SLACK_S


def follows(api, folder, token):
    """Of the configuration; by its token it is told whose write it was."""
    return {"kubernetes": {"kubeconfig": str(api.write_kubeconfig(folder / token, user={"token": token}))}}


def refused_on(connection: http.client.HTTPConnection):
    connection.request("POST", "/filter", json.dumps({"Pod": ORDINARY_POD, "NodeNames": NODES}))
    assert json.loads(connection.getresponse().read())["FailedAndUnresolvableNodes"]


def at_s(api, token):
    """When it kicked."""
    return [
        request.at
        for request in list(api.requests)
        if request.method == "PATCH"
        and ANNOTATION_KICK.encode() in request.body
        and request.headers["Authorization"] == f"Bearer {token}"
    ]
