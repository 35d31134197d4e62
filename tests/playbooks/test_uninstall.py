"""uninstall.yml on hosts of this machine: what it refuses before anything goes, and what it leaves to a whole run."""

import pytest

from tests.playbooks.here import Here
from tests.playbooks.seeing import EXTENDER, FIRST

TWO = ("control-1", "control-2")
pytestmark = pytest.mark.timeout(450)
DELETE = " delete --ignore-not-found"
FORCED = {"readygate_scheduler_config_uninstall_anyway": True}


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
    assert "control-2: kube-scheduler asks http://127.0.0.1:9376, by a configuration that readygate" in run.told
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
