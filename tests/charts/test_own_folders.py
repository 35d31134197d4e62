"""Checks of one's own come with the folders that their settings name, as each kind of check states it; so it is in the
roles (test_roles.py)."""

from typing import Any

from kube import contract
from tests.charts.rendering import objects
from tools.kit.cases import cases

IMAGE = 'image={"repository":"localhost/readygate","tag":"dev"}'
WRITABLE, READ_ONLY = (True, "Directory"), (False, "Directory")
TWO_FOLDERS = {"/data": WRITABLE, "/more": WRITABLE}
TWO = '[{"name":"a","pressure":{"folder":"/host/var/lib"}},{"name":"b","certificates":{"folder":"/host/var/lib"}}]'


def mounted(checks: str, **more: str) -> dict[str, tuple[bool, str]]:
    """By path on the host: whether it can be written, and its type. Without those of the CNI, and without a ready-made
    list unless `more` names one."""
    also = "".join(f',"{key}":{value}' for key, value in ({"checkProfile": '""'} | more).items())
    sent: Any = objects(given=[IMAGE, f'agent={{"cni":{{"check":false}},"checks":{checks}{also}}}'])
    pod = sent["DaemonSet", contract.NAMESPACE, contract.NAME_AGENT]["spec"]["template"]["spec"]
    of_host = {v["name"]: v["hostPath"] for v in pod["volumes"] if "hostPath" in v}
    (agent,) = pod["containers"]
    return {
        of_host[mount["name"]]["path"]: (not mount["readOnly"], of_host[mount["name"]]["type"])
        for mount in agent["volumeMounts"]
        if mount["name"] in of_host
    }


@cases(
    "checks, expected",
    ("a command names none", '[{"name":"a","exec":{"command":["true"]}}]', {}),
    (
        "folders that a check writes in",
        '[{"name":"a","filesystem":{"mounts":["/host/data","/host/more"]}}]',
        TWO_FOLDERS,
    ),
    ("a socket's folder", '[{"name":"a","runtime":{"socket":"/host/run/crio/crio.sock"}}]', {"/run/crio": READ_ONLY}),
    ("below /host", '[{"name":"a","runtime":{"socket":["/host/run/a/a.sock","/run/b.sock"]}}]', {"/run/a": READ_ONLY}),
    ("no default leads to the host", '[{"name":"a","timeSync":{}},{"name":"b","certificates":{}}]', {}),
    ("one folder of two checks", TWO, {"/var/lib": WRITABLE}),
)
def test_what_checks_of_ones_own_are_given(checks: str, expected: dict[str, tuple[bool, str]]) -> None:
    assert expected == mounted(checks)


def test_a_folder_that_is_named_for_commands_too_is_still_written_in() -> None:
    checks = '[{"name":"a","filesystem":{"mounts":["/host/data"]}}]'
    assert {"/data": WRITABLE} == mounted(checks, hostPaths='["/data"]')


def test_one_of_a_ready_made_list_that_is_given_other_folders_takes_those() -> None:
    found = mounted('[{"name":"filesystem","filesystem":{"mounts":["/host/data"]}}]', checkProfile='"default"')
    assert (WRITABLE, False) == (found["/data"], "/var/lib/kubelet/readygate" in found)
