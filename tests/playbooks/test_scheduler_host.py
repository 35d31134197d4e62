"""What the scheduler role tells kubeadm and the program on the host, and what check.yml finds."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import yaml
from readygate_scheduler.jobs import UNTIL

from tests.playbooks.rendering import ROLES, render
from tests.playbooks.seeing import (
    BEFORE_URL,
    EXTENDER,
    FILE,
    FIRST,
    FOLDER,
    KIND,
    KUBEADM_V1,
    THEIRS,
    URL,
    V1BETA3,
    V1BETA4,
    VOLUME,
    cluster,
    edits,
    findings,
    given,
    job,
    kubeadm,
    manifest,
    plan,
    seen,
)


def clusters(scheduler: dict[str, Any] | None, version: str, text: str = "", **more: Any) -> dict[str, Any]:
    looked = seen(text or manifest(), cluster=cluster(scheduler, version), **more)
    return kubeadm(looked, given(), {**plan(looked, given()), "file": FILE})


@pytest.mark.parametrize(
    ("scheduler", "version", "expected"),
    [
        pytest.param({}, V1BETA4, {}, id="as kubeadm made it"),
        pytest.param(None, V1BETA4, {}, id="without a section"),
        pytest.param(
            {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}], "extraEnvs": [{"name": "A"}]},
            V1BETA4,
            {"extraArgs": [{"name": "v", "value": "2"}, {"name": "v", "value": "3"}], "extraEnvs": [{"name": "A"}]},
            id="arguments of others stay, also twice the same",
        ),
        pytest.param(
            {"extraArgs": [{"name": "v", "value": "2", "mergeMethod": "append"}]},
            KUBEADM_V1,
            {"extraArgs": [{"name": "v", "value": "2", "mergeMethod": "append"}]},
            id="how an argument is merged stays, v1 of kubeadm 1.37",
        ),
        pytest.param({"extraVolumes": [{**VOLUME, "name": "other"}]}, V1BETA4, None, id="volumes of others stay"),
    ],
)
def test_registration(scheduler, version, expected):
    expected = dict(scheduler if expected is None else expected)
    arguments = expected.pop("extraArgs", [])
    volumes = expected.pop("extraVolumes", [])
    made = clusters(scheduler, version)["clusters"]["wanted"]
    assert made.pop("scheduler") == {
        **expected,
        "extraArgs": [*arguments, {"name": "config", "value": FILE}],
        "extraVolumes": [*volumes, VOLUME],
    }
    assert made == {"apiVersion": version, "kind": "ClusterConfiguration", "kubernetesVersion": "v1.36.3"}


def test_before_v1beta4_arguments_are_a_mapping():
    section = clusters({"extraArgs": {"v": "2", "config": f"{FOLDER}/kube-scheduler-ff.yaml"}}, V1BETA3)
    assert section["clusters"]["wanted"]["scheduler"]["extraArgs"] == {"v": "2", "config": FILE}


@pytest.mark.parametrize(
    ("scheduler", "version"),
    [
        pytest.param({}, V1BETA4, id="as kubeadm made it"),
        pytest.param({"extraArgs": [{"name": "v", "value": "2"}]}, V1BETA4, id="with an argument"),
        pytest.param({"extraArgs": [{"name": "v", "value": "2"}]}, KUBEADM_V1, id="with an argument, v1"),
        pytest.param({"extraArgs": {"v": "2"}}, V1BETA3, id="with an argument, v1beta3"),
        pytest.param({"extraVolumes": [{**VOLUME, "name": "other"}]}, V1BETA4, id="with a volume"),
        pytest.param(
            {"extraArgs": [{"name": "config", "value": THEIRS}, {"name": "v", "value": "2"}]},
            V1BETA4,
            id="with a file of their own",
        ),
    ],
)
def test_taking_it_out_again_leaves_what_was_there(scheduler, version):
    config = [
        one["value"] for one in scheduler.get("extraArgs", []) if isinstance(one, dict) and one["name"] == "config"
    ]
    configs = {THEIRS: yaml.safe_dump(KIND)}
    before = manifest(*[f"--config={each}" for each in config])
    registered = clusters(scheduler, version, before, configs=configs)["clusters"]["wanted"]["scheduler"]
    text = manifest(f"--config={FILE}")
    back = clusters(registered, version, text, configs=configs, noted={"config": (config or [""])[0]})
    assert back["clusters"]["without"]["scheduler"] == scheduler


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [pytest.param("10.99.0.11:6443", "10.99.0.11", id="IPv4"), pytest.param("[fd00::1]:6443", "fd00::1", id="IPv6")],
)
def test_kubeadm_is_told_the_address_of_the_host_and_the_name_that_its_kubelet_has(endpoint, expected):
    annotation = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"
    apiserver = yaml.safe_dump({"metadata": {"annotations": {annotation: endpoint}}})
    made = clusters({}, V1BETA4, apiserver=apiserver, node="ip-10-99-0-11.example")
    assert json.loads(made["renderings"]["today"].partition("\n---\n")[2]) == {
        "apiVersion": V1BETA4,
        "kind": "InitConfiguration",
        "nodeRegistration": {"name": "ip-10-99-0-11.example"},
        "localAPIEndpoint": {"advertiseAddress": expected},
    }


def test_a_configmap_that_cannot_be_read_is_a_problem():
    (problem,) = kubeadm(seen(manifest(), cluster={"error": "connection refused"}), given(), {})["problems"]
    assert "connection refused" in problem


PROXIES = [{"name": "HTTPS_PROXY", "value": "http://192.0.2.9:3128"}, {"name": "no_proxy", "value": "10.0.0.0/8"}]
OTHER = [{"name": "GOMAXPROCS", "value": "2"}, {"name": "TOKEN_PROXY", "valueFrom": {"fieldRef": {"fieldPath": "a.b"}}}]


def with_environment(text: str, entries: list[dict[str, Any]]) -> str:
    document = yaml.safe_load(text)
    document["spec"]["containers"][0]["env"] = entries
    return yaml.safe_dump(document)


OURS = manifest(f"--config={FILE}", volumes=True)


@pytest.mark.parametrize(
    ("in_place", "today", "wanted", "told"),
    [
        pytest.param(manifest(), manifest(), OURS, "", id="kubeadm's own"),
        pytest.param(json.dumps(yaml.safe_load(manifest())), manifest(), OURS, "", id="the same in other words"),
        pytest.param(manifest("--v=4"), manifest(), OURS, "-    - --v=4", id="edited by hand"),
        pytest.param(
            manifest("--v=4"), manifest(), OURS, "these lines (-) would be lost. Put them into", id="what would be lost"
        ),
        pytest.param(
            manifest(),
            manifest("--v=4"),
            OURS,
            "these lines (+) would be new. Remove them from",
            id="what would be new",
        ),
        pytest.param(
            manifest(),
            with_environment(manifest(), PROXIES),
            OURS,
            "readygate_scheduler_config_kubeadm_environment, or",
            id="proxies of a variable that the manifest has not",
        ),
        pytest.param(manifest(), manifest(), manifest("--config=/p"), "a patch of kubeadm replaces", id="a patch wins"),
    ],
)
def test_what_would_be_lost_or_be_void_stops_the_play(in_place, today, wanted, told):
    found = edits(seen(in_place), {"today": today, "wanted": wanted}, given())
    assert (found == [], told in "".join(found)) == (told == "", True)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], {}, id="none in the manifest: none, whatever the host has by now"),
        pytest.param(
            PROXIES, {"HTTPS_PROXY": "http://192.0.2.9:3128", "no_proxy": "10.0.0.0/8"}, id="those of the manifest"
        ),
        pytest.param(OTHER, {}, id="nothing else of its environment"),
    ],
)
def test_kubeadm_is_given_the_proxies_that_the_scheduler_has(entries, expected):
    """It copies them from its own environment, which may have come or gone on the host since kubeadm init."""
    looked = seen(with_environment(manifest(), entries))
    assert expected == kubeadm(looked, given(), {**plan(looked, given()), "file": FILE})["environment"]


KUBEADM = """#!/bin/sh
env | grep -i _proxy= | sort > "$KUBEADM_INIT_DRYRUN_DIR/kube-scheduler.yaml"
cat > /dev/null
"""


def test_proxies_that_have_come_to_the_host_do_not_reach_kubeadm(tmp_path):
    """As of /etc/environment: who came by SSH has them, so the module has them too."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubeadm").write_text(KUBEADM)
    (tmp_path / "bin" / "kubeadm").chmod(0o755)
    module = ROLES / "readygate_scheduler_config" / "library" / "readygate_scheduler_render.py"
    arguments = {"renderings": {"today": "a: b"}, "environment": {"NO_PROXY": "10.0.0.0/8"}}
    environ = os.environ | {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HTTPS_PROXY": "http://192.0.2.9:3128",
        "http_proxy": "http://192.0.2.9:3128",
        "NO_PROXY": "elsewhere",
    }
    (tmp_path / "arguments").write_text(json.dumps({"ANSIBLE_MODULE_ARGS": arguments}))
    command = [sys.executable, str(module), str(tmp_path / "arguments")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert {"today": "NO_PROXY=10.0.0.0/8\n"} == json.loads(done.stdout)["manifests"], done.stderr


# The job of the program on the host


def made_job(looked: dict[str, Any], *, remove: bool = False, **inventory: Any) -> dict[str, Any]:
    settings = given(**inventory)
    rendered = {"wanted": OURS, "without": manifest()}
    return job(looked, settings, {**plan(looked, settings), "file": FILE}, rendered, remove=remove)


@pytest.mark.parametrize(
    ("more", "inventory", "expected"),
    [
        pytest.param({}, {}, "kube-scheduler-control-1", id="by the pod's name and the node's"),
        pytest.param({}, {"node_name": "other"}, "kube-scheduler-other", id="as the inventory calls the node"),
        pytest.param({"node": ""}, {}, None, id="an API server that does not say who the kubelet is"),
        pytest.param({}, {"method": "systemd"}, None, id="a unit of systemd"),
    ],
)
def test_the_job_names_the_schedulers_mirror_pod_where_there_is_one(more, inventory, expected):
    unit = {"unit_text": "[Service]\nExecStart=/usr/bin/kube-scheduler --v=2\n"} if inventory.get("method") else {}
    made = made_job(seen(manifest(), **more, **unit), **inventory)
    assert (["kubectl", "--namespace=kube-system", expected] if expected else []) == made["mirror"]


ELECTION = {
    "leaderElect": True,
    "resourceLock": "leases",
    "resourceName": "kube-scheduler",
    "resourceNamespace": "kube-system",
}
READ = "--raw=/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}"


@pytest.mark.parametrize(
    ("configz", "expected"),
    [
        pytest.param({"leaderElection": ELECTION}, ("kube-system", "kube-scheduler"), id="as kubeadm has it"),
        pytest.param(
            {"leaderElection": {**ELECTION, "resourceName": "first", "resourceNamespace": "schedulers"}},
            ("schedulers", "first"),
            id="of a name of its own",
        ),
        pytest.param({"leaderElection": {**ELECTION, "leaderElect": False}}, None, id="without an election"),
        pytest.param({"leaderElection": {**ELECTION, "resourceLock": "endpoints"}}, None, id="without a Lease"),
        pytest.param({"extenders": []}, None, id="a scheduler that does not say"),
        pytest.param({"error": "Forbidden"}, None, id="no right to look"),
    ],
)
@pytest.mark.parametrize("remove", [False, True], ids=["registered", "taken out"])
def test_the_job_names_the_lease_that_the_scheduler_says_it_leads_by(configz, expected, remove):
    made = made_job(seen(OURS, configz=configz, noted={"config": ""}), remove=remove)["lease"]
    if expected is None:
        assert {} == made
        return
    namespace, name = expected
    change = ["kubectl", f"--namespace={namespace}", "patch", "lease", name, "--type=json"]
    read = ["kubectl", "get", READ.format(namespace, name)]
    assert {"leads": ["kubectl", "get", "--raw=/metrics"], "read": read, "change": change} == made


def test_the_job_names_what_is_there_what_is_to_be_and_how_it_is_proven():
    made = made_job(seen(manifest("--profiling=false")))
    assert made["wanted"] == OURS
    assert made["command"] == ["kube-scheduler", "--kubeconfig=/etc/kubernetes/scheduler.conf", f"--config={FILE}"]
    assert made["before_command"][-1] == "--profiling=false"
    assert made["expect"]["enableProfiling"] is False
    assert made["trial"] == [f"--config={FILE}", "--secure-port=0", "--write-config-to=/dev/null"]
    assert (made["restarts"], made["keep"], made["force"]) == (True, False, False)


def test_the_trial_has_every_feature_gate_however_often_the_flag_is_given():
    """kube-scheduler adds them up; of other flags the last one counts."""
    wanted = manifest("--feature-gates=A=true", "--v=2", "--feature_gates", "B=false,C=true", f"--config={FILE}")
    looked, settings = seen(manifest()), given()
    made = job(looked, settings, {**plan(looked, settings), "file": FILE}, {"wanted": wanted, "without": manifest()})
    assert ["--feature-gates=A=true", "--feature-gates=B=false,C=true"] == made["trial"][3:]


def test_nothing_restarts_where_only_the_manifests_text_differs():
    in_place = json.dumps(yaml.safe_load(OURS))
    made = made_job(seen(in_place))
    assert (made["wanted"], made["restarts"]) == (in_place, False)


def test_taking_out_gives_the_bytes_that_were_there_before():
    original = "# by kubeadm\n" + manifest()
    made = made_job(seen(OURS, original=original, noted={"config": ""}), remove=True)
    assert (made["wanted"], made["files"], made["configz"]) == (original, {}, [])


def test_taking_out_keeps_what_was_edited_by_hand_since():
    edited = manifest(f"--config={FILE}", "--v=4", volumes=True)
    made = made_job(seen(edited, original=manifest(), noted={"config": THEIRS}), remove=True)
    assert yaml.safe_load(made["wanted"]) == yaml.safe_load(manifest(f"--config={THEIRS}", "--v=4"))


@pytest.mark.parametrize("theirs", ["", THEIRS], ids=["none before us", "one of theirs before us"])
def test_taking_out_takes_the_flag_with_its_value_where_somebody_wrote_them_as_two_words(theirs):
    """A flag that is left alone takes the next one for its value, and kube-scheduler does not start."""
    edited = manifest("--config", FILE, "--v=4", volumes=True)
    made = made_job(seen(edited, noted={"config": theirs}), remove=True)
    before = [f"--config={theirs}"] if theirs else []
    assert yaml.safe_load(manifest(*before, "--v=4")) == yaml.safe_load(made["wanted"])


UNIT = """# /lib/systemd/system/kube-scheduler.service
[Service]
ExecStart=/usr/bin/kube-scheduler \\
  --config=/etc/own.yaml \\
  --v=2
# /etc/systemd/system/kube-scheduler.service.d/readygate.conf
[Service]
ExecStart=
ExecStart=/usr/bin/kube-scheduler --config=/ours
"""


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        pytest.param(UNIT, f"/usr/bin/kube-scheduler --v=2 --config={FILE}", id="its own line, past our drop-in"),
        pytest.param(
            "# /lib/x\nExecStart=/k\n# /etc/y\nExecStart=\nExecStart=-/k $ARGS\n",
            f"-/k $ARGS --config={FILE}",
            id="a drop-in of others, with variables",
        ),
    ],
)
def test_a_unit_gets_a_drop_in_with_its_own_command(unit, expected):
    configs = {"/etc/own.yaml": yaml.safe_dump(KIND)}
    looked = seen(None, process=["/usr/bin/kube-scheduler", "--config=/etc/own.yaml"], unit_text=unit, configs=configs)
    made = made_job(looked, method="systemd")
    assert made["target"] == "/etc/systemd/system/kube-scheduler.service.d/readygate.conf"
    assert made["wanted"] == f"# Written by readygate.\n[Service]\nExecStart=\nExecStart={expected}\n"
    assert made["restart"][-1] == ["systemctl", "restart", "kube-scheduler.service"]
    own_words = ["journalctl", "_SYSTEMD_UNIT=kube-scheduler.service", "--until=@" + UNTIL, "--lines=3", "--output=cat"]
    assert own_words == made["evidence"]
    assert made["command"] == ([] if "$" in expected else expected.split())
    assert made_job({**looked, "target": made["wanted"]}, method="systemd", remove=True)["wanted"] is None


# check.yml


TWICE = {"extraArgs": [{"name": "config", "value": one} for one in (FILE, THEIRS)]}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param({}, "", id="all is well"),
        pytest.param({"configz": {"extenders": [FIRST]}}, f"does not ask {URL}", id="lost"),
        pytest.param({"configz": {}}, "its extenders: none", id="lost, with nothing else"),
        pytest.param({"configz": {"extenders": [EXTENDER] * 2}}, "registered 2 times", id="twice"),
        pytest.param(
            {"configz": {"extenders": [{**EXTENDER, "urlPrefix": BEFORE_URL}, EXTENDER]}},
            f"also asks {BEFORE_URL}, the port of another form or an earlier release",
            id="once more, at the port of an earlier release",
        ),
        pytest.param(
            {"configz": {"extenders": [{**EXTENDER, "ignorable": False}]}},
            "entry differs: ignorable: true expected, false loaded",
            id="in another mode",
        ),
        pytest.param({"cluster": cluster({})}, "next kubeadm upgrade loses", id="not in kubeadm's ConfigMap"),
        pytest.param({"cluster": cluster(TWICE)}, "next kubeadm upgrade loses", id="before another --config there"),
        pytest.param({"files": []}, "which is not on this host", id="a file that the ConfigMap names is missing"),
        pytest.param({"open": True}, "a change of kube-scheduler is open", id="an interrupted change"),
        pytest.param({"healthy": False}, "does not answer", id="a scheduler that is down"),
        pytest.param({"configz": {"error": "Forbidden"}}, "cannot be read: Forbidden", id="no right to look"),
    ],
)
def test_what_check_finds(more, told):
    looked = seen(OURS, **more)
    found = findings(looked, given(), plan(looked, given()))
    assert (found == [], told in "; ".join(found)) == (told == "", True)


@pytest.mark.parametrize("method", ["kubespray", "none"])
def test_where_we_may_not_write_the_remedy_is_what_the_owner_has_to_put_in(method):
    value = render("readygate_scheduler_config", {})(f"__readygate_scheduler_config_remedy['{method}']")
    assert f'"urlPrefix": "{URL}"' in value
    assert ("kube_scheduler_extenders" in value) == (method == "kubespray")
