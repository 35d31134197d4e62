"""The two forms of the extender: where they are the same, where not, and who may take whose place."""

import ast
import hashlib
from typing import Any

import pytest
import yaml

from extender.config import settings as extender_settings
from kube import contract
from tests.playbooks.rendering import ADMIN_SERVER, ROLES, extender_yaml, keyed, named, objects, render, trust

NS = contract.NAMESPACE
EXTENDER = contract.NAME_EXTENDER
ROLE = "readygate_extender"
FOLDER = "/etc/kubernetes/readygate-extender"
ENFORCE = {"readygate_scheduler_config_mode": "enforce"}
STATIC = {"readygate_extender_form": "static"}
FILES = ROLES / ROLE / "files"
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
RENEWED = {"__readygate_extender_revision": "abc"}


def static_pod(**given: Any) -> dict[str, Any]:
    text = render(ROLE, STATIC | ADMIN_SERVER | given)("lookup('ansible.builtin.template', 'static-pod.yaml.j2')")
    return yaml.safe_load(text)


def configuration(**given: Any) -> extender_settings.Settings:
    return extender_settings.parse(render(ROLE, STATIC | ADMIN_SERVER | given)("__readygate_extender_content"))


def daemon_set_spec(**given: Any) -> dict[str, Any]:
    sent = objects(ROLE, {"readygate_extender_form": "daemonset"} | ADMIN_SERVER | given)
    return sent["DaemonSet", NS, EXTENDER]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, ("daemonset", contract.PORT_DAEMON_SET), id="protect: the cluster's own way"),
        pytest.param(
            ENFORCE, ("static", contract.PORT_STATIC), id="enforce: what needs no scheduler, at a port of its own"
        ),
        pytest.param(STATIC, ("static", contract.PORT_STATIC), id="static where somebody wants it"),
        pytest.param(STATIC | {"readygate_extender_port": 9000}, ("static", 9000), id="a port that somebody chose"),
        pytest.param({"readygate_extender_port": 9376}, ("daemonset", 9376), id="the DaemonSet's of before, chosen"),
    ],
)
def test_the_form_follows_from_the_mode_and_the_port_from_the_form(given, expected):
    value = render(ROLE, given)
    assert expected == (value("readygate_extender_form"), int(value("readygate_extender_port")))


def without(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def test_both_forms_run_the_same_containers():
    """But for the configuration's file, the port, and how they come to their credentials."""
    static, pod = static_pod()["spec"], daemon_set_spec()
    for ours, theirs in zip(static["containers"], pod["containers"], strict=True):
        differs = {"command", "env", "securityContext", "volumeMounts", *PROBES}
        assert without(ours, *differs) == without(theirs, *differs)
        assert (ours["command"][:2], ours["command"][2].rpartition("/")[0]) == (theirs["command"][:2], "/etc/readygate")
        for probe in PROBES:
            if probe in theirs:
                assert without(ours[probe], "httpGet") == without(theirs[probe], "httpGet")
    same = ("hostNetwork", "enableServiceLinks", "securityContext", "terminationGracePeriodSeconds")
    assert [static[key] for key in same] == [pod[key] for key in same]
    assert static["containers"][1]["securityContext"] == pod["containers"][1]["securityContext"]


def test_a_static_pod_names_no_object_of_the_api_server():
    """The kubelet refuses one that does, from a feature gate on that is on by default."""
    spec = static_pod(readygate_extender_tls_secret="s")["spec"]
    assert {"hostPath", "emptyDir"} == {key for volume in spec["volumes"] for key in volume if key != "name"}
    assert [] == [key for key in ("serviceAccountName", "serviceAccount", "imagePullSecrets") if key in spec]
    paths = {volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    assert {f"{FOLDER}/{name}" for name in ("config", "credentials", "tls")} == paths


def test_below_1024_it_starts_as_root_with_three_capabilities_and_becomes_its_user():
    extender, status_api = static_pod()["spec"]["containers"]
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "SETGID", "SETUID"]},
    } == extender["securityContext"]
    assert "runAsUser" not in status_api["securityContext"]
    listen = configuration().listen
    assert ("127.0.0.1", contract.PORT_STATIC, 69376) == (listen.address, listen.port, listen.user)


@pytest.mark.parametrize("form", ["static", "daemonset"])
def test_from_1024_on_it_is_no_root_at_any_time(form):
    given = {"readygate_extender_port": 9000, "readygate_extender_form": form}
    spec = static_pod(**given)["spec"] if form == "static" else daemon_set_spec(**given)
    extender, status_api = spec["containers"]
    assert (status_api["securityContext"], 69376) == (extender["securityContext"], spec["securityContext"]["runAsUser"])
    assert spec["securityContext"]["runAsNonRoot"]
    assert {9000} == {extender[probe]["httpGet"]["port"] for probe in PROBES}
    assert configuration(**given).listen.user is None


def test_a_daemon_set_below_1024_does_the_same_as_a_static_pod():
    assert (
        static_pod()["spec"]["containers"][0]["securityContext"]
        == (daemon_set_spec()["containers"][0]["securityContext"])
    )
    text = extender_yaml(objects(ROLE, ADMIN_SERVER))
    listen = extender_settings.parse(text).listen
    assert (contract.PORT_DAEMON_SET, 69376) == (listen.port, listen.user)


def test_no_user_of_the_host_takes_the_port_of_either_form_and_neither_takes_the_others():
    assert 2 == len({contract.PORT_DAEMON_SET, contract.PORT_STATIC})
    assert max(contract.PORT_DAEMON_SET, contract.PORT_STATIC) < 1024 <= contract.PORT_UNPRIVILEGED


THREE_HOSTS = {"groups": {"control_plane": ["a", "b", "c"]}, "ansible_play_hosts_all": ["a", "b", "c"]}
SCHEDULERS_TAG = "readygate_scheduler_config"


@pytest.mark.parametrize(
    ("today", "given", "run", "expected"),
    [
        pytest.param("", {}, {"ansible_run_tags": [ROLE]}, True, id="there is none yet"),
        pytest.param("338", {}, {"ansible_run_tags": [ROLE]}, True, id="the port stays"),
        pytest.param("9376", {"readygate_extender_port": 9376}, {"ansible_run_tags": [ROLE]}, True, id="it is kept"),
        pytest.param("9376", {}, {"ansible_run_tags": ["all"]}, True, id="a whole run: every scheduler follows"),
        pytest.param("9376", {}, {"ansible_run_tags": [ROLE, SCHEDULERS_TAG]}, True, id="with the schedulers' part"),
        pytest.param("9376", {}, {"ansible_run_tags": [ROLE]}, False, id="without it"),
        pytest.param("9376", {}, {"ansible_skip_tags": [SCHEDULERS_TAG]}, False, id="with it skipped"),
        pytest.param("9376", {}, {"ansible_play_hosts_all": ["a"]}, False, id="with hosts left out"),
    ],
)
def test_a_daemon_sets_port_changes_only_where_every_scheduler_follows(today, given, run, expected):
    tasks = {task["name"]: task for task in yaml.safe_load((ROLES / ROLE / "tasks" / "preflight.yml").read_text())}
    task = tasks["Preflight | Check that every scheduler follows a change of the port"]
    that = task["ansible.builtin.assert"]["that"]
    seen = {"__readygate_extender_asked_at": {"stdout": today}}
    assert expected == bool(render(ROLE, ADMIN_SERVER | given | THREE_HOSTS | run | seen)(f"({that})"))


def test_its_credentials_are_files_that_only_the_extender_sees():
    given = configuration().kubernetes
    assert ("/etc/readygate-credentials/token", "/etc/readygate-credentials/ca.crt") == (
        given.token_file,
        given.ca_file,
    )
    assert given.server == "https://192.0.2.11:6443"
    extender, status_api = static_pod()["spec"]["containers"]
    seen = [{mount["name"]: mount.get("readOnly") for mount in one["volumeMounts"]} for one in (extender, status_api)]
    assert (True, True, False) == (seen[0]["credentials"], seen[0]["config"], "credentials" in seen[1])


def test_both_forms_let_people_listen_at_the_same_port_meanwhile():
    assert configuration().status_api.shares_port
    text = extender_yaml(objects(ROLE, ADMIN_SERVER))
    assert extender_settings.parse(text).status_api.shares_port


def test_the_static_form_sends_neither_daemon_set_nor_config_map():
    both, static = objects(ROLE, ADMIN_SERVER), objects(ROLE, STATIC | ADMIN_SERVER)
    name = f"{EXTENDER}-{hashlib.sha256(extender_yaml(both).encode()).hexdigest()[:10]}"
    assert {("DaemonSet", NS, EXTENDER), ("ConfigMap", NS, name)} == set(both) - set(static)
    settled = {kind for kind, *_ in keyed((FILES / "deploy" / "pods.yaml").read_text())}
    assert {"DaemonSet", "ConfigMap"} == settled, "what settling deletes, configurations by their labels"
    (config,) = [volume["configMap"] for volume in daemon_set_spec()["volumes"] if "configMap" in volume]
    assert {"name": name} == config


def test_every_configuration_of_the_daemon_set_goes_with_it_and_no_other_config_map():
    tasks = {task["name"]: task for task in yaml.safe_load((ROLES / ROLE / "tasks" / "settle_static.yml").read_text())}
    argv = tasks["Settle | Delete its configurations"]["ansible.builtin.command"]["argv"]
    (chosen,) = [word for word in render(ROLE, STATIC)(argv[3:-3]) if word.startswith("--selector=")]
    labels = objects(ROLE, ADMIN_SERVER)
    (own,) = [one["metadata"]["labels"] for (kind, *_), one in labels.items() if kind == "ConfigMap"]
    assert chosen == "--selector=" + ",".join(f"{key}={value}" for key, value in sorted(own.items()))


def test_one_account_has_the_rights_of_both_forms():
    """So its token on a host can do what the pod's can, and nothing more."""
    static = objects(ROLE, STATIC | ADMIN_SERVER)
    rbac = {key: one for key, one in objects(ROLE, ADMIN_SERVER).items() if "Role" in key[0] or "Policy" in key[0]}
    assert rbac
    assert rbac == {key: static[key] for key in rbac}


def test_a_change_of_anything_is_another_revision():
    def revision(**given: Any) -> str:
        return render(ROLE, STATIC | ADMIN_SERVER | given)("__readygate_extender_revision")

    changes: list[dict[str, Any]] = [
        {},
        {"readygate_image": "registry.example/readygate:2"},
        {"readygate_enforcement": "armed"},
        {"readygate_extender_resources": {}},
        {"readygate_extender_port": 338},
    ]
    assert len(changes) == len({revision(**given) for given in changes})
    assert revision() == revision()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, "cp-1", id="the host's own name where nobody has asked"),
        pytest.param(
            {"__readygate_scheduler_config_node": "ip-10-0-0-1.internal"}, "ip-10-0-0-1.internal", id="the kubelet's"
        ),
        pytest.param(
            {"__readygate_scheduler_config_node": "a", "readygate_extender_node_name": "b"},
            "b",
            id="what the inventory says",
        ),
    ],
)
def test_the_static_form_goes_by_the_name_of_the_hosts_node(given, expected):
    facts = {"ansible_facts": {"nodename": "CP-1"}}
    (pod,) = named(ROLE, STATIC | ADMIN_SERVER | facts | given, "trial").values()
    assert expected == pod["spec"]["nodeName"]


@pytest.mark.parametrize(
    ("verdict", "code", "answers", "told"),
    [
        pytest.param('{"put": true, "cause": "it answers"}', 0, True, "it answers", id="it answers"),
        pytest.param('{"put": false, "cause": "it is back"}', 1, False, "it is back", id="it was put back"),
        pytest.param("", 1, False, "the program on the host was interrupted", id="the program was killed"),
    ],
)
def test_what_came_of_the_change_is_told_also_where_its_program_was_killed(verdict, code, answers, told):
    tasks = {task["name"]: task for task in yaml.safe_load((ROLES / ROLE / "tasks" / "swap.yml").read_text())}
    task = tasks["Swap | Check that the new extender answers"]
    registered = {"__readygate_extender_verdict": {"stdout": verdict}, "__readygate_extender_swapped": {"rc": code}}
    over = registered | {key: trust(text) for key, text in task["vars"].items()}
    value = render(ROLE, STATIC | ADMIN_SERVER, over=over)
    assert answers == all(value(f"({condition})") for condition in task["ansible.builtin.assert"]["that"])
    assert value("__readygate_extender_result.cause").startswith(told)


@pytest.mark.parametrize("name", ["credentials.py", "static_pod.py"])
def test_the_programs_on_the_host_are_read_by_the_oldest_python_there(name):
    ast.parse((FILES / name).read_text(), feature_version=(3, 6))


@pytest.mark.parametrize(("names", "expected"), [([], None), (["a", "b"], [{"name": "a"}, {"name": "b"}])])
def test_a_daemon_sets_image_is_pulled_with_the_inventorys_secrets(names, expected):
    assert expected == daemon_set_spec(readygate_image_pull_secrets=names).get("imagePullSecrets")


def test_what_an_earlier_change_has_said_is_forgotten_before_the_next_begins():
    """Else a change that systemd does not even begin would be told by the words of the last one."""
    tasks = yaml.safe_load((ROLES / ROLE / "tasks" / "swap.yml").read_text())
    words = [str(task) for task in tasks]
    (begun,) = [number for number, text in enumerate(words) if "systemd-run" in text]
    forgotten = [n for n, text in enumerate(words) if "readygate_objects_forgotten" in text and "verdict.json" in text]
    assert [True] == [number < begun for number in forgotten]
