"""Nobody's own kubectl (~/.kube/kuberc, read since 1.34) decides what the playbooks do on a host: one that asks before
it deletes, as Kubernetes' own example has it, finds nobody who answers, deletes nothing and ends well.
"""

from typing import Any

import pytest
import yaml

from tests.playbooks.rendering import PLAYBOOKS

OFF = {"KUBERC": "off"}
PLAYS = [
    pytest.param(play, id=f"{path.name}: {play['name']}")
    for path in sorted(PLAYBOOKS.glob("*.yml"))
    for play in yaml.safe_load(path.read_text())
    if isinstance(play, dict) and play.get("become")
]


def test_there_are_such_plays() -> None:
    assert len(PLAYS) > 20


@pytest.mark.parametrize("play", PLAYS)
def test_each_play_on_a_host_leaves_it_aside(play: dict[str, Any]) -> None:
    environment = play.get("environment", {})
    assert OFF == {name: value for name, value in environment.items() if name == "KUBERC"}
