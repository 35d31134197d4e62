"""Playbooks over control plane hosts of this machine: what they refuse before anything changes, and what a failed run
leaves for the next one."""

import re

import pytest
import yaml

from tests.playbooks.here import Here
from tests.playbooks.seeing import EXTENDER, KIND, manifest

TWO = ("control-1", "control-2")
SCHEDULER = "--tags=readygate_scheduler_config"
pytestmark = pytest.mark.timeout(950)


@pytest.fixture
def here(tmp_path):
    return Here(tmp_path, TWO)


def test_the_host_that_leads_is_last_by_its_own_name_and_a_run_that_fails_lets_others_begin(here):
    """The first of the others fails, for no extender answers here."""
    for name in TWO:
        (here.folder / name / "bin" / "uname").write_text(f"#!/bin/sh\necho {name}.example\n")
        (here.folder / name / "bin" / "uname").chmod(0o755)
    (here.cluster / "leader").write_text("control-1.example_9e8ede64-0000-0000-0000-000000000000")
    run = here.play("site.yml", SCHEDULER)
    played = run.output.partition("PLAY [Scheduler configuration")[2]
    assert ["control-2"] == list(dict.fromkeys(re.findall(r"^\w+: \[(\S+?)\]", played, re.MULTILINE))), run.told
    assert (True, True, "") == (run.code != 0, bool(here.calls(" create ")), here.lease())


@pytest.mark.parametrize("strategy", ["linear", "free"])
def test_hosts_that_would_get_different_files_are_refused_before_the_first_change(here, monkeypatch, strategy):
    """Also where the controller's ansible.cfg lets each host run ahead of the others."""
    monkeypatch.setenv("ANSIBLE_STRATEGY", strategy)
    for number, name in enumerate(TWO):
        own = here.folder / name / "own.yaml"
        own.write_text(yaml.safe_dump({**KIND, "parallelism": number + 3}))
        (here.folder / name / "manifests" / "kube-scheduler.yaml").write_text(manifest(f"--config={own}"))
    run = here.play("site.yml", SCHEDULER)
    assert run.code != 0
    assert "parallelism: 3 on control-1; 4 on control-2" in run.told
    assert "Make the file that --config names the same on each" in run.told
    assert [] == here.calls(" create ")


def test_the_tag_that_only_verifies_finds_what_is_lost_and_leaves_no_trace(here):
    here.asks("control-1", EXTENDER)
    # One host after the other: else any that follows may be the first, and the first that fails ends the play.
    run = here.play("site.yml", "--forks=1", "--tags=readygate_scheduler_config_verify")
    assert run.code != 0
    assert "the next kubeadm upgrade loses the registration" in run.output
    assert [] == [here.calls(word) for word in (" create ", " patch ", " apply ") if here.calls(word)]
