"""What the roles ship of the chart and what the variables change of it, put together by kubectl on a host."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml
from ansible.utils.unsafe_proxy import wrap_var

from kube import contract
from tests.playbooks.modules import module
from tests.playbooks.rendering import (
    ADMIN_SERVER,
    ROLES,
    extender_yaml,
    keyed,
    kustomized,
    named,
    objects,
    plain,
    render,
)
from tests.playbooks.test_node_plugin import HOST
from tools.testbed.shared.tools import KUSTOMIZE, built

NS = contract.NAMESPACE
AGENT, EXTENDER = ("DaemonSet", NS, contract.NAME_AGENT), ("DaemonSet", NS, contract.NAME_EXTENDER)
LIMIT_S = 100
EVERYTHING = {"readygate_agent_heartbeat": True, "readygate_agent_checks": [{"name": "pods", "podNetwork": {}}]}
# What YAML, Jinja, kustomize, a shell or a JSON patch might take for its own.
ODD = [
    pytest.param("$(HOST_IP) ${HOME} $PATH `id`", id="of a shell"),
    pytest.param("{{ 1 + 1 }} {% if x %} {# y #}", id="of Jinja"),
    pytest.param("\"quoted\" 'twice' \\n \\", id="quotes and backslashes"),
    pytest.param("two\nlines: [a, b]\n---\nkind: Secret\n", id="lines, and another document"),
    pytest.param("# no comment", id="a comment"),
    pytest.param("- op: remove\n  path: /spec", id="a patch"),
    pytest.param("yes", id="a word that is a bool"),
    pytest.param("0755", id="a number"),
    pytest.param("größe ✓", id="beyond ASCII"),
    pytest.param("😀", id="beyond 16 bits"),
    pytest.param("a\u2028b\u2029c", id="what ends a line beyond ASCII"),
    pytest.param("x" * 9000, id="long"),
]


@pytest.mark.parametrize("odd", ODD)
def test_a_value_arrives_as_it_is_whatever_is_in_it(odd):
    odd = wrap_var(odd)  # as `!unsafe` in an inventory: else the oldest Ansible takes it for a template
    selector = {"example.com/a": odd}
    checks = [{"name": "a", "exec": {"command": ["echo", odd]}}]
    metrics = [{"podSelector": {"matchLabels": {"a": odd}}}]
    given = {
        "readygate_image": odd,
        "readygate_image_pull_secrets": [odd],
        "readygate_agent_node_selector": selector,
        "readygate_agent_checks": checks,
        "readygate_agent_metrics_from": metrics,
        "readygate_agent_resources": {"limits": {"example.com/b": odd}},
        "readygate_extender_tls_secret": odd,
        "readygate_extender_node_selector": selector,
        "readygate_extender_configuration": {"gates": [{"name": odd}]},
    }
    sent = objects("readygate_agent", given) | objects("readygate_extender", given | ADMIN_SERVER)
    pods = {key: sent[key]["spec"]["template"]["spec"] for key in (AGENT, EXTENDER)}
    for pod in pods.values():
        assert (odd, [{"name": odd}]) == (pod["containers"][0]["image"], pod["imagePullSecrets"])
        assert selector == pod["nodeSelector"]
    assert {"limits": {"example.com/b": odd}} == pods[AGENT]["containers"][0]["resources"]
    assert odd == next(v["secret"]["secretName"] for v in pods[EXTENDER]["volumes"] if "secret" in v)
    assert metrics == sent["NetworkPolicy", NS, contract.NAME_AGENT]["spec"]["ingress"][0]["from"]
    (config,) = [volume["configMap"]["name"] for volume in pods[AGENT]["volumes"] if "configMap" in volume]
    text = sent["ConfigMap", NS, config]["data"]["agent.yaml"]
    assert ["echo", odd] == yaml.safe_load(text)["checks"][1]["exec"]["command"]
    text = extender_yaml(sent)
    assert odd == yaml.safe_load(text)["gates"][0]["name"]


@pytest.mark.parametrize("orders", ["readygate-orders", "mine", None])
def test_orders_are_read_by_the_name_that_they_have(orders):
    gate = {"healthPods": {"namespace": NS, "labelSelector": "a=b"}}
    given = {"readygate_extender_configuration": {"orders": {"configMap": orders}, "gates": [gate]}}
    rules = objects("readygate_extender", given | ADMIN_SERVER)["Role", NS, contract.NAME_EXTENDER]["rules"]
    names = [rule["resourceNames"] for rule in rules if "configmaps" in rule["resources"]]
    assert ([[orders]] if orders else []) == names


@pytest.mark.parametrize("role", ["agent", "node"])
def test_the_figures_of_a_ready_made_list_are_numbers_under_every_ansible(role):
    given = HOST | {f"readygate_{role}_check_profile": "default"}
    text = render(f"readygate_{role}", given)("lookup('ansible.builtin.template', 'agent.yaml.j2')")
    assert (10, 3) == tuple(yaml.safe_load(text)["profile"][key] for key in ("periodSeconds", "failureThreshold"))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="no heartbeat"),
        pytest.param(EVERYTHING, id="all of it"),
        pytest.param(
            {"readygate_agent_heartbeat": True, "readygate_agent_check_profile": ""}, id="no check of the pod network"
        ),
        pytest.param({"readygate_agent_admission_policy": False}, id="no policies"),
        pytest.param({"readygate_agent_publish_condition": False}, id="no condition"),
        pytest.param({"readygate_agent_form": "node"}, id="a service alone"),
    ],
)
def test_what_a_setting_does_not_send_any_more_is_deleted(given):
    sent = objects("readygate_agent", given)
    everything = objects("readygate_agent", EVERYTHING)
    everything = {key: each for key, each in everything.items() if key[0] != "ConfigMap"}
    made = {"__readygate_objects_made": {"manifest": yaml.safe_dump_all(map(plain, sent.values()))}}
    assert everything.keys() - sent.keys() == set(named("readygate_agent", given | made, "unwanted"))


@pytest.mark.parametrize("role", ["readygate_agent", "readygate_extender"])
def test_what_is_deleted_with_readygate_is_all_that_is_shipped_of_the_chart(role):
    shipped = plain(render(role, ADMIN_SERVER)(f"__{role}_shipped"))
    sent = objects(role, EVERYTHING | ADMIN_SERVER)
    elsewhere = {key for key in sent if key[1] not in ("", NS)}  # found by their labels
    ours = {key for key in keyed(yaml.safe_dump_all(shipped)) if key[0] != "ConfigMap"}
    assert ours == {key for key in sent if key[0] != "ConfigMap"} - elsewhere


def test_pods_come_after_all_that_confines_them():
    files = render("readygate_agent", {})("__readygate_agent_files")
    assert "DaemonSet" == [each["kind"] for each in yaml.safe_load_all(kustomized(files))][-1]


@pytest.fixture
def overlay(tmp_path, monkeypatch):
    """The module's work, with a kubectl that is as its words say."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "made").mkdir()
    made = module("readygate_objects", "readygate_overlay").made

    def call(script: str, **files: str) -> str:
        program = tmp_path / "bin" / "kubectl"
        program.write_text(script)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        text: str = made(files, str(tmp_path / "made"))
        return text

    return call


def test_the_module_gives_kubectl_a_folder_with_the_files(overlay):
    script = f'#!/bin/sh\n[ "$1" = kustomize ] && exec {built(KUSTOMIZE)} build "$2"\n'
    files = {
        "kustomization.yaml": "resources: [a.yaml]",
        "a.yaml": "{kind: A, apiVersion: v1, metadata: {name: größe}}",
    }
    assert {"kind": "A", "apiVersion": "v1", "metadata": {"name": "größe"}} == yaml.safe_load(overlay(script, **files))


@pytest.mark.parametrize(
    ("script", "files", "said"),
    [
        pytest.param("#!/bin/sh\necho no such option >&2; exit 1\n", {}, "no such option", id="one that cannot"),
        pytest.param("#!/bin/sh\nexit 3\n", {}, "ended with code 3", id="one that says nothing"),
        pytest.param("#!/bin/sh\n", {}, "has rendered nothing", id="one that says nothing and ends well"),
        pytest.param("#!/bin/sh\nprintf '\\377'\n", {}, "no text", id="one that says what is no text"),
        pytest.param("#!/bin/sh\n", {"../a": ""}, r"\.\./a is outside", id="a file that would leave the folder"),
    ],
)
def test_what_cannot_be_made_is_said(overlay, script, files, said):
    with pytest.raises(OSError, match=said):
        overlay(script, **files)


PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  roles: [readygate_agent]
"""
KUBECTL = """#!/bin/sh
case "$1$3" in
kustomize*) exec {kustomize} build "$2";;
*version) echo '{{"serverVersion": {{"gitVersion": "v1.36.3"}}}}';;
*diff) cat > {folder}/diff; echo 'namespaces "readygate-system" not found' >&2; exit 2;;
*apply) cat > {folder}/apply;;
*) cat > /dev/null;;
esac
"""


@pytest.mark.parametrize(("options", "applied"), [(["--diff"], True), (["--check", "--diff"], False)])
def test_in_a_play_what_kubectl_makes_is_sent_and_shown_and_no_folder_stays(tmp_path, options, applied):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").write_text(KUBECTL.format(kustomize=built(KUSTOMIZE), folder=tmp_path))
    (tmp_path / "bin" / "kubectl").chmod(0o755)
    (tmp_path / "play.yml").write_text(PLAY)
    odd = "{{ 1 + 1 }} $(HOST_IP) \"' ✓\n"
    given = {"readygate_agent_form": "both", "readygate_agent_trial": False, "readygate_image": "i"}
    given["readygate_agent_resources"] = {"limits": {"example.com/a": {"__ansible_unsafe": odd}}}
    environ = {
        **os.environ,
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "ANSIBLE_HOME": str(tmp_path / "home"),
        "ANSIBLE_REMOTE_TMP": str(tmp_path / "remote"),
        "ANSIBLE_ROLES_PATH": str(ROLES),
        "ANSIBLE_NOCOLOR": "1",
    }
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "localhost,", *options, str(tmp_path / "play.yml")]
    command += ["-e", f"ansible_python_interpreter={sys.executable}", "-e", json.dumps(given)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sent = keyed((tmp_path / "apply").read_text())  # in check mode by --dry-run=client, for its fields
    assert sent == keyed((tmp_path / "diff").read_text())
    assert odd == sent[AGENT]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["example.com/a"]
    assert all(f"+kind: {kind}" in done.stdout for kind, _, _ in sent)
    assert applied == bool(re.search(r"Apply \| Apply the objects\] \*+\nchanged", done.stdout))
    assert [] == list((tmp_path / "remote").iterdir())
