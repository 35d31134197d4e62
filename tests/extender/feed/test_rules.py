"""What decisions are made by, and their cap, over the feed: so that people are told by the same rules."""

import pytest

from extender.feed.mirror import Mirror
from extender.policy.exempt import rules_of
from extender.policy.snapshot import Snapshot
from extender.settings import parse
from tests.extender.feed.published import SETTINGS
from tests.kit.waiting import wait_until

GPU = """
kubernetes: {server: https://192.0.2.1}
mode: enforce
exempt: {namespaces: [team-a]}
gates:
- {name: health}
- {name: gpu, damping: off, for: {resources: [nvidia.com/gpu]}, cap: 20%}
"""


@pytest.mark.usefixtures("publisher")
def test_the_mirror_answers_by_the_settings_of_who_answers_kube_scheduler(published, path):
    published.settings = parse(GPU)
    mirror = Mirror(path, SETTINGS)
    assert (mirror.settings, mirror.exemptions, mirror.classes.everybody) == (SETTINGS, rules_of(SETTINGS), True)
    mirror.start()
    wait_until(lambda: mirror.settings is not SETTINGS, "the rules")
    told = mirror.settings
    assert (told.gates, told.exempt, told.mode) == (published.settings.gates, published.settings.exempt, "enforce")
    assert told.kubernetes == SETTINGS.kubernetes, "what no answer follows from is not told"
    assert (mirror.exemptions, mirror.classes.everybody) == (rules_of(published.settings), False)
    mirror.stop()


@pytest.mark.usefixtures("publisher")
def test_the_cap_of_the_cluster_is_mirrored(published, mirror):
    published.board.swap(Snapshot({}, frozenset({"n1"}), 7))
    wait_until(lambda: mirror.board.snapshot.cap == 7, "the cap")
