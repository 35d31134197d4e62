"""One extender for all tests that only ask: starting one takes a second."""

import pytest

from tests.extender.builders import node_json, owner, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.gunicorn_lines import LINES, Gunicorn
from tests.scripted.status_api_process import StatusApiProcess
from tools.fakes.api_server import FakeApiServer
from tools.kit.scope import WHOLE

BROKEN = [f"b{i}" for i in range(500)]
NODES = 7 + len(BROKEN)


def pytest_collection_modifyitems(items):
    """The longest first: what begins last on one of two processes keeps the other waiting."""
    items.sort(key=lambda item: item.path.name != "test_extender_life.py")


@pytest.fixture(scope="module", params=LINES if WHOLE else LINES[:1])
def gunicorn(request):
    """Each supported line of gunicorn, one after the other. The gate has the installed one, and the older one in
    test_extender_gunicorn alone."""
    return Gunicorn.of(request.param)


@pytest.fixture(scope="session")
def extender(tmp_path_factory):
    """Nodes h1, h2 healthy; u1 and BROKEN with a health pod that is not Ready; m1 without one; s1 with pods of another
    DaemonSet and namespace, t1 with a terminating one, f1 with a failed one."""
    with FakeApiServer() as api:
        for name in ("h1", "h2", "u1", "m1", "s1", "t1", "f1", *BROKEN):
            api.put(node_json(name, Ready="True"))
        for name in ("h1", "h2"):
            api.put(pod_json(name))
        for name in ("u1", *BROKEN):
            api.put(pod_json(name, Ready="False"))
        api.put(pod_json("s1", name="other-set", owners=[owner("other")]))
        api.put(pod_json("s1", name="other-namespace", namespace="default"))
        terminating, failed = pod_json("t1"), pod_json("f1")
        terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z"
        failed["status"]["phase"] = "Failed"
        api.put(terminating)
        api.put(failed)
        with ExtenderProcess(api, tmp_path_factory.mktemp("extender")) as process:
            process.wait_ready()
            yield process
            assert not [line for line in process.lines if "Traceback" in line or " ERROR " in line]
            assert process.stop()[0] == 0


@pytest.fixture(scope="session")
def status_api(extender, tmp_path_factory):
    """The process that shows people what `extender` decides."""
    with StatusApiProcess(extender.settings, tmp_path_factory.mktemp("status-api")) as process:
        process.wait_follows()
        yield process
        assert not [line for line in process.lines if "Traceback" in line or " ERROR " in line]
        assert process.stop()[0] == 0


@pytest.fixture(params=["kube-scheduler's port", "status API's port"])
def asked(request, extender):
    """Either of the two. Not by the name of one of them: its parameter would be that one's too, and begin it anew."""
    return extender if request.param == "kube-scheduler's port" else request.getfixturevalue("status_api")
