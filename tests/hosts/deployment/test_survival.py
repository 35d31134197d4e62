"""kube-scheduler's change on a real host: whoever dies in the middle, a scheduler answers, and the next run ends well.

ansible-playbook is killed after its tasks, which are listed from a run, not from here. After each of them by
`make test-kills`, else after the change itself and one by chance.
"""

import json
import os
import random
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.hosts.deployment.conftest import KUBEADM_CONFIG
from tests.hosts.deployment.landing import POD_URL
from tests.hosts.deployment.moments import drawn, written
from tests.hosts.waiting import wait_for
from tests.playbooks.host.configz import configuration_of

HERE = Path(__file__).parent
SCHEDULER_ONLY, SCHEDULER_OFF = HERE / "scheduler_only.yml", HERE / "scheduler_off.yml"
FOLDER = "/etc/kubernetes/readygate"
API_SERVER = "/etc/kubernetes/manifests/kube-apiserver.yaml"
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
CHANGE = "Change | Change kube-scheduler of this host"
EVERY_TASK = "READYGATE_EVERY_TASK"
BOOT = "cat /proc/sys/kernel/random/boot_id"
# A real change each time: the scheduler starts again.
TIMEOUT = "readygate_scheduler_config_http_timeout"
DEAD_PROXY = "http://127.0.0.1:9"
PROXIES = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), DEAD_PROXY)


def configz(hosts):
    """What the scheduler has loaded; empty while it does not say."""
    ask = "kubectl --kubeconfig /etc/kubernetes/admin.conf get --raw /configz --server https://127.0.0.1:10259"
    said = hosts.ssh("control-1", f"{ask} --insecure-skip-tls-verify", check=False).stdout
    return configuration_of(said) if said.startswith("{") else {}


def timeouts(hosts):
    """The time limit of each extender that is asked."""
    return [each["httpTimeout"] for each in configz(hosts).get("extenders", [])]


def settled(hosts):
    """A scheduler answers, no change is open, and what is in place is what was proven."""
    look = f"test ! -e {FOLDER}/pending && cmp {FOLDER}/proven/target {MANIFEST}"
    return len(timeouts(hosts)) == 1 and hosts.ssh("control-1", look, check=False).returncode == 0


STATE = (
    f"ls -l {FOLDER} {FOLDER}/pending; cmp {FOLDER}/proven/target {MANIFEST}; crictl ps -a | grep kube-; "
    f"cat {FOLDER}/verdict.json"
)


def verdict(hosts):
    return json.loads(hosts.ssh("control-1", f"cat {FOLDER}/verdict.json").stdout)


def in_the_middle(hosts):
    """The manifest is in place, and not yet proven."""
    look = f"test -e {FOLDER}/pending/proven -a ! -e {FOLDER}/pending/wanted"
    return hosts.ssh("control-1", look, check=False).returncode == 0


def callback(tasks, after):
    return {
        "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callback_plugins"),
        "ANSIBLE_CALLBACKS_ENABLED": "kill_after",
        "READYGATE_TASKS": str(tasks),
        "READYGATE_KILL_AFTER": str(after),
    }


@pytest.fixture(scope="module")
def registered(ansible, deployed):  # noqa: ARG001
    """As the deployment has left it, also after these tests."""
    yield
    run = ansible.run(SCHEDULER_ONLY)
    assert run.code == 0, run.told()


@pytest.mark.usefixtures("registered")
def test_a_change_is_told_with_the_seconds_in_which_no_scheduler_ran(hosts, ansible, artefacts):
    run = ansible.run(SCHEDULER_ONLY, **{TIMEOUT: "2s"})
    assert (run.code, run.changed) == (0, 3), "the scheduler, kubeadm's ConfigMap, and an earlier file that goes"
    told = verdict(hosts)
    assert told["outcome"] == "confirmed"
    (artefacts / "registration.json").write_text(json.dumps(told) + "\n")


def moments(names, seed):
    """After how many tasks to kill: all where that is asked for."""
    if os.environ.get(EVERY_TASK):
        return range(1, len(names))
    return drawn(range(1, len(names)), [names.index(CHANGE) + 1], random.Random(seed).choice)


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("registered")
def test_ansible_killed_after_each_task_leaves_a_scheduler_and_the_next_run_ends_the_change(
    hosts, ansible, tmp_path, seed
):
    tasks = tmp_path / "tasks"
    others = hosts.ssh("worker-1", "find /etc/kubernetes /etc/systemd -printf '%p %T@\n'").stdout
    whole = ansible.run(SCHEDULER_ONLY, environ=callback(tasks, 0), **{TIMEOUT: "10s"})
    assert whole.code == 0, whole.told()
    names = [task.name for task in written(tasks.read_text())]
    for moment in moments(names, seed):
        wanted = {TIMEOUT: f"{10 + moment}s"}
        run = ansible.run(SCHEDULER_ONLY, environ=callback(tasks, moment), **wanted)
        assert run.code == -signal.SIGKILL, (names[moment - 1], run.told())
        assert wait_for(lambda: settled(hosts)), names[moment - 1]
        again = ansible.run(SCHEDULER_ONLY, **wanted)
        assert again.code == 0, (names[moment - 1], again.told())
        assert [wanted[TIMEOUT]] == timeouts(hosts), names[moment - 1]
    assert others == hosts.ssh("worker-1", "find /etc/kubernetes /etc/systemd -printf '%p %T@\n'").stdout


@pytest.mark.usefixtures("registered")
def test_ansible_and_the_program_killed_in_the_middle_are_followed_by_systemd(hosts, ansible):
    """The timer of the dead man's switch: nobody else is left to end it."""
    before = verdict(hosts)["id"]
    with ansible.begin(SCHEDULER_ONLY, **{TIMEOUT: "3s"}) as running:
        assert wait_for(lambda: in_the_middle(hosts), every_s=0.05), "the manifest is in place"
        running.kill()
    hosts.ssh("control-1", "systemctl kill --kill-whom=all --signal=KILL readygate-scheduler.service", check=False)
    assert wait_for(lambda: settled(hosts))
    assert verdict(hosts)["id"] != before
    units = "ls /etc/systemd/system"
    assert wait_for(lambda: "readygate-scheduler" not in hosts.ssh("control-1", units).stdout)


@pytest.mark.usefixtures("registered")
def test_a_host_that_loses_power_in_the_middle_has_its_earlier_scheduler_afterwards(hosts, ansible):
    before = timeouts(hosts)
    with ansible.begin(SCHEDULER_ONLY, **{TIMEOUT: "4s"}):
        assert wait_for(lambda: in_the_middle(hosts), every_s=0.05), "the manifest is in place"
        boot = hosts.ssh("control-1", BOOT).stdout
        hosts.restart("control-1")
        assert boot != hosts.ssh("control-1", BOOT).stdout
    # Without an API server kube-scheduler ends at once, and the kubelet starts it anew ever more seldom.
    assert wait_for(lambda: settled(hosts), timeout_s=400), hosts.ssh("control-1", STATE, check=False).stdout
    told = verdict(hosts)
    assert (told["outcome"], timeouts(hosts)) == ("put-back", before), told
    assert "the host was restarted during the change" in told["cause"]
    answers = f"python3 -c 'import urllib.request as r; r.urlopen(\"{POD_URL}/readyz\", timeout=2)'"
    assert wait_for(lambda: hosts.ssh("control-1", answers, check=False).returncode == 0, timeout_s=400), "the extender"


@pytest.mark.usefixtures("registered")
def test_proxies_of_host_and_controller_change_nothing(hosts, ansible):
    """A working scheduler was once declared dead where http_proxy was set. The API server's address is excepted, as
    every host needs it that has a proxy and a kubectl; this host's own is not."""
    given = {**PROXIES, "no_proxy": hosts.address("control-1"), "NO_PROXY": hosts.address("control-1")}
    lines = "".join(f"{name}={value}\n" for name, value in given.items())
    hosts.ssh("control-1", "cat > /etc/environment", stdin=lines)
    try:
        assert DEAD_PROXY in hosts.ssh("control-1", "env").stdout
        run = ansible.run(SCHEDULER_ONLY, environ=given, **{TIMEOUT: "5s"})
        assert run.code == 0, run.told()
        assert ["5s"] == timeouts(hosts)
        assert DEAD_PROXY not in hosts.ssh("control-1", f"cat {MANIFEST}").stdout, "the scheduler had none before"
    finally:
        hosts.ssh("control-1", "rm /etc/environment")


USER, PASSWORD = "somebody", "a password with spaces"


@pytest.fixture
def operator(hosts):
    """A user who becomes root by a password."""
    home = f"/home/{USER}"
    hosts.ssh("control-1", f"useradd --create-home --shell /bin/bash {USER}")
    hosts.ssh("control-1", f"cp -r /root/.ssh {home}/ && chown -R {USER}: {home}/.ssh")
    hosts.ssh("control-1", "chpasswd", stdin=f"root:{PASSWORD}\n")
    yield {"ansible_user": USER, "ansible_become_method": "su", "ansible_become_password": PASSWORD}
    hosts.ssh("control-1", f"passwd --lock root; pkill -u {USER}; sleep 1; userdel --remove {USER}")


@pytest.mark.usefixtures("registered")
def test_another_user_than_root_becomes_root_by_a_password(hosts, ansible, operator):
    run = ansible.run(SCHEDULER_ONLY, **operator, ansible_ssh_pipelining=False, **{TIMEOUT: "6s"})
    assert run.code == 0, run.told()
    assert ["6s"] == timeouts(hosts)
    assert PASSWORD not in run.output


@contextmanager
def no_api_server(hosts):
    """The kubelet ends it, as its manifest has gone, and starts it again afterwards."""
    asked = "curl --silent --insecure --max-time 2 --output /dev/null https://127.0.0.1:6443/readyz --fail"

    def answers():
        return hosts.ssh("control-1", asked, check=False).returncode == 0

    hosts.ssh("control-1", f"mv {API_SERVER} /root/")
    try:
        assert wait_for(lambda: not answers()), "the API server is still there"
        yield
    finally:
        hosts.ssh("control-1", f"mv /root/{Path(API_SERVER).name} {API_SERVER}")
        assert wait_for(answers), "the API server does not come back"


@pytest.mark.usefixtures("registered")
def test_detach_is_the_way_out_without_an_api_server_and_check_finds_what_was_lost(hosts, ansible):
    with no_api_server(hosts):
        run = ansible.run("detach.yml")
        assert (run.code, run.changed) == (0, 1), run.told()
        assert FOLDER not in hosts.ssh("control-1", f"cat {MANIFEST}").stdout
        again = ansible.run("detach.yml")
        assert (again.code, again.changed) == (0, 0), again.told()
    assert wait_for(lambda: configz(hosts)), "no scheduler answers"
    assert [] == timeouts(hosts)
    lost = ansible.run("check.yml")
    assert (lost.code != 0, lost.changed) == (True, 0)
    assert f"kube-scheduler does not ask {POD_URL}" in lost.output
    again = ansible.run(SCHEDULER_ONLY)
    assert again.code == 0, again.told()
    well = ansible.run("check.yml")
    assert (well.code, well.changed) == (0, 0), well.told()


OTHER = {
    "urlPrefix": "http://127.0.0.1:1",
    "filterVerb": "filter",
    "ignorable": True,
    "managedResources": [{"name": "example.com/nobody-asks-for"}],
}
OWN = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 7,
    "extenders": [OTHER],
    "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf"},
    "profiles": [
        {"schedulerName": "default-scheduler", "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}}
    ],
}
THEIRS = "/etc/kubernetes/own-scheduler.yaml"
SECTION = {
    "extraArgs": [
        {"name": "config", "value": THEIRS},
        {"name": "kube-api-qps", "value": "77"},
        {"name": "profiling", "value": "false"},
    ],
    "extraVolumes": [{"name": "own", "hostPath": THEIRS, "mountPath": THEIRS, "readOnly": True, "pathType": "File"}],
}


def give(hosts, api, section):
    """What the scheduler is started with, by kubeadm's ConfigMap and by kubeadm itself."""
    cluster = yaml.safe_load(api.get(KUBEADM_CONFIG)["data"]["ClusterConfiguration"])
    text = yaml.safe_dump({**cluster, "scheduler": section})
    api.patch(KUBEADM_CONFIG, {"data": {"ClusterConfiguration": text}})
    hosts.ssh("control-1", "kubeadm init phase control-plane scheduler --config=/dev/stdin", stdin=text)


def score_plugins(loaded):
    (profile,) = loaded["profiles"]
    plugins = profile["plugins"]
    disabled = {one["name"] for one in plugins.get("score", {}).get("disabled") or []}
    return {one["name"] for one in plugins["multiPoint"]["enabled"]} - disabled


@pytest.mark.usefixtures("registered")
def test_a_configuration_of_the_operators_own_is_merged_and_put_back(hosts, api, ansible):
    off = ansible.run(SCHEDULER_OFF)
    assert off.code == 0, off.told()
    hosts.ssh("control-1", f"cat > {THEIRS}", stdin=yaml.safe_dump(OWN))
    try:
        give(hosts, api, SECTION)
        assert wait_for(lambda: configz(hosts).get("parallelism") == 7)
        assert configz(hosts)["enableProfiling"], "the flag does nothing beside a file"
        before = hosts.ssh("control-1", f"cat {MANIFEST}").stdout
        run = ansible.run(SCHEDULER_ONLY)
        assert run.code == 0, run.told()
        told = configz(hosts)
        assert (7, False, 77) == (told["parallelism"], told["enableProfiling"], told["clientConnection"]["qps"])
        assert [OTHER["urlPrefix"], POD_URL] == [each["urlPrefix"] for each in told["extenders"]]
        assert "ImageLocality" not in score_plugins(told)
        off = ansible.run(SCHEDULER_OFF)
        assert off.code == 0, off.told()
        assert before == hosts.ssh("control-1", f"cat {MANIFEST}").stdout
        assert SECTION == yaml.safe_load(api.get(KUBEADM_CONFIG)["data"]["ClusterConfiguration"])["scheduler"]
    finally:
        give(hosts, api, {})
        hosts.ssh("control-1", f"rm -f {THEIRS}")
        assert wait_for(lambda: configz(hosts).get("parallelism") == 16)
