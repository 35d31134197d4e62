"""Ring 2: the real control plane on loopback, one for each process of pytest; a test that breaks its own has another.

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
# The modules that take a minute or more begin first, so that none is left alone at the end. Most of them wait.
LONGEST_FIRST = (
    "playbooks_rollout",
    "outlets",
    "demo",
    "stories_two_schedulers",
    "kubelet_mode",
    "stories_rollout",
    "node_mode",
    "kick_many",
    "stories_brakes",
    "pod_starts",
    "dead_kubelet",
    "attacks",
    "canary",
    "why",
)
ARTEFACTS = Path(__file__).resolve().parents[2] / "build" / "artefacts"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.plane)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
    # Only those of the whole ring, each module's in a row: pytest-xdist gives them out in this order.
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    name = item.path.stem.removeprefix("test_")
    return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST)


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
def _shared_plane(say: Callable[[str], None]) -> Iterator[Plane]:
    """One for each process of pytest; its controllers are those that the module at hand needs."""
    kube_binaries(say)
    with Plane("tests", thrifty=True, progress=say) as plane:
        yield plane


@pytest.fixture(scope="module")
def plane(_shared_plane: Plane) -> Plane:
    """Whole, with a scheduler that asks no extender: for agents that are nodes."""
    _shared_plane.use_controllers()
    _shared_plane.restart_scheduler()
    return _shared_plane


@pytest.fixture(scope="module")
def _bare_plane(_shared_plane: Plane) -> Plane:
    _shared_plane.use_controllers(without=WITHOUT_CONTROLLERS)
    return _shared_plane


@pytest.fixture
def cluster(_bare_plane: Plane) -> Iterator[Cluster]:
    """Bare nodes, health pods and a real extender, removed after the test, on a plane that is for these only."""
    with Cluster(_bare_plane) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def policed(_bare_plane: Plane) -> Iterator[Cluster]:
    """The cluster of a module whose tests leave the policies as they are: to compile them takes seconds."""
    with Cluster(_bare_plane) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def confined(policed: Cluster) -> Iterator[Confined]:
    """Agent, extender and tenants under the policies of the playbooks."""
    with confine(policed) as confined:
        yield confined
