"""What the commands run against."""

import pytest

from tests.cli.served import Cluster, serving
from tests.kit import kubeconfig


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """Nobody's own kubeconfig, terminal or colours."""
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
