"""Each variable of the two roles that send objects is found in them, at its place; or it is one that changes none."""

from functools import cache
from typing import Any

import pytest
import yaml

from kube import contract
from tests.playbooks.rendering import ADMIN_SERVER, ROLES, objects, plain

AGENT, EXTENDER = contract.NAME_AGENT, contract.NAME_EXTENDER
CONTAINER, EXPRESSION = "pod/containers/0", "requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0"
ARCHITECTURES = f"pod/affinity/nodeAffinity/{EXPRESSION}/matchExpressions/1/values"
LIMITS = {"limits": {"memory": "77Mi"}}
LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "patch"]}
Places = dict[str, Any]
# Set all at once: variable -> a value that is not its default, and where what is to be seen.
VALUES: dict[str, tuple[Any, Places]] = {
    "agent_image": ("i:2", {f"{CONTAINER}/image": "i:2"}),
    "agent_image_pull_policy": ("Always", {f"{CONTAINER}/imagePullPolicy": "Always"}),
    "agent_image_pull_secrets": (["s"], {"pod/imagePullSecrets": [{"name": "s"}]}),
    "agent_image_architectures": (["riscv64"], {ARCHITECTURES: ["riscv64"]}),
    "agent_node_selector": ({"pool": "gpu"}, {"pod/nodeSelector": {"pool": "gpu"}}),
    "agent_check_period_seconds": (7, {f"config/checks/{n}/periodSeconds": 7 for n in (0, 1)}),
    "agent_check_failure_threshold": (8, {f"config/checks/{n}/failureThreshold": 8 for n in (0, 1)}),
    "agent_probe_period_seconds": (9, {f"{CONTAINER}/readinessProbe/periodSeconds": 9}),
    "agent_probe_failure_threshold": (11, {f"{CONTAINER}/readinessProbe/failureThreshold": 11}),
    "agent_cni_conf_dir": ("/a/x", {"config/checks/0/cni/confDir": "/host/a/x", "pod/volumes/3/hostPath/path": "/a"}),
    "agent_cni_bin_dirs": (["/b"], {"config/checks/0/cni/binDirs": ["/host/b"], "pod/volumes/4/hostPath/path": "/b"}),
    "agent_host_paths": (["/c"], {f"{CONTAINER}/volumeMounts/5/mountPath": "/host/c"}),
    "agent_checks": ([{"name": "d", "exec": {"command": ["e"]}}], {"config/checks/1/exec/command": ["e"]}),
    "agent_check_profile": ("minimal", {"config/profile/name": "minimal"}),
    "agent_leave_out": (["runtime"], {"config/profile/leaveOut": ["runtime"]}),
    "agent_kubernetes_server": ("https://k", {"config/kubernetes/server": "https://k"}),
    "agent_run_as_user": (1234, {f"pod/securityContext/runAs{who}": 1234 for who in ("User", "Group")}),
    "agent_resources": (LIMITS, {f"{CONTAINER}/resources": LIMITS}),
    "agent_log_level": ("debug", {"config/log/level": "debug"}),
    "agent_max_unavailable": ("20%", {"spec/updateStrategy/rollingUpdate/maxUnavailable": "20%"}),
    "agent_min_ready_seconds": (5, {"spec/minReadySeconds": 5}),
    "agent_metrics_from": ([{"podSelector": {}}], {"policy/ingress/0/from": [{"podSelector": {}}]}),
    "extender_image": ("i:2", {f"pod/containers/{n}/image": "i:2" for n in (0, 1)}),
    "extender_image_pull_policy": ("Always", {f"pod/containers/{n}/imagePullPolicy": "Always" for n in (0, 1)}),
    "extender_image_pull_secrets": (["s"], {"pod/imagePullSecrets": [{"name": "s"}]}),
    "extender_port": (
        9000,
        {"config/listen/port": 9000}
        | {f"{CONTAINER}/{name}Probe/httpGet/port": 9000 for name in ("startup", "liveness", "readiness")},
    ),
    "extender_kubernetes_server": ("https://k", {"config/kubernetes/server": "https://k"}),
    "extender_enforcement": ("armed", {"config/gates/0/enforcement": "armed"}),
    "extender_configuration": ({"cap": {"cluster": "7%"}}, {"config/cap/cluster": "7%"}),
    "extender_tls_secret": (
        "t",
        {"pod/volumes/2/secret/secretName": "t", f"{CONTAINER}/readinessProbe/httpGet/scheme": "HTTPS"},
    ),
    "extender_node_selector": ({"a": "b"}, {"pod/nodeSelector": {"a": "b"}}),
    "extender_resources": (LIMITS, {f"{CONTAINER}/resources": LIMITS}),
    "extender_status_api_resources": (LIMITS, {"pod/containers/1/resources": LIMITS}),
    "extender_status_api_address": ("192.0.2.7", {"config/statusApi/moreAddresses": ["192.0.2.7"]}),
    "extender_metrics_address": ("192.0.2.7", {"config/metrics": {"address": "192.0.2.7", "port": 9379}}),
}
# Each alone, for they take from what the others are seen in.
SWITCHES: dict[str, tuple[Any, Places]] = {
    "agent_form": ("node", {"kinds/DaemonSet": None, "kinds/NetworkPolicy": None}),
    "agent_profile": ("fast", {"config/checks/0/periodSeconds": 2, f"{CONTAINER}/readinessProbe/periodSeconds": 1}),
    "agent_cni_check": (False, {"config/checks": [], "config/profile/leaveOut": ["cni"]}),
    "agent_publish_condition": (
        False,
        {"kinds/Role": 1, "pod/readinessGates": None, "config/condition/publish": False},
    ),
    "agent_speaker": ("node", {"spec/template/metadata/annotations/readygate.dev~speaker": "node"}),
    "agent_admission_policy": (False, {"kinds/ValidatingAdmissionPolicy": None}),
    "agent_heartbeat": (True, {"kinds/ValidatingAdmissionPolicy": 2, "role/1": LEASES}),
    "extender_form": ("static", {"kinds/DaemonSet": None, "kinds/ConfigMap": None}),
    "extender_admission_policy": (False, {"kinds/ValidatingAdmissionPolicy": None}),
}
# How the play goes about it, or what the static pod is beside its manifest.
OF_THE_PLAY = {
    "agent_min_available_percent": 1,
    "agent_rollout_timeout_seconds": 1,
    "agent_undo": False,
    "agent_trial": False,
    "agent_trial_timeout_seconds": 1,
    "agent_kubeconfig": "/k",
    "extender_min_available_percent": 1,
    "extender_rollout_timeout_seconds": 1,
    "extender_manifests": "/m",
    "extender_node_name": "n",
    "extender_static_timeout_seconds": 1,
    "extender_static_silence_seconds": 1,
    "extender_kubeconfig": "/k",
}
ALL_VALUES = tuple(VALUES)


def role_of(variable: str) -> str:
    return variable.partition("_")[0]


@cache
def seen(role: str, given: tuple[str, ...] = ()) -> dict[str, Any]:
    """What is sent with these variables set, by where to look: for the configuration, for the pods, ..."""
    wanted = {**{name: each[0] for name, each in (VALUES | SWITCHES).items()}, **OF_THE_PLAY}
    of_inventory = {f"readygate_{name}": wanted[name] for name in given if role_of(name) == role}
    sent = {key: plain(each) for key, each in objects(f"readygate_{role}", ADMIN_SERVER | of_inventory).items()}
    found: dict[str, Any] = {"all": sent, "kinds": {}}
    for (kind, _, _), one in sent.items():
        found["kinds"][kind] = found["kinds"].get(kind, 0) + 1
        if kind == "DaemonSet":
            found |= {"spec": one["spec"], "pod": one["spec"]["template"]["spec"]}
        elif kind == "ConfigMap":
            found["config"] = yaml.safe_load(one["data"][f"{role}.yaml"])
        elif kind == "NetworkPolicy":
            found["policy"] = one["spec"]
        elif kind == "Role":
            found["role"] = one["rules"]
    return found


def at(found: Any, path: str) -> Any:
    """None where there is nothing; `~` is a slash in a key."""
    for word in path.split("/"):
        try:
            found = found[int(word) if isinstance(found, list) else word.replace("~", "/")]
        except (KeyError, IndexError):
            return None
    return found


def expect(places: Places, role: str, given: tuple[str, ...]) -> None:
    assert places == {path: at(seen(role, given), path) for path in places}
    assert [] == [path for path, value in places.items() if value == at(seen(role), path)], "so without it, too"


@pytest.mark.parametrize("variable", VALUES)
def test_a_value_is_found_at_its_places(variable):
    expect(VALUES[variable][1], role_of(variable), ALL_VALUES)


@pytest.mark.parametrize("variable", SWITCHES)
def test_a_switch_puts_in_or_takes_out(variable):
    expect(SWITCHES[variable][1], role_of(variable), (variable,))


@pytest.mark.parametrize("role", ["agent", "extender"])
def test_what_is_of_the_play_changes_no_object(role):
    assert seen(role)["all"] == seen(role, tuple(OF_THE_PLAY))["all"]


@pytest.mark.parametrize("role", ["agent", "extender"])
def test_every_variable_is_one_of_these(role):
    read = yaml.safe_load((ROLES / f"readygate_{role}" / "meta" / "argument_specs.yml").read_text())
    names = sorted(read["argument_specs"]["main"]["options"])
    assert names == sorted(f"readygate_{one}" for one in [*VALUES, *SWITCHES, *OF_THE_PLAY] if role_of(one) == role)
