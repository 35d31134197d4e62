"""The agent as a service: what its unit grants, who it is, and which variables make sense."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from agent import settings as agent_settings
from agent.checks.profiles import PROFILES, not_run
from images.base import APPLETS
from tests.playbooks import node_rights
from tests.playbooks.rendering import filters, objects, plain, render
from tests.playbooks.test_roles import agent_configuration

ROLE = "readygate_node"
FILTERS = filters(ROLE)
IMAGE = {
    "id": "0123456789ab",
    "architecture": "amd64",
    "layers": [],
    "environment": ["PATH=/usr/bin"],
    "path": "/a.tar",
}
IDENTITY = {
    "name": "worker-1",
    "server": "https://192.0.2.10:6443",
    "certificate": "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "key": "/var/lib/kubelet/pki/kubelet-client-current.pem",
    "authority": "/etc/kubernetes/pki/ca.crt",
}
NOTHING = {
    "machine": "x86_64",
    "systemd": "252",
    "images": "",
    "revision": "",
    "state": " ",
    "open": "no",
    "intact": "no",
}
RIGHTS = "__readygate_node_rights"


def host(**seen: str) -> dict[str, Any]:
    """What is known of a host that was looked at: nothing of us, unless it is said."""
    lines = [f"{key}={value}" for key, value in (NOTHING | IDENTITY | {"status": ""} | seen).items()]
    return {"__readygate_node_images": [IMAGE], "__readygate_node_looked": {"stdout_lines": lines}}


WITHOUT_LIST = {"readygate_agent_check_profile": ""}
HOST = host() | WITHOUT_LIST  # so that what is seen is of the checks that a test names


def unit(**given: Any) -> list[str]:
    return render(ROLE, HOST | given)("lookup('ansible.builtin.template', 'readygate-node.service.j2')").splitlines()


def settings_of(lines: list[str], key: str) -> list[str]:
    return [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]


def check(kind: str, **keys: Any) -> dict[str, Any]:
    return {"name": "mine", kind: keys}


def test_what_checks_need_is_what_they_state():
    assert node_rights.text() == node_rights.FILE.read_text(), "run make manifests"


def test_without_checks_that_state_more_it_has_no_capability_and_no_device():
    lines = unit()
    assert ["", "yes", "yes"] == [
        settings_of(lines, key)[0] for key in ("CapabilityBoundingSet", "NoNewPrivileges", "PrivateDevices")
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, ["/opt/cni/bin:/host/opt/cni/bin", "/etc/cni:/host/etc/cni"], id="the CNI's"),
        pytest.param(
            {"readygate_agent_cni_bin_dirs": ["/a", "/b"]},
            ["-/a:/host/a", "-/b:/host/b", "/etc/cni:/host/etc/cni"],
            id="of several folders for plugins a host may lack some",
        ),
        pytest.param(
            {"readygate_node_host_paths": ["/var/log"]},
            ["/opt/cni/bin:/host/opt/cni/bin", "/etc/cni:/host/etc/cni", "/var/log:/host/var/log"],
            id="folders for checks of the user's own",
        ),
        pytest.param(
            {"readygate_node_cni_check": False, "readygate_node_checks": [check("exec", command=["true"])]},
            [],
            id="nothing where no check looks at the host",
        ),
    ],
)
def test_of_the_host_it_sees_what_its_checks_look_at(given, expected):
    assert expected == [path for path in settings_of(unit(**given), "BindReadOnlyPaths") if ":/host/" in path]


def test_of_the_kubelet_it_sees_the_folder_in_which_its_certificate_is_renewed_and_the_ca_of_the_cluster():
    paths = settings_of(unit(), "BindReadOnlyPaths")
    assert {"/var/lib/kubelet/pki", "/etc/kubernetes/pki/ca.crt"} == {
        path for path in paths if path[1:4] in ("var", "etc") and ":" not in path
    }


def test_its_configuration_is_seen_by_its_folder_so_that_a_file_in_its_place_is_seen_too():
    """As editors and `sed -i` make one. It is the folder of this configuration alone."""
    folder = render(ROLE, HOST)("__readygate_node_configuration_file").rpartition("/")[0]
    assert folder.startswith("/opt/readygate/node/configuration/")
    assert f"{folder}:/etc/readygate" in settings_of(unit(), "BindReadOnlyPaths")


def test_of_single_files_it_sees_those_alone_in_whose_folders_there_is_more_that_it_must_not():
    """What is put in their place by a rename it does not see until it starts anew."""
    words = [word for value in settings_of(unit(), "BindReadOnlyPaths") for word in value.split()]
    paths = {word.partition(":")[0].lstrip("-") for word in words}
    assert {"/etc/hosts", "/etc/resolv.conf", "/etc/kubernetes/pki/ca.crt"} == {
        path for path in paths if not path.startswith(("/etc/cni", "/opt/", "/run/", "/var/lib/kubelet/"))
    }


def test_a_ca_that_was_renewed_is_another_revision_so_the_play_starts_the_service_anew():
    revisions = [render(ROLE, host(authority_digest=one))("__readygate_node_revision") for one in ("a", "b")]
    assert revisions[0] != revisions[1]
    assert "# Authority: a" in unit(**host(authority_digest="a"))


def test_where_the_kubelet_tells_its_pods_the_service_can_ask_and_where_it_does_not_it_starts_all_the_same():
    section = configuration().node
    assert section is not None
    assert section.pods_socket is not None
    assert f"-{PurePosixPath(section.pods_socket).parent}" in settings_of(unit(), "BindReadOnlyPaths")


def test_it_is_who_the_kubelet_is():
    section = configuration().node
    assert section is not None
    assert IDENTITY == {
        "name": section.name,
        "server": section.server,
        "certificate": section.certificate,
        "key": section.key,
        "authority": section.certificate_authority,
    }


def test_what_the_inventory_says_of_the_node_goes_before_what_its_kubelet_says():
    pods = {"namespace": "storage", "labelSelector": "app=csi", "daemonSet": None}
    given = {
        "readygate_node_name": "a",
        "readygate_node_kubernetes_server": "https://b",
        "readygate_node_publish": False,
    }
    section = configuration(**given, readygate_node_health_pods=[pods]).node
    assert section is not None
    assert ("a", "https://b", False, "storage", None) == (
        section.name,
        section.server,
        section.publish,
        section.health_pods[0].namespace,
        section.health_pods[0].daemon_set,
    )


NO_RIGHTS: dict[str, Any] = {
    "reads": {},
    "writes": {},
    "devices": [],
    "capabilities": [],
    "host_pid": False,
    "clock": False,
    "pod_network": False,
}
LOG: dict[str, Any] = {"devices": ["/dev/kmsg"], "capabilities": ["CAP_SYSLOG"]}
STATED: dict[str, Any] = {
    "kernelLog": NO_RIGHTS | LOG | {"reads": {"/dev/kmsg": "/dev/kmsg"}},
    "peers": NO_RIGHTS | {"pod_network": True},
    "clocks": NO_RIGHTS | {"clock": True},
    "writable": NO_RIGHTS
    | {"reads": {"socket": "/run/containerd/x.sock"}, "writes": {"paths": ["/host/var"]}, "host_pid": True},
}
RUNTIME = ["/run/containerd"]


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        pytest.param([check("kernelLog")], LOG, id="a device and a capability"),
        pytest.param(
            [check("writable"), check("writable", paths=["/host/a", "/host/var"])],
            {"reads": RUNTIME, "writes": ["/host/var", "/host/a"], "host_pid": True},
            id="what keys name, or their defaults, each once",
        ),
        pytest.param(
            [check("clocks"), check("kernelLog")], LOG | {"clock": True}, id="the clock, once one asks for it"
        ),
        pytest.param(
            [check("peers"), check("clocks")],
            {"clock": True, "pod_network": True},
            id="the network of pods, once one asks for it",
        ),
        pytest.param(
            [{"name": "mine", "writable": None}],
            {"reads": RUNTIME, "writes": ["/host/var"], "host_pid": True},
            id="a check without keys",
        ),
    ],
)
def test_needs_of_several_checks_together(checks, expected):
    assert NO_RIGHTS | {"reads": [], "writes": []} | expected == FILTERS["readygate_node_needs"](checks, STATED)


def test_what_a_check_writes_is_writable_and_its_device_readable():
    value = render(ROLE, HOST | {"readygate_node_checks": [check("writable"), check("kernelLog")]}, {RIGHTS: STATED})
    lines = value("lookup('ansible.builtin.template', 'readygate-node.service.j2')").splitlines()
    expected = {
        "BindPaths": ["/var:/host/var"],
        "ReadWritePaths": ["/host/var"],
        "DeviceAllow": ["/dev/kmsg r"],
        "PrivateDevices": [],
        "ProtectKernelLogs": ["no"],
        "ProtectProc": [],
        "CapabilityBoundingSet": ["CAP_SYSLOG"],
    }
    assert expected == {key: settings_of(lines, key) for key in expected}


def test_it_reads_its_configuration_again_when_systemd_is_asked_to_reload_it():
    """By a program that the image has, as the unit's root is the image's."""
    assert settings_of(unit(), "ExecReload") == ["/bin/kill -HUP $MAINPID"]
    assert "kill" in APPLETS


def test_a_check_that_the_kernel_ends_for_its_memory_does_not_end_the_agent():
    assert ["continue"] == settings_of(unit(), "OOMPolicy")


@pytest.mark.parametrize(
    ("checks", "protects", "calls"),
    [
        pytest.param([], ["yes"], ["@system-service"], id="it cannot even be looked at"),
        pytest.param(
            [check("timeSync")], [], ["@system-service adjtimex clock_adjtime"], id="for a check that looks at it"
        ),
    ],
)
def test_the_clock_is_out_of_reach_but_for_who_looks_at_it(checks, protects, calls):
    lines = unit(readygate_node_checks=checks)
    assert (protects, calls) == (settings_of(lines, "ProtectClock"), settings_of(lines, "SystemCallFilter"))
    assert "CAP_SYS_TIME" not in "".join(settings_of(lines, "CapabilityBoundingSet"))


def configuration(**given: Any) -> agent_settings.Settings:
    return agent_settings.parse(render(ROLE, HOST | given)("__readygate_node_configuration").encode())


def test_its_checks_are_those_of_the_pods():
    given = {
        "readygate_agent_profile": "fast",
        "readygate_agent_checks": [{"name": "dns", "tcpSocket": {"port": 53}, "periodSeconds": 7}],
    }
    in_pods = agent_configuration(objects("readygate_agent", WITHOUT_LIST | given))
    assert in_pods.checks == configuration(**given).checks


CNI = ["/opt/cni/bin:/host/opt/cni/bin", "/etc/cni:/host/etc/cni"]
RUNTIMES = [f"-{path}:/host{path}" for path in ("/run/containerd", "/run/crio", "/run/k3s/containerd")]
STATE = ["-/var/lib/cni/networks:/host/var/lib/cni/networks", "-/var/lib/kubelet/pki:/host/var/lib/kubelet/pki"]


@pytest.mark.parametrize(
    ("given", "reads", "writes", "capabilities"),
    [
        pytest.param({"readygate_agent_check_profile": "minimal"}, CNI, [], "", id="minimal"),
        pytest.param(
            {"readygate_agent_check_profile": "default"},
            [*CNI, *RUNTIMES, *STATE],
            ["/var/lib/kubelet:/host/var/lib/kubelet"],
            "CAP_SYSLOG",
            id="default",
        ),
        pytest.param(
            {
                "readygate_agent_check_profile": "storage",
                "readygate_agent_leave_out": ["kernel-log", "pod-addresses", "certificates"],
                "readygate_agent_checks": [{"name": "runtime", "runtime": {"socket": "/host/run/x/x.sock"}}],
            },
            ["/opt/cni/bin:/host/opt/cni/bin", "/etc/cni:/host/etc/cni", "/run/x:/host/run/x"],
            ["/var/lib/kubelet:/host/var/lib/kubelet"],
            "",
            id="what is left out takes nothing, what is the user's own what it says",
        ),
    ],
)
def test_a_ready_made_list_of_checks_takes_what_its_checks_state(given, reads, writes, capabilities):
    lines = unit(**given)
    seen = [path for path in settings_of(lines, "BindReadOnlyPaths") if ":/host/" in path]
    found = (sorted(seen), settings_of(lines, "BindPaths"), settings_of(lines, "CapabilityBoundingSet"))
    assert (sorted(reads), writes, [capabilities]) == found
    names = {check.name for check in configuration(**given).checks}
    profile = given["readygate_agent_check_profile"]
    listed = {*PROFILES[profile]} - {*not_run(profile, "node")} - {*given.get("readygate_agent_leave_out", [])}
    assert listed == names


def test_anything_that_changes_is_another_revision_and_another_file():
    def named(**given: Any) -> tuple[str, str]:
        value = render(ROLE, HOST | given)
        return value("__readygate_node_revision"), value("__readygate_node_configuration_file")

    first = named()
    assert first == named()
    other_checks = named(readygate_node_check_period_seconds=5)
    assert first[0] != other_checks[0]
    assert first[1] != other_checks[1]
    other_limits = named(readygate_node_memory_max="256M")
    assert first[0] != other_limits[0]
    assert first[1] == other_limits[1]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param({}, True, id="this revision, running, started at boot"),
        pytest.param({"revision": "another"}, False, id="another revision"),
        pytest.param({"state": "failed enabled"}, False, id="it does not run"),
        pytest.param({"state": "active disabled"}, False, id="it would not start at boot"),
        pytest.param({"open": "yes"}, False, id="a change that was interrupted"),
        pytest.param({"intact": "no"}, False, id="a configuration that somebody has edited"),
    ],
)
def test_a_host_is_left_alone_only_where_all_is_as_wanted(lines, expected):
    seen = {"revision": render(ROLE, HOST)("__readygate_node_revision"), "state": "active enabled", "intact": "yes"}
    looked = host(**seen | lines) | WITHOUT_LIST
    assert expected == render(ROLE, looked)("__readygate_node_in_place | bool")


# Variables


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"readygate_node_serial": ["1", "x%", 0]}, "which these are not: x%, 0", id="batches"),
        pytest.param({"readygate_node_max_failed_percent": 101}, "must be 0 to 100", id="a share"),
        pytest.param({"readygate_node_host_paths": ["var", "/a b"]}, "which these are not: var, /a b", id="folders"),
        pytest.param({"readygate_node_checks": [{"exec": {}}]}, "a name of its own", id="a check without a name"),
        pytest.param({"readygate_node_min_ready_seconds": 0}, "must be 1 or more", id="no time at all"),
    ],
)
def test_a_mistake_in_a_variable_is_told(given, expected):
    (told,) = plain(render(ROLE, HOST | given)("__readygate_node_mistakes"))
    assert expected in told


def test_nothing_is_wrong_with_the_defaults():
    assert [] == plain(render(ROLE, HOST)("__readygate_node_mistakes"))
    assert json.loads(node_rights.FILE.read_text())
