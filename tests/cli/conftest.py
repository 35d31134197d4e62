"""Fixtures: a scripted cluster with extenders, and a fake API server."""

import time

import pytest

from tests.cli.orders.ordering import NAMESPACE, WALL
from tests.cli.served import Cluster, serving
from tests.extender.builders import node_json
from tools.fakes.api_server import FakeApiServer
from tools.kit import kubeconfig


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """Hides the kubeconfig, terminal and colours of the user who runs the tests."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A cluster, and a kubeconfig for it in KUBECONFIG."""
    found = Cluster()
    with serving(found.answer) as found.url:
        file = kubeconfig.write(tmp_path / "kubeconfig", server=found.url, user=kubeconfig.token_user("secret"))
        monkeypatch.setenv("KUBECONFIG", str(file))
        yield found


@pytest.fixture
def in_utc(monkeypatch):
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def api(tmp_path, monkeypatch, in_utc):  # noqa: ARG001
    """Nodes n-1 to n-3, two of them in the pool gpu; no orders."""
    with FakeApiServer() as api:
        api.put({"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for number, pool in enumerate(("gpu", "gpu", "web"), start=1):
            one = node_json(f"n-{number}")
            one["metadata"]["labels"] = {"readygate.dev/pool": pool}
            api.put(one)
        monkeypatch.setenv("KUBECONFIG", str(api.write_kubeconfig(tmp_path / "kubeconfig")))
        monkeypatch.setattr("getpass.getuser", lambda: "anna")
        monkeypatch.setattr("time.time", lambda: WALL)
        yield api
