"""What the roles of agent and extender send to the API server: security, timing, configuration."""

import json
import re
from typing import Any

import msgspec
import pytest
import yaml

from agent import settings as agent_settings
from agent.checks.catalogue import KINDS, check_section
from extender.cluster.objects import DaemonSet, placement
from extender.config import settings as extender_settings
from extender.config.gates import PodStarts
from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.playbooks.rendering import ADMIN_SERVER, PLAYBOOKS, ROLES, Objects, extender_yaml, objects, render

NS = contract.NAMESPACE
AGENT = contract.NAME_AGENT
EXTENDER = contract.NAME_EXTENDER
EXTENDER_CONTAINER, AGENT_CONTAINER = "extender", "agent"
POD_ENVIRONMENT = {"POD_NAME": "p", "POD_NAMESPACE": NS, "POD_UID": "u", "POD_IP": "fd00::7"}
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
INVENTORIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "fast": {"readygate_agent_profile": "fast", "readygate_image": "registry.example/readygate:1.2"},
    "silent": {"readygate_agent_publish_condition": False, "readygate_extender_admission_policy": False},
    "tls": {
        "readygate_extender_tls_secret": "extender-tls",
        "readygate_extender_configuration": {"listen": {"tls": {"clientNames": ["system:kube-scheduler"]}}},
    },
    "own checks": {
        "readygate_kubernetes_server": "https://192.0.2.1:6443",
        "readygate_agent_checks": [
            {"name": "dns", "tcpSocket": {"host": "10.96.0.10", "port": 53}, "periodSeconds": 7, "severity": "warn"}
        ],
        "readygate_extender_configuration": {"gates": [{"missingGraceSeconds": 60}], "log": {"level": "debug"}},
    },
}


@pytest.fixture(scope="module")
def played() -> dict[str, Objects]:
    return {
        name: objects("readygate_agent", given) | objects("readygate_extender", given | ADMIN_SERVER)
        for name, given in INVENTORIES.items()
    }


def agent_config_map(sent: Objects) -> dict[str, Any]:
    (found,) = [made for (kind, _, name), made in sent.items() if kind == "ConfigMap" and name.startswith(AGENT)]
    return found


def agent_configuration(sent: Objects) -> agent_settings.Settings:
    return agent_settings.parse(agent_config_map(sent)["data"]["agent.yaml"].encode(), POD_ENVIRONMENT)


def extender_configuration(sent: Objects) -> extender_settings.Settings:
    return extender_settings.parse(extender_yaml(sent))


def pod_spec(sent: Objects, name: str) -> dict[str, Any]:
    return sent["DaemonSet", NS, name]["spec"]["template"]["spec"]


PORT_RIGHTS = ["NET_BIND_SERVICE", "SETGID", "SETUID"]
# Folders beside /tmp that a container may write to, in memory but for that of the check `filesystem`.
WRITTEN = {EXTENDER_CONTAINER: ["/run/readygate"], AGENT_CONTAINER: ["/state", "/host/var/lib/kubelet/readygate"]}
NO_LIST = {"readygate_agent_check_profile": ""}


@pytest.mark.parametrize("name", [AGENT, EXTENDER])
def test_pods_have_no_more_privileges_than_they_need(played, name):
    spec = pod_spec(played["plain"], name)
    for container in spec["containers"]:
        takes_a_port = container["name"] == EXTENDER_CONTAINER  # then it becomes its user, without any of this
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]} | ({"add": PORT_RIGHTS} if takes_a_port else {}),
            **({"runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False} if takes_a_port else {}),
        }
        writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable == {"/tmp", *WRITTEN.get(container["name"], ())}
        assert "memory" in container["resources"]["limits"]
    # The CNI's configuration is often root's alone. The extender's user is nobody else's, in images and on hosts.
    user = {AGENT: 0, EXTENDER: 69376}[name]
    assert spec["securityContext"] == {
        "runAsUser": user,
        "runAsGroup": user,
        "runAsNonRoot": user != 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_an_agent_that_looks_at_nothing_of_roots_is_not_root():
    checks = [{"name": "a", "exec": {"command": ["true"]}}]
    given = NO_LIST | {"readygate_agent_cni_check": False, "readygate_agent_checks": checks}
    security = pod_spec(objects("readygate_agent", given), AGENT)["securityContext"]
    assert (69375, 69375, True) == (security["runAsUser"], security["runAsGroup"], security["runAsNonRoot"])


def test_with_a_secret_the_extender_speaks_tls_to_its_probes_too(played):
    sent = played["tls"]
    (extender, status_api) = pod_spec(sent, EXTENDER)["containers"]
    tls = extender_configuration(sent).listen.tls
    assert ("/etc/readygate-tls/tls.crt", ("system:kube-scheduler",)) == (tls.certificate, tls.client_names)
    assert {"HTTPS"} == {extender[probe]["httpGet"]["scheme"] for probe in PROBES}
    assert {"mountPath": "/etc/readygate-tls", "name": "tls", "readOnly": True} in extender["volumeMounts"]
    assert "tls" not in {mount["name"] for mount in status_api["volumeMounts"]}
    assert {"name": "tls", "secret": {"secretName": "extender-tls"}} in pod_spec(sent, EXTENDER)["volumes"]


def test_both_run_on_nodes_that_are_tainted_and_before_everybody_else(played):
    wanted = {AGENT: "system-node-critical", EXTENDER: "system-cluster-critical"}
    for name, priority in wanted.items():
        spec = pod_spec(played["plain"], name)
        assert (priority, [{"operator": "Exists"}]) == (spec["priorityClassName"], spec["tolerations"])


def test_the_extender_stands_beside_the_scheduler(played):
    spec = pod_spec(played["plain"], EXTENDER)
    probes = [spec["containers"][0][probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert spec["hostNetwork"]
    assert spec["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
    assert {("127.0.0.1", contract.PORT_DAEMON_SET)} == {(probe["host"], probe["port"]) for probe in probes}
    assert [probe["path"] for probe in probes] == ["/livez", "/livez", "/readyz"]


def test_people_are_served_by_a_container_of_their_own_without_a_token(played):
    spec = pod_spec(played["plain"], EXTENDER)
    extender, status_api = spec["containers"]
    assert extender["name"] == EXTENDER_CONTAINER
    assert (status_api["name"], status_api["command"][0]) == ("status-api", "readygate-status-api")
    assert not spec["automountServiceAccountToken"]
    token = "/var/run/secrets/kubernetes.io/serviceaccount"
    assert [True, False] == [
        token in {mount["mountPath"] for mount in container["volumeMounts"]} for container in (extender, status_api)
    ]
    probes = [status_api[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe")]
    assert [("127.0.0.1", 9377, "/livez")] * 2 == [(probe["host"], probe["port"], probe["path"]) for probe in probes]
    assert "readinessProbe" not in status_api
    assert [{"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}] == status_api["env"]


def test_the_states_of_the_checks_outlive_a_container_that_is_restarted(played):
    spec = pod_spec(played["plain"], AGENT)
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "state"]
    assert {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} == volume
    assert agent_configuration(played["plain"]).state_file == "/state/checks.json"


def test_both_containers_meet_at_the_socket(played):
    """The folder of the volume is everybody's; the one that the extender makes in it is its own."""
    spec = pod_spec(played["plain"], EXTENDER)
    (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "shared"]
    paths = [[m["mountPath"] for m in c["volumeMounts"] if m["name"] == "shared"] for c in spec["containers"]]
    assert (volume["emptyDir"]["medium"], paths) == ("Memory", [["/run/readygate"]] * 2)
    assert extender_configuration(played["plain"]).feed.socket == "/run/readygate/feed/socket"


def test_a_roll_out_waits_for_faults_to_show_and_stays_below_the_cap(played):
    spec = played["plain"]["DaemonSet", NS, AGENT]["spec"]
    checks = agent_configuration(played["plain"]).checks
    shows_after_s = max(check.period_seconds * check.failure_threshold for check in checks)
    assert {"rollingUpdate": {"maxUnavailable": "10%"}, "type": "RollingUpdate"} == spec["updateStrategy"]
    assert spec["minReadySeconds"] > shows_after_s


def test_the_agent_stands_behind_a_readiness_gate_that_its_policy_confines(played):
    objects = played["plain"]
    policy = objects["ValidatingAdmissionPolicy", "", f"{AGENT}-own-condition"]["spec"]
    assert pod_spec(played["plain"], AGENT)["readinessGates"] == [{"conditionType": contract.CONDITION_NODE_HEALTHY}]
    assert policy["failurePolicy"] == "Fail"
    assert [f"request.userInfo.username == 'system:serviceaccount:{NS}:{AGENT}'"] == [
        condition["expression"].strip() for condition in policy["matchConditions"]
    ]
    assert contract.CONDITION_NODE_HEALTHY in str(policy["variables"])
    assert ANNOTATION_KICK in str(objects["ValidatingAdmissionPolicy", "", f"{EXTENDER}-kick"]["spec"])
    confined = objects["ValidatingAdmissionPolicy", "", f"{EXTENDER}-condition"]["spec"]
    expressions = {each["name"]: each["expression"] for each in confined["variables"]}
    for name, sign in (("own", "=="), ("foreign", "!="), ("oldForeign", "!=")):
        assert f"c.type {sign} '{contract.CONDITION_NODE_HEALTHY}'" in expressions[name]


def test_the_agents_configuration_is_one_it_accepts(played):
    configuration = agent_configuration(played["plain"])
    check = configuration.checks[0]
    assert (configuration.mode, configuration.condition.publish, configuration.kubernetes.server) == ("pod", True, None)
    assert (check.cni.conf_dir, check.cni.bin_dirs) == ("/host/etc/cni/net.d", ("/host/opt/cni/bin",))


def test_the_extenders_configuration_is_one_it_accepts(played):
    configuration = extender_configuration(played["plain"])
    assert configuration.kubernetes.server == "https://192.0.2.11:6443", "that of the control plane host's kubeconfig"
    starts = extender_settings.Gate(
        name="starts", enforcement="shadow", severity="warn", health_pods=None, pod_starts=PodStarts()
    )
    assert (extender_settings.Gate(enforcement="shadow"), starts) == configuration.gates
    assert extender_settings.Listen(port=contract.PORT_DAEMON_SET, user=69376) == configuration.listen
    assert extender_settings.StatusApi(shares_port=True) == configuration.status_api


CNI = {"namespace": "kube-system", "labelSelector": "k8s-app=cilium"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {"health": "shadow", "starts": "shadow"}, id="a fresh install is in shadow"),
        pytest.param(
            {"readygate_enforcement": "armed"}, {"health": "armed", "starts": "armed"}, id="the inventory arms it"
        ),
        pytest.param(
            {
                "readygate_enforcement": "armed",
                "readygate_extender_configuration": {
                    "gates": [{"name": "health"}, {"name": "cni", "enforcement": "shadow", "healthPods": CNI}]
                },
            },
            {"health": "armed", "cni": "shadow"},
            id="a gate that says its own keeps it",
        ),
    ],
)
def test_the_enforcement_of_the_inventory_is_that_of_each_gate_that_says_none(given, expected):
    sent = objects("readygate_extender", given | ADMIN_SERVER)
    text = extender_yaml(sent)
    assert expected == {gate.get("name", "health"): gate["enforcement"] for gate in yaml.safe_load(text)["gates"]}


def test_what_the_user_sets_comes_before_the_profile_and_the_defaults(played):
    agent = agent_configuration(played["own checks"])
    extender = extender_configuration(played["own checks"])
    own = [check for check in agent.checks if check.name in ("cni", "dns")]
    assert [(c.name, c.period_seconds, c.failure_threshold, c.severity) for c in own] == [
        ("cni", 10, 3, "gate"),
        ("dns", 7, 3, "warn"),
    ]
    assert (
        extender.gate.missing_grace_seconds,
        extender.log.level,
        extender.gate.health_pods.daemon_set,
    ) == (60, "debug", AGENT)
    assert {"https://192.0.2.1:6443"} == {agent.kubernetes.server, extender.kubernetes.server}


@pytest.mark.parametrize(
    ("scenario", "limit_s"),
    [
        pytest.param("plain", 35, id="default profile: closed within 35 s"),
        pytest.param("fast", 8, id="fast profile: closed within 8 s"),
    ],
)
def test_a_fault_closes_its_node_in_time_with_and_without_the_condition(played, scenario, limit_s):
    checks = agent_configuration(played[scenario]).checks
    ((period_s, threshold),) = {(check.period_seconds, check.failure_threshold) for check in checks}
    probe = pod_spec(played[scenario], AGENT)["containers"][0]["readinessProbe"]
    verdict_s = period_s * threshold
    publish_s = 1
    carried_s = probe["periodSeconds"] * probe["failureThreshold"]
    assert verdict_s + max(publish_s, carried_s) <= limit_s


def test_the_moved_away_folder_is_seen_because_its_parent_is_mounted():
    spec = pod_spec(objects("readygate_agent", NO_LIST), AGENT)
    mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    folders = {v["hostPath"]["path"]: mounts[v["name"]] for v in spec["volumes"] if "hostPath" in v}
    assert folders == {"/etc/cni": "/host/etc/cni", "/opt/cni/bin": "/host/opt/cni/bin"}


@pytest.mark.parametrize(
    ("folders", "types"),
    [
        pytest.param(["/opt/cni/bin"], {"/opt/cni/bin": "Directory"}, id="one folder must be there"),
        pytest.param(
            ["/opt/cni/bin", "/usr/libexec/cni"],
            {"/opt/cni/bin": "DirectoryOrCreate", "/usr/libexec/cni": "DirectoryOrCreate"},
            id="of several a node may lack some, and its agent starts",
        ),
    ],
)
def test_a_folder_of_plugins_that_only_other_nodes_have_keeps_no_agent_from_starting(folders, types):
    spec = pod_spec(objects("readygate_agent", NO_LIST | {"readygate_agent_cni_bin_dirs": folders}), AGENT)
    mounted = {v["hostPath"]["path"]: v["hostPath"]["type"] for v in spec["volumes"] if "hostPath" in v}
    assert mounted == {"/etc/cni": "Directory", **types}


def test_agents_listen_where_the_kubelet_probes_them_whatever_the_family(played):
    assert ("::", 9375) == (
        agent_configuration(played["plain"]).listen.address,
        agent_configuration(played["plain"]).listen.port,
    )


PLACES = [
    pytest.param({}, True, id="linux on amd64"),
    pytest.param({"kubernetes.io/os": "windows"}, False, id="windows"),
    pytest.param({"kubernetes.io/arch": "s390x"}, False, id="a processor that the image is not for"),
    pytest.param({"pool": "batch"}, False, id="another pool than the one to begin with"),
]


@pytest.mark.parametrize(("labels", "expected"), PLACES)
def test_agents_and_their_gate_are_where_the_image_runs_and_the_inventory_wants_them(labels, expected):
    sent = objects("readygate_agent", {"readygate_agent_node_selector": {"pool": "gpu"}})
    daemon_set = msgspec.json.decode(json.dumps(sent["DaemonSet", NS, AGENT]), type=DaemonSet)
    node = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "pool": "gpu"} | labels
    assert (placement(daemon_set).why_not("node-1", node) == "") is expected


def test_pods_name_the_secrets_that_pull_their_image():
    given = {"readygate_image_pull_secrets": ["registry", "mirror"]}
    spec = pod_spec(objects("readygate_agent", given), AGENT)
    assert [{"name": "registry"}, {"name": "mirror"}] == spec["imagePullSecrets"]


def test_an_agents_configuration_never_changes_under_it(played):
    """An earlier agent, and one that an undone roll-out brings back, keeps the configuration it was made with."""
    seen = {}
    for name in INVENTORIES:
        kept = agent_config_map(played[name])
        volumes = pod_spec(played[name], AGENT)["volumes"]
        assert [kept["metadata"]["name"]] == [v["configMap"]["name"] for v in volumes if "configMap" in v]
        assert kept["immutable"]
        seen[kept["metadata"]["name"]] = kept["data"]
    assert len(seen) == len({each["agent.yaml"] for each in seen.values()}) > 1


def test_an_agent_that_publishes_nothing_and_asks_no_other_has_no_rights_and_no_token(played):
    sent = objects("readygate_agent", NO_LIST | INVENTORIES["silent"])
    spec = pod_spec(sent, AGENT)
    kinds = {key[0] for key in sent if key[2].startswith(AGENT)}
    assert {"ServiceAccount", "ConfigMap", "NetworkPolicy", "DaemonSet"} == kinds
    assert not spec["automountServiceAccountToken"]
    assert "readinessGates" not in spec
    assert ("ValidatingAdmissionPolicy", "", f"{EXTENDER}-kick") not in played["silent"]


def test_a_changed_configuration_rolls_the_pods(played):
    def stamp(inventory: str) -> str:
        template = played[inventory]["DaemonSet", NS, AGENT]["spec"]["template"]
        return template["metadata"]["annotations"]["readygate.dev/configuration"]

    assert len({"plain", "fast", "silent", "own checks"}) == len({stamp(name) for name in INVENTORIES})


def test_the_image_is_the_one_of_the_inventory(played):
    containers = [c for name in (AGENT, EXTENDER) for c in pod_spec(played["fast"], name)["containers"]]
    images = {container["image"] for container in containers}
    assert {"registry.example/readygate:1.2"} == images


def test_the_words_of_the_roles_are_those_of_the_contract(played):
    keys = set(played["plain"])
    assert {("Namespace", "", NS), ("DaemonSet", NS, AGENT), ("DaemonSet", NS, EXTENDER)} <= keys
    labels = played["plain"]["DaemonSet", NS, AGENT]["spec"]["template"]["metadata"]["labels"]
    assert labels == {contract.LABEL_NAME: AGENT, "app.kubernetes.io/part-of": "readygate"}


def test_the_sample_inventory_names_only_variables_that_exist():
    text = (PLAYBOOKS / "inventory-sample.yml").read_text()
    named = {w for w in text.replace(":", " ").split() if w.startswith("readygate_")}
    assert named <= {k for role in ROLES.iterdir() for k in entries(role.name)["arguments"]}


def entries(role: str) -> dict[str, Any]:
    """Of its argument specification: entry point -> options."""
    specs = yaml.safe_load((ROLES / role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return {name: spec["options"] for name, spec in specs.items()}


@pytest.mark.parametrize(
    "role", ["readygate_agent", "readygate_extender", "readygate_node", "readygate_scheduler_config"]
)
def test_every_default_has_a_place_in_the_argument_specification(role):
    defaults = set(yaml.safe_load((ROLES / role / "defaults/main.yml").read_text()))
    found = {name: set(options) for name, options in entries(role).items()}
    assert {"main", "arguments", "uninstall"} <= found.keys()
    assert dict.fromkeys(found, defaults) == found


def test_variables_that_several_roles_share_are_known_to_the_one_that_refuses_others():
    shared = r"\b(readygate_(?!agent_|extender_|node_|nodes\b|scheduler_config_|objects_)\w+)\b"
    files = [*ROLES.glob("*/defaults/main.yml"), PLAYBOOKS / "site.yml"]
    used = {name for file in files for line in file.read_text().splitlines() for name in re.findall(shared, line)}
    roles = {folder.name for folder in ROLES.iterdir()}
    assert used - roles <= entries("readygate_objects")["arguments"].keys()


def test_a_check_of_the_inventory_has_the_keys_of_the_agents_own():
    (section,) = [entries("readygate_agent")["main"]["readygate_agent_checks"]["options"]]
    assert {field.encode_name for field in msgspec.structs.fields(check_section())} == section.keys()
    inside = {kind: {f.encode_name for f in msgspec.structs.fields(row.settings)} for kind, row in KINDS.items()}
    assert inside == {kind: section[kind]["options"].keys() for kind in KINDS}
    assert list(KINDS) == list(render("readygate_agent", {})("__readygate_agent_kinds"))
