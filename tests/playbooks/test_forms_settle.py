"""No extender is taken from a scheduler that the run leaves out: that would ask where nobody is, and in enforce place
nothing any more."""

import difflib
import json
from typing import Any

import pytest
import yaml

from tests.playbooks.rendering import ADMIN_SERVER, ROLES, render

ROLE = "readygate_extender"
SCHEDULERS = "readygate_scheduler_config"
THREE = {"groups": {"control_plane": ["a", "b", "c"]}, "ansible_play_hosts_all": ["a", "b", "c"]}
RUNS = [
    pytest.param({}, True, id="all of the play"),
    pytest.param({"ansible_run_tags": [ROLE, SCHEDULERS]}, True, id="with the schedulers' part"),
    pytest.param({"ansible_run_tags": [ROLE]}, False, id="without it"),
    pytest.param({"ansible_skip_tags": [SCHEDULERS]}, False, id="with it skipped"),
]
DAEMON_SET = {"stdout": json.dumps({"status": {"desiredNumberScheduled": 3}})}


def task_of(file: str, name: str) -> dict[str, Any]:
    (found,) = [
        one for one in yaml.safe_load((ROLES / ROLE / "tasks" / f"{file}.yml").read_text()) if one["name"] == name
    ]
    return dict(found)


def is_done(file: str, name: str, given: dict[str, Any]) -> bool:
    when = task_of(file, name)["when"]
    value = render(ROLE, ADMIN_SERVER | THREE | given)
    return all(bool(value(f"({one})")) for one in (when if isinstance(when, list) else [when]))


@pytest.mark.parametrize(("run", "goes"), RUNS)
def test_the_static_pod_goes_where_the_schedulers_have_followed_to_the_daemon_set(run, goes):
    given = {"__readygate_extender_other": {"stat": {"exists": True}}} | run
    names = ("Settle | Replace the static pod of this host", "Settle | Report why the static pod stays")
    assert (goes, not goes) == tuple(is_done("settle_daemonset", name, given) for name in names)


@pytest.mark.parametrize(("run", "goes"), [*RUNS, pytest.param({"ansible_play_hosts_all": ["a"]}, False, id="--limit")])
def test_the_daemon_set_goes_where_the_schedulers_have_followed_to_the_static_pods(run, goes):
    given = {"readygate_extender_form": "static", "__readygate_extender_other": DAEMON_SET} | run
    names = (
        "Settle | Delete the DaemonSet if this play covers every host of its pods",
        "Settle | Delete its configurations",
        "Settle | Report why the DaemonSet stays",
    )
    assert (goes, goes, not goes) == tuple(is_done("settle_static", name, given) for name in names)


def manifest(**given: Any) -> str:
    value = render(ROLE, ADMIN_SERVER | {"readygate_extender_form": "static"} | given)
    return str(value("lookup('ansible.builtin.template', 'static-pod.yaml.j2')"))


@pytest.mark.parametrize(
    ("before", "changed", "elsewhere"),
    [
        pytest.param(None, {}, False, id="the first one"),
        pytest.param({}, {}, False, id="nothing"),
        pytest.param({}, {"readygate_extender_image": "registry.example/readygate:2"}, False, id="the image"),
        pytest.param({}, {"readygate_extender_port": 9000}, True, id="the port"),
        pytest.param({}, {"readygate_extender_tls_secret": "extender-tls"}, True, id="plain HTTP or TLS"),
        pytest.param({"readygate_extender_tls_secret": "a"}, {}, True, id="and back"),
    ],
)
def test_a_static_pod_that_is_asked_elsewhere_is_known_by_what_changes_of_its_manifest(before, changed, elsewhere):
    texts = [[] if given is None else manifest(**given).splitlines(keepends=True) for given in (before, changed)]
    compared = {"stdout": "".join(difflib.unified_diff(*texts))}
    value = render(ROLE, {"__readygate_extender_compared": compared})
    assert elsewhere == value("__readygate_extender_asked_otherwise")


METHOD, MODE = "readygate_scheduler_config_method", "readygate_scheduler_config_mode"
BY_HAND = [
    pytest.param({METHOD: "kubespray", MODE: "enforce"}, False, id="in enforce, by kubespray's next run"),
    pytest.param({METHOD: "none", MODE: "enforce"}, False, id="in enforce, by hand"),
    pytest.param({METHOD: "systemd", MODE: "enforce"}, True, id="in enforce, by this run"),
    pytest.param({METHOD: "kubespray", MODE: "protect"}, True, id="in protect, where pods are placed all the same"),
]


@pytest.mark.parametrize(("run", "follows"), [*RUNS, *BY_HAND])
def test_it_is_left_as_it_is_where_the_scheduler_of_its_host_does_not_follow(run, follows):
    task = task_of("static", "Static | Check that the scheduler of this host follows a change of the URL")
    value = render(ROLE, THREE | {"__readygate_extender_asked_otherwise": True} | run)
    assert follows == bool(value(f"({task['ansible.builtin.assert']['that']})"))
