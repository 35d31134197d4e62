"""What the agent finds of a real kubelet that lives and does not do: its Lease stands still, its PLEG is not healthy.

The second takes its three minutes: so long a kubelet waits before it says so (genericPlegRelistThreshold in
pkg/kubelet/kubelet.go), so only `make test-all` plays it.
"""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from agent.opinion.verdict import KUBELET_LEASE_SILENT
from agent.wire.condition import REASON_PLEG_UNHEALTHY
from tests.hosts.service.node_mode import Node, Verdicts
from tests.hosts.waiting import wait_until
from tools.kit.programs import Program
from tools.kit.scope import WHOLE

NAME = "readygate-test-no-renewals"
# Three minutes, and the time that a call that hangs takes to tell of it; under load more.
DEADLINE_S = 900.0


def found(node: Node, finding: str, since: int) -> Callable[[], list[str]]:
    """That it is found, and that it no longer is, in what the log has beyond so many characters."""

    def said() -> list[str]:
        text = node.log.read_text(errors="replace")[since:]
        return re.findall(rf'judge (found|found no longer) finding="{finding}"', text)

    return said


@contextmanager
def runtime_stands_still(node: Node) -> Iterator[None]:
    node.ssh("systemctl kill --kill-whom=main --signal=STOP containerd")
    try:
        yield
    finally:
        node.ssh("systemctl kill --kill-whom=main --signal=CONT containerd")


@contextmanager
def lease_is_not_renewed(node: Node) -> Iterator[None]:
    """The API server refuses the node's renewals, as somebody's policy may."""
    leases = {"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["leases"]}
    mine = f"object.metadata.namespace != 'kube-node-lease' || object.metadata.name != '{node.name}'"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": NAME}}
    matched = {"resourceRules": [{**leases, "operations": ["UPDATE"]}]}
    policy = {"matchConstraints": matched, "validations": [{"expression": mine}]}
    objects = [
        {**kind, "kind": "ValidatingAdmissionPolicy", "spec": policy},
        {
            **kind,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": NAME, "validationActions": ["Deny"]},
        },
    ]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    node.hosts.kubectl("apply", "-f-", stdin=listed)
    try:
        yield
    finally:
        node.hosts.kubectl("delete", "--ignore-not-found", "-f-", stdin=listed)


UNHEALTHY = pytest.param(REASON_PLEG_UNHEALTHY, runtime_stands_still, True, id="its PLEG is not healthy, which closes")


@pytest.mark.parametrize(
    ("finding", "fault", "closes"),
    [
        pytest.param(KUBELET_LEASE_SILENT, lease_is_not_renewed, False, id="its Lease stands still, which is told"),
        *([UNHEALTHY] if WHOLE else []),
    ],
)
def test_a_kubelet_that_lives_and_does_not_do_is_found_and_is_well_again(
    nodes: list[Node], extender: Program, finding: str, fault: Callable[[Node], object], closes: bool
) -> None:
    """In both cases the cluster itself comes to call the node not ready, and its pods, which closes as well."""
    node = nodes[0]
    with Verdicts(extender, node.name).asked() as verdicts, node.read():
        wait_until(node.ours, "it has said something")
        said = found(node, finding, len(node.log.read_text(errors="replace")))
        began = time.monotonic()
        with fault(node):  # type: ignore[attr-defined]
            wait_until(said, f"{finding} is said", timeout_s=DEADLINE_S)
            found_s = time.monotonic() - began
            if closes:
                wait_until(verdicts.is_last("closed"), lambda: f"it closes: {verdicts.seen}")
            over = time.monotonic()
        wait_until(lambda: len(said()) > 1, f"{finding} is over")
        back_s = time.monotonic() - over
        wait_until(verdicts.is_last("open"), lambda: f"it is open: {verdicts.seen}")
    print(json.dumps({finding: {"found_s": round(found_s, 1), "back_s": round(back_s, 1)}}))
    assert ["found", "found no longer"] == said()
