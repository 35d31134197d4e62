"""SIGHUP while kube-scheduler asks: the old worker answers until the new one has something to say."""

import os
import signal

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.filter_load import FilterLoad
from tests.scripted.reloads import reload_under_load
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import ProcessId, children


def workers_of(process):
    return children(process.process.pid)


def hang_up(process):
    os.kill(process.process.pid, signal.SIGHUP)


@pytest.fixture
def api():
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        api.put(node_json("u1"))
        api.put(pod_json("u1", Ready="False"))
        yield api


@pytest.fixture
def process(api, tmp_path, gunicorn):
    with ExtenderProcess(api, tmp_path, environ=gunicorn.environ) as process:
        process.wait_ready()
        yield process
        assert "Traceback" not in process.log


def asking(process):
    return FilterLoad(process.port, ["h1", "u1"], ["h1"], patience_s=5.0)


def begin_without_lists(api, process):
    """A reload whose new worker gets no list of pods, until the connections of the API server are cut. It is there."""

    def asks(request):
        return request.path.endswith("/pods") and not request.is_watch

    before = len(api.wait_requests(1, asks))
    api.stall_next(path="/pods", watch=False)
    hang_up(process)
    api.wait_requests(before + 1, asks)
    assert 2 == len(workers_of(process))


def test_no_call_fails_over_five_reloads_under_load(tmp_path, gunicorn):
    done = reload_under_load(tmp_path, reloads=5, nodes=300, patience_s=5.0, environ=gunicorn.environ)
    assert ([], 2) == (done.failed, done.workers_max)
    assert done.calls > 100


def test_no_call_fails_while_the_new_worker_cannot_read_its_lists(api, process):
    (old,) = workers_of(process)
    with asking(process) as load:
        begin_without_lists(api, process)
        process.wait(lambda: load.calls > 200)
        assert old in workers_of(process)
        api.cut_connections()
        process.wait(lambda: old not in workers_of(process), timeout_s=40)
    assert [] == load.failed


def test_signals_during_a_reload_are_one_reload_after_it(api, process):
    with asking(process) as load:
        first = workers_of(process)
        begin_without_lists(api, process)
        for _ in range(5):
            hang_up(process)
        api.cut_connections()
        process.wait(lambda: process.log.count("reloaded") == 2, timeout_s=60)
        process.wait(lambda: len(workers_of(process)) == 1, timeout_s=30)
        assert first != workers_of(process)
    assert [] == load.failed
    assert 2 == process.log.count("reloaded")


def test_a_new_worker_that_dies_changes_nothing(api, process):
    (old,) = workers_of(process)
    with asking(process) as load:
        begin_without_lists(api, process)
        (new,) = set(workers_of(process)) - {old}
        os.kill(new, signal.SIGKILL)
        process.wait(lambda: "reload given up, keeping the previous configuration" in process.log)
        assert [old] == workers_of(process)
    assert [] == load.failed


def test_an_old_worker_that_dies_is_followed_by_the_new_one_though_it_has_not_synced(api, process):
    (old,) = workers_of(process)
    begin_without_lists(api, process)
    os.kill(old, signal.SIGKILL)
    process.wait(lambda: "not synced" in process.filter(["h1"]).Error)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_stop_during_a_reload_ends_both_workers(api, process, number):
    begin_without_lists(api, process)
    both = workers_of(process)
    code, _ = process.stop(number)
    assert (130 if number == signal.SIGINT else 0) == code
    assert [] == [pid for pid in both if ProcessId.of(pid)]
    # A worker that waited for anything would be killed by gunicorn and leave no such line.
    assert process.log.count('reflector stopped reflector="nodes"') == 2


def test_another_port_needs_a_restart_and_all_else_is_taken(process):
    process.settings |= {"listen": {"port": 1}, "log": {"level": "debug"}}
    process.write()
    hang_up(process)
    process.wait(lambda: "listen.address, listen.port and listen.user change only with a restart" in process.log)
    process.wait(lambda: "reloaded" in process.log)
    assert ["h1"] == process.filter(["h1", "u1"]).NodeNames
