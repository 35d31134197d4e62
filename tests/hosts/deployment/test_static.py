"""The extender as a static pod, in enforce: nothing is placed without it, and whatever becomes of it, it is soon there.

The tests stand in the order in which an operator would meet it: the way there, upgrades, faults, the way back.
"""

import json
import time

import pytest

from kube import contract
from tests.hosts.deployment import renewal
from tests.hosts.deployment.conftest import ARMED, MANIFESTS, save
from tests.hosts.deployment.landing import POD_URL, STATIC_URL, Asking, Landings, repaired
from tests.hosts.deployment.ports import is_without_rights, statuses, taken_while_it_starts_again
from tests.hosts.waiting import wait_for
from tools.testbed.shared.api import ApiError

NS = contract.NAMESPACE
NAME = contract.NAME_EXTENDER
ENFORCE = ARMED | {"readygate_scheduler_config_mode": "enforce"}
EXTENDER = "readygate_extender"  # the plays of a fault: agents and scheduler have nothing to do in them
SCHEDULERS = "readygate_scheduler_config"  # but where the port changes, which a scheduler would have to follow
FOLDER = "/etc/kubernetes/readygate-extender"
MIRROR = f"/api/v1/namespaces/{NS}/pods/{NAME}-control-1"
DAEMON_SET = f"/apis/apps/v1/namespaces/{NS}/daemonsets/{NAME}"
RESOURCES = "readygate_extender_resources"
UNREACHABLE = "https://10.99.0.250:6443"
# Those of a revision that was not there before it, so of the new manifest.
STOPPING = """
import os, pathlib, signal, time
def revision(folder):
    try:
        environ = (folder / 'environ').read_bytes().split(b'\\0')
    except OSError:
        return None
    return next((one for one in environ if one.startswith(b'READYGATE_REVISION=')), None)
def found():
    return {int(folder.name): revision(folder) for folder in pathlib.Path('/proc').glob('[0-9]*')}
known = set(found().values())
while True:
    for process, what in found().items():
        if what not in known:
            try:
                os.kill(process, signal.SIGSTOP)
            except OSError:
                continue
            with open('/root/stopped', 'a') as file:
                print(process, file=file)
    time.sleep(0.05)
"""


def is_there(api, path) -> bool:
    try:
        api.get(path)
    except ApiError as e:
        if e.status == 404:
            return False
        raise
    return True


def answers(hosts, url=STATIC_URL) -> bool:
    return hosts.ssh("control-1", f"curl --silent --fail --max-time 2 {url}/readyz", check=False).returncode == 0


def started(api) -> str:
    """The container that runs now; "" while none does."""
    statuses = api.get(MIRROR)["status"].get("containerStatuses", [])
    return next((s["containerID"] for s in statuses if s["name"] == "extender" and "running" in s["state"]), "")


@pytest.fixture(scope="module")
def static(hosts, ansible, deployed):  # noqa: ARG001
    """By the way from a DaemonSet in protect: whom the scheduler asked meanwhile, and what was not answered."""
    with Asking(hosts) as asking:
        run = ansible.run("site.yml", **ENFORCE)
        assert run.code == 0, run.told()
        return asking.told()


def test_a_daemon_set_in_enforce_is_refused_before_anything_changes(ansible, deployed):  # noqa: ARG001
    run = ansible.run("site.yml", **ENFORCE, readygate_extender_form="daemonset")
    assert (run.code != 0, run.changed) == (True, 0)
    assert "so both would wait for ever" in run.told()


def test_on_the_way_there_no_scheduler_was_without_an_extender(hosts, api, static):
    answered, missed = static
    assert ({POD_URL, STATIC_URL}, []) == (answered, missed)
    assert (True, False) == (answers(hosts), is_there(api, DAEMON_SET))
    listing = hosts.ssh("control-1", f"ls -A {MANIFESTS}").stdout.split()
    assert sorted([f"{NAME}.yaml", *(f"{name}.yaml" for name in CONTROL_PLANE)]) == sorted(listing)


CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@pytest.mark.usefixtures("static")
def test_neither_process_is_root_or_could_be(hosts):
    assert [True, True] == [is_without_rights(one) for one in statuses(hosts, contract.PORT_STATIC)]


@pytest.mark.usefixtures("static")
def test_a_second_play_changes_nothing(ansible):
    again = ansible.run("site.yml", **ENFORCE)
    assert (again.code, again.changed) == (0, 0), again.told()


@pytest.mark.usefixtures("static")
def test_no_other_user_of_the_host_takes_the_port_while_it_starts_again(hosts):
    assert 0 == taken_while_it_starts_again(hosts, contract.PORT_STATIC)


@pytest.mark.usefixtures("static")
def test_whoever_has_the_hosts_token_may_do_what_the_pods_account_may_and_nothing_more(hosts, api):
    def rules(token: str, namespace: str) -> list[str]:
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        said = api.by_token(token).create(path, body | {"spec": {"namespace": namespace}})["status"]
        return sorted(json.dumps(rule, sort_keys=True) for rule in said["resourceRules"])

    path = f"/api/v1/namespaces/{NS}/serviceaccounts/{NAME}/token"
    asked = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}
    of_a_pod = api.create(path, asked)["status"]["token"]
    for namespace in (NS, contract.NAMESPACE_NODE_LEASE, "default"):
        assert rules(of_a_pod, namespace) == rules(renewal.on_the_host(hosts), namespace)
    assert hosts.ssh("control-1", f"stat --format=%U:%g:%a {FOLDER}/credentials/token").stdout == "root:69376:640\n"


@pytest.mark.usefixtures("static")
def test_the_hosts_token_lives_for_a_day_and_its_timer_runs(hosts):
    issued, ends = renewal.lifetime(renewal.on_the_host(hosts))
    assert (24 * renewal.HOUR_S, True) == (ends - issued, abs(time.time() - issued) < 6.1 * renewal.HOUR_S)
    timer = f"{renewal.UNIT}.timer"
    assert hosts.ssh("control-1", f"systemctl is-enabled {timer} && systemctl is-active {timer}").stdout == (
        "enabled\nactive\n"
    )
    assert {timer, f"{renewal.UNIT}.service"} == renewal.units(hosts)


@pytest.mark.usefixtures("static")
def test_renewals_that_fail_are_reported_before_the_end_and_the_extender_outlives_the_end_of_its_token(hosts, api):
    """admin.conf is away until the token has ended; nothing is restarted, and nobody but the timer renews."""
    before, away = started(api), f"{renewal.ADMIN}.away"
    journal = f"journalctl --unit {renewal.UNIT} --output=cat"
    hosts.ssh("control-1", f"mv {renewal.ADMIN} {away}")
    try:
        token = renewal.ending(hosts, api, left_s=80)
        renewal.place(hosts, token)
        assert wait_for(lambda: renewal.metric(hosts, "expiry") == renewal.lifetime(token)[1])
        (found,) = [one for one in renewal.findings(hosts) if one["name"] == "token-ends"]
        assert ("error", True) == (found["severity"], f"systemctl start {renewal.UNIT}.service" in found["remedy"])
        assert wait_for(lambda: not renewal.is_accepted(api, token))
        assert f"{renewal.ADMIN} is missing" in hosts.ssh("control-1", journal).stdout
        assert token == renewal.on_the_host(hosts)
    finally:
        hosts.ssh("control-1", f"mv {away} {renewal.ADMIN}")
    assert wait_for(lambda: renewal.metric(hosts, "expiry") > time.time() + 23 * renewal.HOUR_S)
    assert wait_for(lambda: answers(hosts))
    assert [] == [one for one in renewal.findings(hosts) if one["name"] == "token-ends"]
    assert before == started(api)
    assert renewal.on_the_host(hosts) not in hosts.ssh("control-1", journal).stdout


def upgraded(hosts, api, ansible):  # noqa: ARG001
    run = ansible.run(
        "site.yml",
        tags=EXTENDER,
        **ENFORCE,
        **{RESOURCES: {"requests": {"cpu": "90m"}, "limits": {"memory": "500Mi"}}},
    )
    assert run.code == 0, run.told()


def mirror_deleted(hosts, api, ansible):  # noqa: ARG001
    api.delete(MIRROR)
    assert wait_for(lambda: is_there(api, MIRROR))


def container_killed(hosts, api, ansible):  # noqa: ARG001
    before = started(api)
    hosts.ssh("control-1", "pkill -9 --full 'bin/readygate-extender'")
    assert wait_for(lambda: is_there(api, MIRROR) and started(api) not in ("", before))


def refused_by_the_rehearsal(hosts, api, ansible):
    before = started(api)
    run = ansible.run("site.yml", tags=EXTENDER, **ENFORCE, readygate_extender_kubernetes_server=UNREACHABLE)
    assert (run.code != 0, "nothing was changed" in run.told()) == (True, True), run.told()
    assert "not read: pods, nodes" in run.told()
    assert (before, True) == (started(api), answers(hosts))


def put_back_as_it_ends(hosts, api, ansible):  # noqa: ARG001
    """The rehearsal takes no port, so it cannot know that this one is the scheduler's own."""
    run = ansible.run("site.yml", tags=f"{EXTENDER},{SCHEDULERS}", **ENFORCE, readygate_extender_port=10259)
    told = ("the process of the new manifest has ended", "the earlier one is back in place and answers")
    assert (run.code != 0, [words in run.told() for words in told]) == (True, [True, True]), run.told()


def put_back_as_it_answers_nothing(hosts, api, ansible):  # noqa: ARG001
    """Its processes are stopped as soon as they are there, as those of a program that hangs: no signal ends them."""
    unit = "systemd-run --unit=stopping --collect --quiet python3 /root/stopping.py"
    hosts.ssh("control-1", "cat > /root/stopping.py", stdin=STOPPING)
    hosts.ssh("control-1", f"rm -f /root/stopped; {unit}")
    try:
        run = ansible.run("site.yml", tags=EXTENDER, **ENFORCE, **{RESOURCES: {"requests": {"cpu": "80m"}}})
    finally:
        hosts.ssh("control-1", "systemctl stop stopping", check=False)
    assert hosts.ssh("control-1", "cat /root/stopped").stdout, "none was there"
    told = ("no extender has answered for 6 s", "the earlier one is back in place and answers")
    assert (run.code != 0, [words in run.told() for words in told]) == (True, [True, True]), run.told()


BECOME = [
    upgraded,
    mirror_deleted,
    container_killed,
    refused_by_the_rehearsal,
    put_back_as_it_ends,
    put_back_as_it_answers_nothing,
]


@pytest.mark.usefixtures("static")
@pytest.mark.parametrize("become", BECOME)
def test_whatever_becomes_of_it_scheduling_goes_on(hosts, api, ansible, artefacts, become):
    """The time without an answer is recorded, all of it and not only from the end of the fault on."""
    with Landings(api) as landings, Asking(hosts) as asking:
        become(hosts, api, ansible)
        longest_s = landings.settle()
        gap_s = asking.longest_gap_s()
    figures = {"longest time without an answer, s": gap_s, "longest wait of a pod, s": longest_s}
    save(artefacts, f"static-{become.__name__}.json", figures | {"pods": len(landings.waited_s)})
    assert gap_s < float("inf"), "it answers again"
    assert longest_s < float("inf"), "every pod lands"


@pytest.mark.usefixtures("static")
def test_site_yml_repairs_a_deleted_namespace_in_enforce(hosts, api, ansible):
    assert repaired(api, ansible, ENFORCE)
    assert answers(hosts)
    assert wait_for(lambda: is_there(api, MIRROR))


def test_on_the_way_back_no_scheduler_was_without_an_extender_and_no_file_stays(hosts, api, ansible, static):  # noqa: ARG001
    with Asking(hosts) as asking:
        run = ansible.run("site.yml", **ARMED)
        assert run.code == 0, run.told()
        assert ({POD_URL, STATIC_URL}, []) == asking.told()
    listing = hosts.ssh("control-1", f"ls -A {MANIFESTS}").stdout.split()
    assert sorted(f"{name}.yaml" for name in CONTROL_PLANE) == sorted(listing)
    assert hosts.ssh("control-1", f"ls -d {FOLDER}", check=False).returncode != 0
    assert set() == renewal.units(hosts)
    assert (False, True) == (is_there(api, MIRROR), is_there(api, DAEMON_SET))
