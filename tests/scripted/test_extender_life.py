"""Two lives of the real process: one without an API server at first, one that is reloaded, hurt and interrupted."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import yaml

from extender.outlets.kick import REMEDY
from tests.extender.builders import lease_json, node_json, owner, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children
from tools.kit.programs import CHECKOUT

DAEMON_POD = {"metadata": {"name": "d", "namespace": "default", "ownerReferences": [owner("cni")]}}


def is_kick(request, node="u1"):
    return request.method == "PATCH" and request.path == f"/api/v1/nodes/{node}"


def workers_of(process):
    """Process ids; none for a moment after one has died."""
    return children(process.process.pid)


def test_a_life_that_begins_without_an_api_server(tmp_path):
    silent = {"nodeCondition": {"enabled": False}, "events": {"enabled": False}}  # kicks are to be the only writes
    config = {"exempt": {"daemonSetPods": False}, "kick": {"repeatAfterSeconds": 0.3}, "outlets": silent}
    with FakeApiServer() as api:
        for name in ("h1", "u1", "u2"):
            api.put(node_json(name))
        api.put(pod_json("h1"))
        api.put(pod_json("u1", Ready="False"))
        api.put(pod_json("u2", Ready="False"))
        api.refuse()
        with ExtenderProcess(api, tmp_path, config=config) as process, ExitStack() as leave:
            is_not_ready_and_says_so_once(process, api)
            api.cut_connections()
            process.wait_ready(timeout_s=30)
            status_api = leave.enter_context(StatusApiProcess(process.settings, tmp_path))
            holds_daemonset_pods_back_as_configured(process)
            kicks_once_for_what_another_process_may_have_refused(api)
            kicks_what_was_refused_after_the_flip(process, api)
            repeats_a_kick_until_it_is_taken(process, status_api, api)
            ends_a_kick_at_once_where_the_right_is_missing(process, status_api, api)
            shows_heartbeats(status_api, api)
            keeps_its_verdicts_while_the_api_server_is_away(process, api)
            ends_cleanly_with_an_idle_connection(process)
            assert "Traceback" not in process.log


def is_not_ready_and_says_so_once(process, api):
    """X21. The API server is not there at first, and then it accepts and answers nothing."""
    process.wait(lambda: process.log.count('cause="ConnectionRefused"') == 5)  # one for each cache
    api.stall_next(watch=False, times=3)
    api.listen()
    process.wait(lambda: "caches not synced" in process.log, timeout_s=15)
    assert "not synced" in process.filter(["h1"]).Error
    assert (process.get("/livez")[0], process.get("/readyz")[0]) == (200, 503)


def holds_daemonset_pods_back_as_configured(process):
    """X16."""
    assert process.filter(["u1"], pod=DAEMON_POD).NodeNames == []


def kicks_once_for_what_another_process_may_have_refused(api):
    api.wait_requests(2, lambda request: is_kick(request, "h1"))


def kicks_what_was_refused_after_the_flip(process, api):
    """X55: u1 was refused, u2 was not. The repeat comes no sooner than a second later."""
    api.put(pod_json("u1", Ready="False"))
    assert process.filter(["u1", "h1"]).NodeNames == ["h1"]
    api.put(pod_json("u2"))
    api.put(pod_json("u1"))
    sent = api.wait_requests(1, is_kick)
    assert process.filter(["u1", "u2"]).NodeNames == ["u1", "u2"]
    sent = api.wait_requests(2, is_kick)
    assert [request for request in api.requests if is_kick(request, "u2")] == []
    values = [json.loads(request.body)["metadata"]["annotations"]["readygate.dev/kick"] for request in sent]
    assert len(set(values)) == 2
    assert sent[1].at - sent[0].at > 0.9


def repeats_a_kick_until_it_is_taken(process, status_api, api):
    api.put(pod_json("u1", Ready="False"))
    process.wait(lambda: process.filter(["u1"]).NodeNames == [])
    api.answer_next(500, reason="InternalError", method="PATCH", times=2)
    api.put(pod_json("u1"))
    api.wait_requests(2 + 4, is_kick)
    process.wait(lambda: 'readygate_kicks_total{result="ServerError"} 2.0' in status_api.get("/metrics")[1])


def ends_a_kick_at_once_where_the_right_is_missing(process, status_api, api):
    before = len([request for request in api.requests if is_kick(request, "u2")])
    api.put(pod_json("u2", Ready="False"))
    process.wait(lambda: process.filter(["u2"]).NodeNames == [])
    api.answer_next(403, reason="Forbidden", method="PATCH", times=1)
    api.put(pod_json("u2"))
    api.wait_requests(before + 1, lambda request: is_kick(request, "u2"))
    process.wait(lambda: 'readygate_kicks_total{result="Forbidden"} 1.0' in status_api.get("/metrics")[1])
    assert REMEDY in process.log


def shows_heartbeats(status_api, api):
    api.put(lease_json("h1", "2026-01-01T00:00:00.000000Z"))

    def age():
        nodes = {entry["node"]: entry for entry in json.loads(status_api.get("/api/v1/nodes")[1])["nodes"]}
        return nodes["h1"]["heartbeatAgeSeconds"]

    status_api.wait(lambda: age() is not None)


def keeps_its_verdicts_while_the_api_server_is_away(process, api):
    """X22, up to the limit; beyond it is a table with a clock of its own."""
    before = process.log.count("ConnectionRefused")
    api.refuse()
    process.wait(lambda: process.log.count("ConnectionRefused") > before)
    assert process.filter(["h1"]).NodeNames == ["h1"]
    assert (process.get("/livez")[0], process.get("/readyz")[0]) == (200, 200)


def ends_cleanly_with_an_idle_connection(process):
    connection = process.connection()
    connection.request("GET", "/livez")
    connection.getresponse().read()
    workers = workers_of(process)
    code, took_s = process.stop()
    assert (code, took_s < 8) == (0, True)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    connection.close()


def test_a_life_that_is_reloaded_hurt_and_interrupted(tmp_path):
    with FakeApiServer() as api:
        api.put(node_json("u1"))
        api.put(pod_json("u1", Ready="False"))
        with ExtenderProcess(api, tmp_path, config={"exempt": {"daemonSetPods": False}}) as process:
            process.wait_ready()
            keeps_its_configuration_when_the_new_one_is_bad(process)
            takes_a_good_one_over(process)
            replaces_a_worker_that_dies(process)
            code, took_s = process.stop(signal.SIGINT)
            assert (code, took_s < 8) == (130, True)
            assert "Traceback" not in process.log


def reload(process, **settings):
    process.settings.update(settings)
    process.write()
    os.kill(process.process.pid, signal.SIGHUP)


def keeps_its_configuration_when_the_new_one_is_bad(process):
    reload(process, nonsense=1)
    process.wait(lambda: "reload rejected" in process.log)
    assert "nonsense: unknown key" in process.log
    process.wait_ready()


def takes_a_good_one_over(process):
    del process.settings["nonsense"]
    reload(process, exempt={"daemonSetPods": True})
    process.wait(lambda: process.filter(["u1"], pod=DAEMON_POD).NodeNames == ["u1"])


def replaces_a_worker_that_dies(process):
    process.wait(lambda: len(workers_of(process)) == 1)  # the one of before the reload has gone
    (worker,) = workers_of(process)
    os.kill(worker, signal.SIGKILL)
    process.wait(lambda: workers_of(process) not in ([], [worker]))
    process.wait_ready()
    assert process.filter(["u1"], pod=DAEMON_POD).NodeNames == ["u1"]


def test_a_taken_port_is_one_line(tmp_path):
    with FakeApiServer() as api, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        kubeconfig = str(api.write_kubeconfig(tmp_path / "kubeconfig"))
        path = tmp_path / "extender.yaml"
        path.write_text(yaml.safe_dump({"listen": {"port": port}, "kubernetes": {"kubeconfig": kubeconfig}}))
        command = [sys.executable, "-m", "extender", "--config", str(path)]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"readygate-extender: cannot listen on 127.0.0.1 port {port}: Address already in use; "
        "change listen.address or listen.port\n"
    )
