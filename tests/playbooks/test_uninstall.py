"""uninstall.yml on hosts of this machine: what it refuses before anything goes, and what it leaves to a whole run."""

import json
import sys

import pytest
import yaml

from tests.playbooks.here import Here
from tests.playbooks.seeing import EXTENDER, FIRST, FOLDER, URL, manifest

TWO = ("control-1", "control-2")
pytestmark = pytest.mark.timeout(950)
DELETE = " delete --ignore-not-found"
FORCED = {"readygate_scheduler_config_uninstall_anyway": True}
# Of the program that systemd runs only this much: the manifest is put there, and its scheduler asks nobody any more.
PUT = """#!/bin/sh
exec {python} - "$@" <<'END'
import json, pathlib, sys
told = pathlib.Path(sys.argv[-1])
job = json.loads(told.read_text())
pathlib.Path(job["target"]).write_text(job["wanted"])
pathlib.Path({configz!r}).write_text('{{"componentconfig": {{"kind": "KubeSchedulerConfiguration"}}}}')
verdict = {{"id": job["id"], "outcome": "confirmed", "changed": True, "cause": ""}}
told.with_name("verdict.json").write_text(json.dumps(verdict))
END
"""


@pytest.fixture
def here(tmp_path):
    return Here(tmp_path, TWO)


def test_limited_to_one_host_it_leaves_the_extender_to_the_schedulers_of_the_others(here):
    here.asks("control-1", EXTENDER)
    run = here.play("uninstall.yml", "--limit=control-2")
    assert (0, [], "") == (run.code, here.calls(DELETE), here.lease()), run.told
    assert "this run is limited to control-2" in run.output
    assert all((here.folder / name / "readygate").exists() for name in TWO)


def test_a_whole_run_removes_all_of_it(here):
    here.asks("control-1", FIRST)
    folder = here.folder / "control-1" / "readygate"
    for ours in ("bin", "original", "proven"):
        (folder / ours).mkdir()
    for ours in ("lock", "job.json", "verdict.json", ".verdict.json.part", "kube-scheduler-0123456789ab.yaml"):
        (folder / ours).write_text("{}")
    (folder / "ca.crt").write_text("of the operator, whom we have told to put it here")
    run = here.play("uninstall.yml")
    assert (0, True, "") == (run.code, bool(here.calls(DELETE)), here.lease()), run.told
    assert ["ca.crt"] == [each.name for each in folder.iterdir()]
    assert not (here.folder / "control-2" / "readygate").exists()


@pytest.mark.parametrize("method", ["kubeadm", "kubespray", "none"])
def test_while_a_scheduler_asks_by_somebody_elses_configuration_nothing_goes(here, method):
    here.asks("control-2", FIRST, EXTENDER)
    run = here.play("uninstall.yml", readygate_scheduler_config_method=method)
    assert run.code != 0
    assert f"control-2: kube-scheduler asks {URL}, by a configuration that readygate" in run.told
    assert ([], "") == (here.calls(DELETE), here.lease())
    assert all((here.folder / name / "readygate").exists() for name in TWO)


def test_whoever_says_so_removes_the_extender_all_the_same(here):
    here.asks("control-2", EXTENDER)
    run = here.play("uninstall.yml", readygate_scheduler_config_method="none", **FORCED)
    assert (0, True) == (run.code, bool(here.calls(DELETE))), run.told


def test_an_api_server_that_does_not_answer_is_not_taken_for_one_without_kubeadm(here):
    (here.cluster / "down").touch()
    run = here.play("uninstall.yml")
    assert run.code != 0
    assert "ConfigMap kube-system/kubeadm-config cannot be read: dial tcp: connection refused" in run.told
    assert ([], True) == (here.calls(" patch "), all((here.folder / name / "readygate").exists() for name in TWO))


def test_another_run_that_is_at_work_is_not_disturbed(here):
    lease = '{"spec": {"holderIdentity": "bob@ci (process 7)", "renewTime": "2999-01-01T00:00:00.000000Z"}}'
    (here.cluster / "lease").write_text(lease)
    run = here.play("uninstall.yml")
    assert (True, True, lease) == (run.code != 0, "another run has not ended" in run.told, here.lease())
    assert [] == here.calls(" configmap ")


@pytest.mark.parametrize("theirs", ["", "/etc/kubernetes/own.yaml"], ids=["none before us", "one of theirs before us"])
def test_of_a_manifest_that_was_edited_by_hand_since_only_ours_is_taken_out(tmp_path, theirs):
    here = Here(tmp_path, ("control-1",))
    host = here.folder / "control-1"
    folder, target = host / "readygate", host / "manifests" / "kube-scheduler.yaml"
    (host / "bin" / "systemd-run").write_text(PUT.format(python=sys.executable, configz=str(host / "configz")))
    before = [f"--config={theirs}"] if theirs else []
    (folder / "original").mkdir()
    (folder / "original" / "kube-scheduler.yaml").write_text(manifest(*before))
    (folder / "original" / "noted.json").write_text(json.dumps({"config": theirs}))
    (folder / "kube-scheduler-0123456789ab.yaml").write_text("{}")
    ours = manifest(f"--config={FOLDER}/kube-scheduler-0123456789ab.yaml", "--v=4", volumes=True)
    target.write_text("# edited\n" + ours.replace(FOLDER, str(folder)))
    here.asks("control-1", EXTENDER)
    run = here.play("uninstall.yml")
    assert (0, True, "") == (run.code, bool(here.calls(DELETE)), here.lease()), run.told
    assert yaml.safe_load(manifest(*before, "--v=4")) == yaml.safe_load(target.read_text())
    assert not folder.exists()
