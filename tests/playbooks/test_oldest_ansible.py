"""The playbooks under the oldest ansible-core that they promise to work with: they are understood, and do the same.

With the locked one all of tests/playbooks and ring 3 run; the newest that runs with Python 3.11 is 2.19, which is it.
"""

import os
import re
import subprocess
import sys

import pytest
import yaml

from tests.playbooks.rendering import PLAYBOOKS, ROLES
from tools.kit.ability import cannot_run
from tools.kit.commands import BuildError
from tools.lint import PLAYBOOKS as NAMES
from tools.testbed.shared.oldest_ansible import LOCK, installed

OLDEST = LOCK.stem.removeprefix("ansible-")
# What depends on Ansible: filters, variables of the roles, real runs with modules' code and plugins.
TESTS = ("test_scheduler_config.py", "test_scheduler_host.py", "test_kubespray.py", "test_run_lock.py", "test_trial.py")
# Of the objects what has been otherwise under it once, and a form with many gates.
OBJECTS = ("tests/playbooks/test_overlay.py", "tests/charts/test_roles.py")
OF_OBJECTS = "Jinja or figures or deleted or in_a_play or profile-default or gates"
OF_HOSTS = "first_run or too_many_fail or addresses"
# Whole playbooks, on hosts that are folders: three control planes, and uninstall.
WHOLE = (("test_control_planes.py", "test"), ("test_uninstall.py", "limited or whole or disturbed"))
LIMIT_S = 110
WHOLE_LIMIT_S = 900
OBJECTS_LIMIT_S = 300


@pytest.fixture(scope="module")
def environ(tmp_path_factory):
    """Of a Python that finds the oldest one first."""
    try:
        folder = installed(lambda _: None)
    except BuildError as e:
        cannot_run(f"ansible-core {OLDEST} is not there: {e}")
    home = tmp_path_factory.mktemp("ansible")
    path = os.pathsep.join([str(folder), str(PLAYBOOKS.parent)])
    return {**os.environ, "PYTHONPATH": path, "ANSIBLE_HOME": str(home), "ANSIBLE_NOCOLOR": "1"}


def call(environ, *arguments, limit_s=LIMIT_S):
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=PLAYBOOKS.parent, env=environ, capture_output=True, text=True, timeout=limit_s, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_every_role_promises_it():
    promised = {
        yaml.safe_load(path.read_text())["galaxy_info"]["min_ansible_version"] for path in ROLES.glob("*/meta/main.yml")
    }
    assert {OLDEST} == promised


def test_it_is_the_oldest_that_is_asked(environ):
    code, told = call(environ, "ansible", "playbook", "--version")
    assert (0, [OLDEST]) == (code, re.findall(r"core (\d+\.\d+)", told))


def test_it_understands_every_playbook(environ):
    playbooks = [str(PLAYBOOKS / name) for name in NAMES if not name.startswith("inventory")]
    inventory = str(PLAYBOOKS / "inventory-sample.yml")
    code, told = call(environ, "ansible", "playbook", "-i", inventory, "--syntax-check", *playbooks)
    assert code == 0, told
    assert len(playbooks) == told.count("playbook: ")


def test_filters_variables_and_modules_do_the_same(environ):
    tests = [f"tests/playbooks/{name}" for name in TESTS]
    code, told = call(environ, "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert code == 0, told[-3000:]


@pytest.mark.timeout(WHOLE_LIMIT_S + 10)
@pytest.mark.parametrize(("name", "those"), WHOLE)
def test_whole_playbooks_do_the_same(environ, name, those):
    options = ("-q", "-p", "no:cacheprovider", f"--timeout={WHOLE_LIMIT_S}", "-k", those)
    code, told = call(environ, "pytest", *options, f"tests/playbooks/{name}", limit_s=WHOLE_LIMIT_S)
    assert code == 0, told[-3000:]


@pytest.mark.timeout(OBJECTS_LIMIT_S + 10)
def test_the_objects_are_the_same(environ):
    options = ("-q", "-p", "no:cacheprovider", "-k", OF_OBJECTS)
    code, told = call(environ, "pytest", *options, *OBJECTS, limit_s=OBJECTS_LIMIT_S)
    assert code == 0, told[-3000:]


@pytest.mark.timeout(OBJECTS_LIMIT_S + 10)
def test_the_node_plugin_comes_to_its_hosts(environ):
    """A real run of it, in batches: before 2.19 a fact that a template makes is a text, also where it counts."""
    options = ("-q", "-p", "no:cacheprovider", "-k", OF_HOSTS)
    code, told = call(environ, "pytest", *options, "tests/playbooks/test_node_plugin_hosts.py", limit_s=OBJECTS_LIMIT_S)
    assert code == 0, told[-3000:]


LOCAL = ("-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}")
LOOK = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: readygate_scheduler_config
        tasks_from: check
      vars:
        readygate_scheduler_config_manifest: "{{ playbook_dir }}/kube-scheduler.yaml"
        readygate_scheduler_config_method: none
"""


def test_a_module_is_brought_to_a_host_and_says_what_it_has_seen(environ, tmp_path):
    """The scheduler of a host that has none: a real module, with all it imports, and a filter on its result."""
    (tmp_path / "look.yml").write_text(LOOK)
    roles = {"ANSIBLE_ROLES_PATH": str(ROLES)}
    code, told = call(environ | roles, "ansible", "playbook", *LOCAL, str(tmp_path / "look.yml"))
    assert code != 0
    assert "/configz of kube-scheduler cannot be read" in told, told
