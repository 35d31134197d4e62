"""The collection of `make collection`: installed where there is no checkout, its playbooks work by their names."""

import os
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.playbooks import collection
from tests.playbooks.rendering import IMAGE, PLAYBOOKS, keyed, render
from tests.playbooks.test_overlay import AGENT, KUBECTL
from tools.testbed.shared.tools import KUSTOMIZE, built

AGENTS = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [readygate.readygate.readygate_agent]
"""
NAMES = ("site", "check", "detach", "prepare_control_plane", "uninstall", "node_plugin", "node_plugin_uninstall")
LOOK = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.include_role:
        name: readygate.readygate.readygate_scheduler_config
        tasks_from: check
      vars:
        readygate_scheduler_config_manifest: "{{ playbook_dir }}/kube-scheduler.yaml"
        readygate_scheduler_config_method: none
"""


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Calls Ansible in a folder where nothing but the collection is."""
    folder = tmp_path_factory.mktemp("collection")
    for name in ("tree", "archive", "installed", "elsewhere"):
        (folder / name).mkdir()
    # Else Ansible looks beside itself too, and in the user's home.
    given = {"ANSIBLE_COLLECTIONS_PATH": str(folder / "installed"), "ANSIBLE_HOME": str(folder / "home")}
    environ = {**os.environ, **given, "ANSIBLE_NOCOLOR": "1"}

    def run(*arguments, **more):
        command, where = [sys.executable, "-m", "ansible", *arguments], folder / "elsewhere"
        done = subprocess.run(
            command, cwd=where, env=environ | more, capture_output=True, text=True, timeout=100, check=False
        )
        return done.returncode, done.stdout + done.stderr

    archive = collection.built(folder / "tree", folder / "archive")
    code, told = run("galaxy", "collection", "install", "--offline", "-p", str(folder / "installed"), str(archive))
    assert code == 0, told
    return run


def test_its_version_is_readygates():
    project = tomllib.loads((PLAYBOOKS.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == yaml.safe_load((PLAYBOOKS / "galaxy.yml").read_text())["version"]


def test_the_program_of_the_static_pod_finds_what_it_shares_in_a_checkout_and_in_a_collection(tmp_path):
    for roles in (PLAYBOOKS / "roles", collection.laid_out(tmp_path) / "roles"):
        value = render("readygate_extender", {"role_path": str(roles / "readygate_objects")})
        written = {path.rpartition("/")[2] for path in value("__readygate_extender_programs | map(attribute='path')")}
        assert {"static_pod.py", "host_io.py", "kubelet.py"} <= written, roles


def test_every_playbook_is_understood_by_its_name(call):
    inventory = str(PLAYBOOKS / "inventory-sample.yml")
    named = [f"readygate.readygate.{name}" for name in NAMES]
    code, told = call("playbook", "-i", inventory, "--syntax-check", *named)
    assert code == 0, told
    assert len(NAMES) == told.count("playbook: ")


def test_variables_are_checked_by_what_the_roles_say_of_them(call):
    inventory = str(PLAYBOOKS / "inventory-sample.yml")
    more = ("-e", "readygate_agent_chekcs=[]", "--tags=always", "--skip-tags=end_of_run")
    code, told = call("playbook", "-i", inventory, *more, "readygate.readygate.site")
    assert code != 0
    assert "readygate_agent_chekcs" in told, told


def test_a_module_and_a_filter_of_it_work_on_a_host(call, tmp_path):
    (tmp_path / "look.yml").write_text(LOOK)
    local = ("-i", "localhost,", "-e", f"ansible_python_interpreter={sys.executable}")
    code, told = call("playbook", *local, str(tmp_path / "look.yml"))
    assert code != 0
    assert "/configz of kube-scheduler cannot be read" in told, told


def test_what_variables_say_comes_into_the_objects_that_it_sends(call, tmp_path):
    """By a filter that its templates call by its whole name."""
    (tmp_path / "kubectl").write_text(KUBECTL.format(kustomize=built(KUSTOMIZE), folder=tmp_path))
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "agents.yml").write_text(AGENTS)
    given = [f"ansible_python_interpreter={sys.executable}", f"readygate_image={IMAGE}", "readygate_agent_trial=false"]
    local = ["-i", "localhost,", *(word for each in given for word in ("-e", each))]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    code, told = call("playbook", *local, "--check", str(tmp_path / "agents.yml"), PATH=path)
    assert code == 0, told
    (container,) = keyed((tmp_path / "apply").read_text())[AGENT]["spec"]["template"]["spec"]["containers"]
    assert IMAGE == container["image"]


def test_it_has_what_the_roles_ship_of_the_chart(tmp_path):
    collection.laid_out(tmp_path)
    shipped = {path.relative_to(PLAYBOOKS): path.read_text() for path in PLAYBOOKS.glob("roles/*/files/deploy/*")}
    assert shipped == {path.relative_to(tmp_path): path.read_text() for path in tmp_path.glob("roles/*/files/deploy/*")}
    assert shipped
