"""`readygate doctor` and what a real kube-scheduler tells of its configuration."""

from dataclasses import replace

import pytest

from cli.doctor.configz_reader import UnreadError, read_configz
from cli.doctor.examine import examine
from cli.doctor.facts import Loaded, Scheduler
from extender import settings
from kube.auth import Connection
from tests.cli.doctor.facts import FACTS
from tests.plane.cluster import Cluster
from tools.testbed.plane import scheduler_config

URL = "http://127.0.0.1:9376"


class Nobody:
    """A user without a token."""

    def headers(self, _monotonic: float) -> dict[str, str]:
        return {}

    def refresh(self) -> None:
        return


def told(cluster: Cluster, *extenders: dict[str, object]) -> Loaded:
    """What the scheduler says after a start with these."""
    cluster.plane.restart_scheduler(cluster.plane.scheduler_config(list(extenders), "doctor"))
    there = Connection(cluster.plane.scheduler_url, None, Nobody())
    return read_configz(cluster.plane.scheduler_url, there, user_agent="tests")


def found(loaded: Loaded) -> list[str]:
    facts = replace(FACTS, settings=settings.parse(""), schedulers=(Scheduler("s", node="c1", loaded=loaded),))
    return [one.name for one in examine(facts) if one.name != "batching-off"]


def test_what_a_real_scheduler_has_loaded(cluster: Cluster):
    entry = scheduler_config.extender(URL)
    loaded = told(cluster, entry)
    assert [] == found(loaded)
    assert (("default-scheduler",), 50.0, 100) == (
        tuple(profile.scheduler_name for profile in loaded.profiles),
        loaded.qps,
        loaded.burst,
    )
    assert ["no-preempt-verb"] == found(told(cluster, entry | {"preemptVerb": ""}))
    assert ["not-registered"] == found(told(cluster))
    spoiled = scheduler_config.extender(URL, mode="enforce", node_cache_capable=False, timeout="5s")
    assert {"nodes-mode", "enforce-deadlock", "timeout-long"} == set(found(told(cluster, spoiled)))


def test_a_scheduler_that_is_away_or_another_server_is_unread(cluster: Cluster):
    url = cluster.plane.scheduler_url
    cluster.plane.stop_scheduler()
    there = Connection(url, None, Nobody())
    with pytest.raises(UnreadError, match="does not answer"):
        read_configz(url, there, user_agent="tests")
    with pytest.raises(UnreadError, match="does not let you"):
        read_configz(cluster.plane.server, there, user_agent="tests")
