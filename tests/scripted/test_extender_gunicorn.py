"""That the tests of both lines of gunicorn run on the line they name, and that people are served on both."""

import json

import pytest

from tests.extender.builders import node_json, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.gunicorn_lines import LINES, Gunicorn
from tests.scripted.status_api_process import StatusApiProcess
from tools.fakes.api_server import FakeApiServer


@pytest.fixture(scope="module", params=LINES)
def gunicorn(request):
    """Both lines, in the gate too."""
    return Gunicorn.of(request.param)


@pytest.fixture
def process(tmp_path, gunicorn):
    with FakeApiServer() as api:
        api.put(node_json("h1"))
        api.put(pod_json("h1"))
        api.put(node_json("u1"))
        api.put(pod_json("u1", Ready="False"))
        with ExtenderProcess(api, tmp_path, config={"log": {"level": "debug"}}, environ=gunicorn.environ) as process:
            process.wait_ready()
            yield process


def test_kube_scheduler_and_people_are_served_by_either_line(process, gunicorn, tmp_path):
    assert f"Starting {gunicorn.line}." in process.log
    assert ["h1"] == process.filter(["h1", "u1"]).NodeNames
    with StatusApiProcess(process.settings, tmp_path, environ=gunicorn.environ) as status_api:
        status_api.wait_follows()
        assert f"Starting {gunicorn.line}." in status_api.log
        nodes = json.loads(status_api.get("/api/v1/nodes")[1])["nodes"]
        assert {"h1": True, "u1": False} == {node["node"]: node["open"] for node in nodes}
        assert 0 == status_api.stop()[0]
    assert 0 == process.stop()[0]
    assert ("Traceback" in process.log, "Traceback" in status_api.log) == (False, False)
