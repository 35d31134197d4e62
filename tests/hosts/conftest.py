"""The hosts of ring 3, booted once per test session.

Everything in this folder gets the marker `hosts`. `READYGATE_HOSTS_REUSE=1` runs the tests on hosts that are up already
and leaves them up, `READYGATE_HOSTS_SET=second` on another set, beside who tests on the first. After a failure the
hosts' logs are in build/artefacts/hosts, or build/artefacts/second.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from images.build import TAG, readygate_image
from tools.kit.ability import cannot_run
from tools.kit.commands import BuildError
from tools.testbed.hosts.errors import HostsError
from tools.testbed.hosts.hosts import Hosts, obstacle
from tools.testbed.hosts.layout import Layout, chosen

HERE = Path(__file__).parent
ARTEFACTS = HERE.parents[1] / "build" / "artefacts"
# The first test pays for the base file system, the images and the boot; on a slow connection that is minutes.
_TIMEOUT_S = 1800
# Of a process in network and mount name spaces of its own.
_HOLD = "mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && ip link set lo up && echo made && exec sleep 600"
_failed = pytest.StashKey[bool]()
_obstacle = pytest.StashKey[str]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The deployments come last: the others want the cluster as kubeadm made it, and tests/hosts/path leaves it so.
    items.sort(key=lambda item: item.path.is_relative_to(HERE / "deployment"))
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.hosts)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUT_S))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.failed and item.path.is_relative_to(HERE):
        item.session.stash[_failed] = True
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if reason := config.stash.get(_obstacle, ""):
        terminalreporter.write_line(f"RING 3 DID NOT RUN: {reason}", red=True, bold=True)


@pytest.fixture(scope="session")
def able(request: pytest.FixtureRequest) -> None:
    """Ends the test where ring 3 cannot run: as skipped and told loudly, in CI as failed."""
    if reason := obstacle():
        request.config.stash[_obstacle] = reason
        cannot_run(f"ring 3 did not run: {reason}")


@contextmanager
def booted(request: pytest.FixtureRequest, layout: Layout, called: str) -> Iterator[Hosts]:
    """The hosts of a layout with readygate's image, up as long as this lasts.

    called: their name in reports, and the folder of their logs.
    """
    request.getfixturevalue("able")
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")

    def progress(text: str) -> None:
        if reporter is not None:
            reporter.write_line(f"{called}: {text}")

    reuse = os.environ.get("READYGATE_HOSTS_REUSE") == "1" and Hosts(layout).running()
    cause = ""
    try:
        # Imported once and not on each host: that would cost as much as a start.
        found = Hosts(layout, progress=progress, archives=[] if reuse else [readygate_image(progress)])
        if not reuse:
            found.up()
    except (HostsError, BuildError) as e:
        cause = str(e)
    if cause:
        pytest.fail(f"{called}: ring 3 did not start: {cause}", pytrace=False)
    try:
        yield found
    finally:
        if request.session.stash.get(_failed, False):
            found.collect_logs(ARTEFACTS / called)
            progress(f"logs are in {(ARTEFACTS / called).relative_to(HERE.parents[1])}")
        if not reuse:
            found.down()


@pytest.fixture(scope="session")
def hosts(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Three Ready nodes."""
    layout = chosen()
    with booted(request, layout, layout.network.name) as found:
        yield found


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Runs a command as on another machine; the argument list goes before the command's."""
    request.getfixturevalue("able")
    holder = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", _HOLD], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "made\n"
    yield ["nsenter", f"--target={holder.pid}", "--net", "--mount", f"--wd={HERE.parents[1]}"]
    holder.kill()
    holder.wait()
    holder.stdout.close()


@pytest.fixture(scope="module")
def fresh_hosts(hosts: Hosts) -> Hosts:
    """The session's hosts with a new cluster for this module, in about ten seconds; readygate's image is on them.

    Fixtures of the session that have put something on the earlier cluster are void.
    """
    if os.environ.get("READYGATE_HOSTS_REUSE") != "1":
        hosts.renew()
    return hosts


@pytest.fixture(scope="session")
def image(hosts: Hosts) -> str:
    """The name of readygate's image, which is in containerd on every host."""
    return with_image(hosts)


def with_image(hosts: Hosts) -> str:
    """Puts readygate's image into containerd on every host. Returns its name."""
    hosts.import_image(readygate_image(hosts.progress))
    return TAG
