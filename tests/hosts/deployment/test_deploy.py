"""site.yml over SSH on a fresh kubeadm cluster: what it changes, what it leaves alone, and that it does so once."""

import json
import re
import subprocess
import sys

import pytest
import yaml

from agent.wire.condition import REASON_CHECKS_PASSED
from extender.outlets.kick import ANNOTATION_KICK
from kube import contract
from tests.hosts.deployment import readme
from tests.hosts.deployment.conftest import (
    KUBEADM_CONFIG,
    MANIFESTS,
    agents,
    namespaces,
    scheduler_files,
)
from tests.hosts.waiting import wait_for
from tools.testbed.shared.api import ApiError, condition

NS = contract.NAMESPACE
FOLDER = "/etc/kubernetes/readygate"


def test_the_image_is_built_and_put_on_each_host_as_the_readme_says(hosts, checkout, image):
    hosts.ssh("worker-2", f"ctr --namespace k8s.io images rm {image}")
    for line in (readme.IMAGE, readme.LOAD):
        done = checkout.run(line)
        assert done.code == 0, done.told()
    for host in hosts.names:
        assert image in hosts.ssh(host, "ctr --namespace k8s.io images ls --quiet").stdout.split()


def test_check_mode_says_what_would_change_and_changes_nothing(hosts, api, untouched, rehearsed):
    assert rehearsed.code == 0, rehearsed.told()
    assert rehearsed.changed >= 4  # agent, extender, scheduler, kubeadm's ConfigMap
    assert "+    - --config=/etc/kubernetes/readygate/kube-scheduler-" in rehearsed.output
    kinds = re.findall(r'"\+kind: (\w+)"', rehearsed.output)
    assert {"Namespace", "DaemonSet", "ConfigMap", "Role", "NetworkPolicy", "ValidatingAdmissionPolicy"} <= set(kinds)
    assert kinds.count("DaemonSet") == 2, "every object is shown, though there is no namespace yet to try them in"
    if NS not in namespaces(api):  # else `deployed` has run since
        assert untouched == scheduler_files(hosts, api)
        assert hosts.ssh("control-1", "ls -A /etc/kubernetes").stdout.count("readygate") == 0


def test_the_play_ends_well_with_an_agent_on_each_node_that_says_healthy(hosts, api, deployed):
    assert deployed.changed > 0
    seen = agents(api)
    assert sorted(hosts.names) == sorted(seen)
    for pod in seen.values():
        for kind in (contract.CONDITION_NODE_HEALTHY, contract.CONDITION_READY):
            assert contract.STATUS_TRUE == condition(pod, kind).get("status"), (kind, pod["status"])


@pytest.mark.usefixtures("deployed")
def test_status_shows_each_node_open_as_the_readme_says(hosts, checkout):
    shown = checkout.run(readme.STATUS)
    assert shown.code == 0, shown.output
    assert f"{len(hosts.names)} of {len(hosts.names)} nodes open" in shown.output


@pytest.mark.usefixtures("deployed")
def test_the_extender_answers_beside_the_scheduler_and_only_there(hosts):
    """So does the status API."""
    for port in (contract.PORT_DAEMON_SET, 9377):  # kube-scheduler's and the status API's
        url = f"http://127.0.0.1:{port}/readyz"
        assert hosts.ssh("control-1", f"curl --silent --fail {url}").returncode == 0
        status = f"curl --silent --output /dev/null --write-out '%{{http_code}}' {url} --header 'Host: evil.example'"
        assert hosts.ssh("control-1", status).stdout == "421"
    curl = f"curl --silent --max-time 2 http://{hosts.address('control-1')}"
    for port in (contract.PORT_DAEMON_SET, 9377, 9379):  # the last one is Prometheus's, where it is configured
        assert hosts.ssh("worker-1", f"{curl}:{port}/metrics", check=False).returncode == 7, "refused"


@pytest.mark.usefixtures("deployed")
def test_doctor_reads_what_the_scheduler_has_loaded_and_finds_no_error(hosts):
    command = [sys.executable, "-m", "cli", "doctor", f"--kubeconfig={hosts.kubeconfig}", "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    found = json.loads(done.stdout)["findings"]
    assert [] == [one for one in found if one["severity"] == "error" or one["name"] == "scheduler-unread"], done.stderr


def test_a_second_run_changes_nothing(ansible, hosts, api, deployed):
    assert deployed.code == 0
    before = scheduler_files(hosts, api)
    again = ansible.run("site.yml")
    assert (again.code, again.changed) == (0, 0), again.told()
    assert before == scheduler_files(hosts, api)


@pytest.mark.usefixtures("deployed")
def test_the_manifest_folder_holds_the_same_names_as_before(hosts, api, untouched):
    assert untouched.listing == scheduler_files(hosts, api).listing
    listed = hosts.ssh("control-1", f"ls {FOLDER}").stdout.split()
    (configuration,) = [name for name in listed if re.fullmatch(r"kube-scheduler-[0-9a-f]{12}\.yaml", name)]
    assert {*listed} - {configuration} == {"bin", "job.json", "lock", "original", "proven", "verdict.json"}
    units = hosts.ssh("control-1", "ls /etc/systemd/system").stdout.split()
    assert [name for name in units if "readygate" in name] == [], "the dead man's switch is there only during a change"


@pytest.mark.usefixtures("deployed")
def test_the_lease_of_the_scheduler_that_led_before_was_seen_to_be_given_up(hosts):
    """It was known by its host's name; a pod waits 20 s more where nobody gives it up."""
    told = json.loads(hosts.ssh("control-1", f"cat {FOLDER}/verdict.json").stdout)
    assert told["lease"] in ("by itself", "for it"), told


@pytest.mark.usefixtures("deployed")
def test_kubeadm_itself_would_write_this_manifest_so_an_upgrade_keeps_it(hosts):
    folder = hosts.ssh("control-1", "mktemp --directory /root/render.XXXXXX").stdout.strip()
    command = (
        f"kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace kube-system get configmap kubeadm-config"
        f" --output=jsonpath='{{.data.ClusterConfiguration}}' > {folder}/cluster.yaml"
        f" && KUBEADM_INIT_DRYRUN_DIR={folder} kubeadm init phase control-plane scheduler --dry-run"
        f" --config {folder}/cluster.yaml && cmp {folder}/kube-scheduler.yaml {MANIFESTS}/kube-scheduler.yaml"
    )
    assert hosts.ssh("control-1", command).returncode == 0


@pytest.mark.usefixtures("deployed")
def test_nothing_else_of_kubeadms_configuration_has_changed(api, untouched):
    before, now = (
        yaml.safe_load(text) for text in (untouched.cluster, api.get(KUBEADM_CONFIG)["data"]["ClusterConfiguration"])
    )
    registered = now.pop("scheduler")
    before.pop("scheduler")
    assert before == now
    assert ["config"] == [argument["name"] for argument in registered["extraArgs"]]
    assert ["readygate"] == [volume["name"] for volume in registered["extraVolumes"]]


@pytest.fixture(scope="module")
def as_agent(api, deployed):  # noqa: ARG001
    """An API client with the token of worker-1's agent, its pod, and another agent's pod."""
    own, other = agents(api)["worker-1"], agents(api)["worker-2"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": own["metadata"]["name"], "uid": own["metadata"]["uid"]}
    request = {"spec": {"boundObjectRef": bound, "expirationSeconds": 600}}
    path = f"/api/v1/namespaces/{NS}/serviceaccounts/{contract.NAME_AGENT}/token"
    token = api.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", **request})
    return api.by_token(token["status"]["token"]), own["metadata"]["name"], other["metadata"]["name"]


HEALTHY = {"type": contract.CONDITION_NODE_HEALTHY, "status": "True", "reason": REASON_CHECKS_PASSED}
NOT_READY = {"type": contract.CONDITION_READY, "status": "False"}
FOREIGN = {"type": "example.com/Other", "status": "True"}


def test_an_agent_may_write_its_own_condition(as_agent):
    client, own, _ = as_agent
    client.patch(f"/api/v1/namespaces/{NS}/pods/{own}/status", {"status": {"conditions": [HEALTHY]}})


@pytest.mark.parametrize(
    ("whose", "part", "body"),
    [
        pytest.param("other", "/status", {"status": {"conditions": [HEALTHY]}}, id="the condition of another pod"),
        pytest.param("own", "/status", {"status": {"podIP": "10.244.9.9"}}, id="its address"),
        pytest.param("own", "/status", {"status": {"phase": "Failed"}}, id="its phase"),
        pytest.param("own", "/status", {"status": {"reason": "Evicted"}}, id="a field that was not there"),
        pytest.param(
            "own",
            "/status",
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            id="the kubelet's Ready",
        ),
        pytest.param(
            "own",
            "/status",
            {"status": {"conditions": [{"type": "x.example/y", "status": "True"}]}},
            id="a foreign one",
        ),
        pytest.param("own", "/status", {"metadata": {"labels": {contract.LABEL_NAME: "x"}}}, id="a label"),
        pytest.param("own", "/status", {"metadata": {"annotations": {"a": "b"}}}, id="an annotation"),
        pytest.param("own", "", {"metadata": {"labels": {"a": "b"}}}, id="the pod itself"),
    ],
)
def test_an_agent_may_not_write(as_agent, whose, part, body):
    client, own, other = as_agent
    with pytest.raises(ApiError) as caught:
        client.patch(f"/api/v1/namespaces/{NS}/pods/{own if whose == 'own' else other}{part}", body)
    assert caught.value.status in (403, 422), caught.value
    assert "readygate agent may" in caught.value.message or "cannot patch" in caught.value.message


@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"spec": {"unschedulable": True}}, id="cordon"),
        pytest.param({"metadata": {"labels": {"a": "b"}}}, id="a label"),
        pytest.param({"metadata": {"annotations": {"a": "b"}}}, id="another annotation"),
    ],
)
def test_the_extender_may_write_nothing_of_a_node_but_the_kick(api, body):
    path = f"/api/v1/namespaces/{NS}/serviceaccounts/{contract.NAME_EXTENDER}/token"
    token = api.create(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    client = api.by_token(token["status"]["token"])
    client.patch("/api/v1/nodes/worker-1", {"metadata": {"annotations": {ANNOTATION_KICK: "test"}}})
    with pytest.raises(ApiError, match="readygate extender may write only"):
        client.patch("/api/v1/nodes/worker-1", body)


@pytest.mark.usefixtures("deployed")
def test_the_policies_compile_against_this_clusters_types(api):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"

    def warnings() -> dict[str, object] | None:
        """By policy; None until the controller manager has checked each."""
        found = {p["metadata"]["name"]: p.get("status", {}).get("typeChecking") for p in api.items(path)}
        return None if None in found.values() else found

    found = wait_for(warnings, timeout_s=30)
    assert len(found) >= 7
    assert found == {name: {} for name in found}


def test_a_mistake_in_a_variable_stops_the_play_at_once_and_names_what_is_allowed(ansible):
    run = ansible.run("site.yml", readygate_agent_profile="slow")
    assert (run.code != 0, run.changed) == (True, 0)
    assert all(word in run.told() for word in ("readygate_agent_profile", "default", "fast"))
