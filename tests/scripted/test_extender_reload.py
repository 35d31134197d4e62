"""SIGHUP with a file that cannot be used: the configuration of before stays in force, and so does every verdict."""

import os
import signal

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.pid import children

REJECTED = "reload rejected, keeping the previous configuration"


@pytest.fixture(scope="module")
def process(gunicorn, tmp_path_factory):
    with FakeApiServer() as api:
        for name, ready in (("h1", "True"), ("u1", "False"), ("u2", "False")):
            api.put(node_json(name))
            api.put(pod_json(name, Ready=ready))
        # Nothing holds the two closed nodes open, so what is asked is what the gate itself says.
        config = {"cap": False, "storm": False}
        folder = tmp_path_factory.mktemp("reload")
        with ExtenderProcess(api, folder, config=config, environ=gunicorn.environ) as running:
            running.wait_ready()
            yield running


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"gates": []}, "gates: is an empty list", id="no gate"),
        pytest.param({"gates": [{"name": "a"}, {"name": "a"}]}, "gates[1].name: is the text", id="two of one name"),
        pytest.param({"cap": {"gate": "101%"}}, "cap.gate: is the text", id="a cap above all"),
        pytest.param({"gates": [{"severity": "warning"}]}, "gates[0].severity: is the text", id="an unknown severity"),
        pytest.param(
            {"gates": [{"nodes": "a in b"}]}, "gates[0].nodes: is the text", id="a selector that cannot be read"
        ),
        pytest.param({"exempt": {"namespaces": "*"}}, "exempt.namespaces: is the text", id="everybody exempt, almost"),
        pytest.param({"gates": None}, "gates: is empty", id="gates that are null"),
        pytest.param(None, "line 1, column", id="half a file"),
    ],
)
def test_a_broken_file_changes_no_verdict_and_is_said_once(process, changes, said):
    before, workers = process.log.count(REJECTED), children(process.process.pid)
    whole = dict(process.settings)
    if changes is None:
        process.config.write_text("{gates: [")
    else:
        process.settings.update(changes)
        process.write()
    process.settings = whole
    os.kill(process.process.pid, signal.SIGHUP)
    process.wait(lambda: process.log.count(REJECTED) > before)
    answer = process.filter(["h1", "u1", "u2", "nobody"])
    assert ["h1"] == answer.NodeNames
    (line,) = [line for line in process.lines if REJECTED in line][before:]
    assert said in line
    assert workers == children(process.process.pid), "nobody was replaced"


def test_after_all_that_a_good_file_is_taken(process):
    process.settings["gates"] = [{"severity": "warn"}]
    process.write()
    os.kill(process.process.pid, signal.SIGHUP)
    process.wait(lambda: "reloaded" in process.log)


def test_the_level_of_the_log_is_taken_too(process):
    """An operator who wants to see more need not restart it."""

    def reload(level):
        process.settings["log"] = {"level": level}
        process.write()
        process.wait(lambda: len(children(process.process.pid)) == 1, 20)  # the one of the reload before has gone
        before = children(process.process.pid)
        os.kill(process.process.pid, signal.SIGHUP)
        process.wait(lambda: len(after := children(process.process.pid)) == 1 and after != before, 20)
        return sum(" synced " in line for line in process.lines)

    synced = sum(" synced " in line for line in process.lines)
    assert [synced, synced + 1] == [reload("error"), reload("info")]


def test_what_a_reload_cannot_change_is_said(process):
    process.settings["listen"] = {**process.settings["listen"], "user": 65532}
    process.write()
    os.kill(process.process.pid, signal.SIGHUP)
    process.wait(lambda: "listen.address, listen.port and listen.user change only with a restart" in process.log)
