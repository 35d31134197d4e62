"""The control planes are known before any is changed: who is one, who leads, and what is waited for meanwhile."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks.rendering import ROLES

# Says the next line of `said` at each call, the last one for ever.
KUBECTL = """#!/bin/sh
echo "$*" >> {folder}/calls
case " $* " in
  *" auth whoami "*) cat {folder}/whoami; exit;;
  *" get lease "*) cat {folder}/leader; exit;;
esac
line=$(head -n 1 {folder}/said)
[ $(wc -l < {folder}/said) -eq 1 ] || sed -i 1d {folder}/said
case "$line" in error*) echo "$line" >&2; exit 1;; esac
for node in $line; do echo node/$node; done
"""


def user(name: str) -> str:
    return json.dumps({"status": {"userInfo": {"username": name}}})


def play(
    folder: Path, said: list[str], whoami: str = user("system:node:cp-1"), leader: str = "", **more: Any
) -> tuple[int, str]:
    """controls.yml on this machine as cp-1, of an inventory that has cp-2 too. Exit code, and what was shown."""
    for name, text in {"said": "\n".join(said) + "\n", "whoami": whoami, "leader": leader, "calls": ""}.items():
        (folder / name).write_text(text)
    (folder / "kubectl").write_text(KUBECTL.format(folder=folder))
    (folder / "kubectl").chmod(0o755)
    role = {"name": "readygate_scheduler_config", "tasks_from": "controls"}
    told = {"msg": "{{ group_names | join(' ') }} of {{ __readygate_scheduler_config_node }}"}
    own = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    one = {
        "hosts": "cp-1",
        "gather_facts": False,
        "environment": {"PATH": f"{folder}:{os.environ['PATH']}"},
        "tasks": [
            {"name": "Controls", "ansible.builtin.include_role": role},
            {"name": "Told", "ansible.builtin.debug": told},
        ],
    }
    (folder / "play.yml").write_text(json.dumps([one]))
    (folder / "hosts.yml").write_text(
        json.dumps({"control_plane": {"hosts": {"cp-1": own, "cp-2": own}, "vars": {"readygate_image": "x"} | more}})
    )
    environ = {
        **os.environ,
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_HOME": str(folder / "ansible"),
        "ANSIBLE_ROLES_PATH": str(ROLES),
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", str(folder / "hosts.yml"), str(folder / "play.yml")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("leader", "group"),
    [
        pytest.param("", "follows", id="where nobody leads"),
        pytest.param("another_8a52b2f6-06a9", "follows", id="where another does"),
        pytest.param(f"{os.uname().nodename}_8a52b2f6-06a9", "leads", id="where it does, by its host's own name"),
        pytest.param(f"{os.uname().nodename}", "leads", id="where the name of the lock has nothing more"),
    ],
)
def test_a_host_is_of_those_that_follow_or_of_the_one_that_leads(tmp_path, leader, group):
    code, shown = play(tmp_path, ["cp-1 cp-2"], leader=leader)
    assert (0, True) == (code, f"control_plane kube_scheduler_{group} of cp-1" in shown), shown
    assert "waiting" not in shown


def test_a_node_that_gets_its_label_last_is_waited_for_and_what_is_waited_for_is_shown(tmp_path):
    code, shown = play(tmp_path, ["error: dial tcp: connection refused", "cp-1", "cp-1 cp-2"])
    assert 0 == code, shown
    assert "    waiting: the control plane nodes cannot be listed: error: dial tcp: connection refused\n" in shown
    assert "is on cp-1, and the inventory has 2 control plane hosts\n" in shown
    assert "RETRYING" not in shown


@pytest.mark.parametrize("there", [True, False], ids=["another's", "none, as on K3s"])
def test_a_host_without_a_kubelets_kubeconfig_is_told_what_the_playbooks_are_for(tmp_path, there):
    kubeconfig = tmp_path / "kubelet.conf"
    if there:
        kubeconfig.write_text("")
    named = {"readygate_scheduler_config_kubelet_kubeconfig": str(kubeconfig)}
    said = "Forbidden" if there else f"error: stat {kubeconfig}: no such file or directory"
    code, shown = play(tmp_path, ["cp-1 cp-2"], whoami=said, **named)
    assert (True, not there) == (code != 0, "K3s, RKE2, Talos and clouds run kube-scheduler in ways" in shown)
    assert there == ("is not a node of the cluster" in shown)


@pytest.mark.parametrize(
    ("whoami", "expected"),
    [
        pytest.param(user("kubernetes-admin"), "conf: kubernetes-admin. Run prepare-control", id="somebody else"),
        pytest.param("no JSON", "conf: no JSON. Run prepare-control-plane.yml", id="an answer that is none"),
        pytest.param("[]", "conf: []. Run prepare-control-plane.yml", id="an answer of another kind"),
    ],
)
def test_a_host_that_is_no_node_is_refused_with_what_is_known_of_it(tmp_path, whoami, expected):
    code, shown = play(tmp_path, ["cp-1 cp-2"], whoami=whoami)
    assert code != 0
    assert "cp-1 is not a node of the cluster: the API server answers for" in shown
    assert expected in shown
    assert "remove any other from the group control_plane" in shown
