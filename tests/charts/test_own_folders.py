"""Checks of one's own come with the folders that their settings name, as each kind of check states it; so it is in the
roles (test_roles.py)."""

from typing import Any

import pytest

from kube import contract
from tests.charts.rendering import objects

IMAGE = 'image={"repository":"localhost/readygate","tag":"dev"}'


def mounted(checks: str, **more: str) -> dict[str, tuple[bool, str]]:
    """By path on the host: whether it can be written, and its type. Without those of the CNI."""
    also = "".join(f',"{key}":{value}' for key, value in more.items())
    sent: Any = objects(given=[IMAGE, f'agent={{"cni":{{"check":false}},"checks":{checks}{also}}}'])
    pod = sent["DaemonSet", contract.NAMESPACE, contract.NAME_AGENT]["spec"]["template"]["spec"]
    of_host = {v["name"]: v["hostPath"] for v in pod["volumes"] if "hostPath" in v}
    (agent,) = pod["containers"]
    return {
        of_host[mount["name"]]["path"]: (not mount["readOnly"], of_host[mount["name"]]["type"])
        for mount in agent["volumeMounts"]
        if mount["name"] in of_host
    }


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        pytest.param('[{"name":"a","exec":{"command":["true"]}}]', {}, id="a command names none"),
        pytest.param(
            '[{"name":"a","filesystem":{"mounts":["/host/data","/host/more"]}}]',
            {"/data": (True, "Directory"), "/more": (True, "Directory")},
            id="what a check writes in",
        ),
        pytest.param(
            '[{"name":"a","runtime":{"socket":"/host/run/crio/crio.sock"}}]',
            {"/run/crio": (False, "Directory")},
            id="of a socket its folder",
        ),
        pytest.param(
            '[{"name":"a","runtime":{"socket":["/host/run/a/a.sock","/run/b.sock"]}}]',
            {"/run/a": (False, "Directory")},
            id="of several those below /host",
        ),
        pytest.param(
            '[{"name":"a","timeSync":{}},{"name":"b","certificates":{}}]', {}, id="no default leads to the host"
        ),
        pytest.param(
            '[{"name":"a","pressure":{"folder":"/host/var/lib"}},{"name":"b","certificates":{"folder":"/host/var/lib"}}]',
            {"/var/lib": (True, "Directory")},
            id="one folder of two checks",
        ),
    ],
)
def test_what_checks_of_ones_own_are_given(checks: str, expected: dict[str, tuple[bool, str]]) -> None:
    assert expected == mounted(checks)


def test_a_folder_that_is_named_for_commands_too_is_still_written_in() -> None:
    checks = '[{"name":"a","filesystem":{"mounts":["/host/data"]}}]'
    assert {"/data": (True, "Directory")} == mounted(checks, hostPaths='["/data"]')


def test_one_of_a_ready_made_list_that_is_given_other_folders_takes_those() -> None:
    found = mounted('[{"name":"filesystem","filesystem":{"mounts":["/host/data"]}}]', checkProfile='"default"')
    assert ((True, "Directory"), False) == (found["/data"], "/var/lib/kubelet/readygate" in found)
