"""Ring 2: the real control plane on loopback, started once for the session; a test that needs quiet starts its own.

A machine that cannot run the ring makes every test of it an error that says why: nothing is skipped.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.plane.cluster import WITHOUT_CONTROLLERS, Cluster
from tests.plane.confined import Confined, confine
from tools.testbed.plane.plane import Plane
from tools.testbed.shared.binaries import kube_binaries

# A control plane beside two others takes its time to start: 20 s have been seen, and tests that started it anew twice.
_TIMEOUT_S = 300
ARTEFACTS = Path(__file__).resolve().parents[2] / "build" / "artefacts"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.plane)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints at once, past pytest's capture: whoever waits wants to know for what."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def show(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\nplane: {text}", flush=True)

    return show


@pytest.fixture(scope="session")
def artefacts() -> Path:
    """What the tests measured and saw, kept after the run."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    return ARTEFACTS


@pytest.fixture(scope="session")
def plane(say: Callable[[str], None]) -> Iterator[Plane]:
    """Whole, with a scheduler that asks no extender: for agents that are nodes."""
    kube_binaries(say)
    with Plane("tests", progress=say) as plane:
        yield plane


@pytest.fixture(scope="session")
def _bare_plane(say: Callable[[str], None]) -> Iterator[Plane]:
    kube_binaries(say)
    with Plane("bare", without_controllers=WITHOUT_CONTROLLERS, progress=say) as plane:
        yield plane


@pytest.fixture
def cluster(_bare_plane: Plane) -> Iterator[Cluster]:
    """Bare nodes, health pods and a real extender, removed after the test, on a plane that is for these only."""
    with Cluster(_bare_plane) as cluster:
        yield cluster


@pytest.fixture
def confined(cluster: Cluster) -> Iterator[Confined]:
    """Agent, extender and tenants under the policies of the playbooks."""
    with confine(cluster) as confined:
        yield confined
