"""How often a container was restarted, where its runtime knows it no more: calcRestartCountByLogDir of kuberuntime."""

import pytest

from agent.kubelet.runtime.cri_configs import restarts_by_logs
from tests.agent.kubelet.runtime.conftest import PATIENT_S, Faked
from tests.agent.kubelet.runtime.test_cri_runtime import POD, C
from tools.kit.waiting import wait_until


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param([], 0, id="it never wrote any"),
        pytest.param(["0.log"], 1, id="one run"),
        pytest.param(["0.log", "10.log", "9.log"], 11, id="by number, not by name"),
        pytest.param(["3.log.20260101-000000.gz"], 4, id="one that was rotated"),
        pytest.param(["a.log", "1.txt", "-3.log", " 4.log", "٣.log"], 0, id="files of somebody else"),
        pytest.param([f"{2**63}.log", "1.log"], 2, id="a number that is none for Go"),
        pytest.param([f"{2**63 - 1}.log", "1.log"], 2, id="one after which Go has none"),
        pytest.param(["9" * 250 + ".log"], 0, id="as long as a name can be"),
    ],
)
def test_restarts_by_logs(files: list[str], expected: int) -> None:
    assert expected == restarts_by_logs(files)


def test_cw20_a_container_that_its_runtime_has_lost_writes_into_none_of_its_logs_again(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    (faked.logs / "u" / "c").mkdir()
    (faked.logs / "u" / "c" / "4.log").touch()
    agent.start_container(POD, C, 1)
    assert [5] == [c.restart_count for c in agent.pod("u").containers]


def test_cw20_one_that_it_knows_counts_on_from_there(faked: Faked) -> None:
    agent = faked.agent()
    agent.prepare_pod(POD)
    agent.stop_container(agent.start_container(POD, C, 0), 2.0)
    wait_until(lambda: not agent.pod("u").running, timeout_s=PATIENT_S)
    (faked.logs / "u" / "c" / "4.log").touch()
    agent.start_container(POD, C, 1)
    assert 1 == agent.pod("u").containers[0].restart_count
