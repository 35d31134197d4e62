"""What gives rights to the cluster stays on its host: the controller sees no content of a kubeconfig."""

import re

import pytest

from tests.playbooks.here import Here
from tests.playbooks.rendering import all_tasks

READ = re.compile(r"(^|\.)(slurp|fetch|synchronize)$")
KEY = "bm90IGEga2V5"
ADMIN = re.compile(r"readygate_(agent|extender|scheduler_config|objects)_kubeconfig")
KUBECONFIGS = tuple(f"readygate_{of}_kubeconfig" for of in ("agent", "extender", "scheduler_config"))


def test_what_is_brought_from_a_host_is_configuration_of_schedulers():
    sources = [task[module].get("src") for task in all_tasks() for module in task if READ.search(module)]
    assert sources == [
        "{{ __readygate_scheduler_config_asked }}",
        "{{ __readygate_scheduler_config_folder }}/original/noted.json",
        "{{ __readygate_scheduler_config_noted }}",
    ]


def test_no_command_prints_what_a_kubeconfig_holds():
    said = [str(task.get("ansible.builtin.command") or task.get("ansible.builtin.shell") or "") for task in all_tasks()]
    of_admin = [words for words in said if ADMIN.search(words)]
    assert len(of_admin) > 5
    assert [] == [words for words in of_admin if not re.search(r"kubectl|/credentials\.py", words)]
    views = [words for words in said if re.search(r"\bconfig\W+view\b", words)]
    assert [True] == [words.endswith("'--output=jsonpath={.clusters[0].cluster.server}']}") for words in views]


@pytest.mark.timeout(950)
def test_a_run_that_tells_all_it_can_tells_nothing_of_the_kubeconfig_on_the_host(tmp_path):
    admin = tmp_path / "admin.conf"
    admin.write_text(f"users:\n- name: kubernetes-admin\n  user: {{client-key-data: {KEY}}}\n")
    here = Here(tmp_path, ("control-1",), **dict.fromkeys(KUBECONFIGS, str(admin)))
    run = here.play("check.yml", "-vvv")
    assert (True, False) == (str(admin) in run.output, KEY in run.output), run.told
