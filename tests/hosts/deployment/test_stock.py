"""A DaemonSet that nobody wrote for us is a gate by one entry: its objects know nothing of readygate, nor do the nodes.

The stand-in is made as a third party would: a namespace of its own, a readiness probe, an affinity that keeps it off
control planes; no toleration, no label of ours, no readiness gate.
"""

import json

import pytest

from extender.policy import reasons
from tests.hosts.deployment.conftest import ARMED
from tests.hosts.deployment.landing import POD_URL, repaired
from tests.hosts.deployment.probing import PODS, clear, pod, told
from tests.hosts.waiting import wait_for
from tools.testbed.hosts.images import PAUSE
from tools.testbed.shared.api import ApiError, condition

NODE = "worker-1"
NAMESPACE = "third-party"
RIGHTS = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/readygate-extender"
FOLDER = "/run/third-party"  # of each host; the file in it is what the stand-in needs to be Ready
LABELS = {"app": "driver"}
DAEMON_SET = {
    "metadata": {"name": "driver"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "node-role.kubernetes.io/control-plane", "operator": "DoesNotExist"}
                                    ]
                                }
                            ]
                        }
                    }
                },
                "containers": [
                    {
                        "name": "driver",
                        "image": PAUSE,
                        "imagePullPolicy": "IfNotPresent",
                        "readinessProbe": {
                            "exec": {"command": ["/busybox", "test", "-e", "/host/works"]},
                            "periodSeconds": 1,
                            "failureThreshold": 2,
                        },
                        "volumeMounts": [{"name": "host", "mountPath": "/host"}],
                    }
                ],
                "volumes": [{"name": "host", "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"}}],
            },
        },
    },
}
ENTRY = {
    "name": "driver",
    "healthPods": {"namespace": NAMESPACE, "labelSelector": "app=driver", "daemonSet": "driver"},
    "for": {"podSelector": "needs=driver"},
}


@pytest.fixture(scope="module")
def stock(hosts, api, ansible, deployed):  # noqa: ARG001
    """The stand-in, Ready on both workers, and one entry more in the inventory's gates."""
    for host in hosts.names:
        hosts.ssh(host, f"mkdir -p {FOLDER} && touch {FOLDER}/works")
    api.create_unless_there("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    api.create_unless_there(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets", DAEMON_SET)
    (ours,) = ARMED["readygate_extender_configuration"]["gates"]
    variables = ARMED | {"readygate_extender_configuration": {"gates": [ours, ENTRY]}}
    run = ansible.run("site.yml", tags="readygate_extender", **variables)
    assert run.code == 0, run.told()
    assert wait_for(lambda: decided(hosts, NODE)["reason"] == ""), decided(hosts, NODE)
    yield
    api.delete(f"/api/v1/namespaces/{NAMESPACE}")


def decided(hosts, node):
    """What the entry has decided of the node."""
    said = hosts.ssh("control-1", f"curl --silent --fail http://127.0.0.1:9377/api/v1/nodes/{node}").stdout
    (found,) = [gate for gate in json.loads(said)["node"]["gates"] if gate["gate"] == ENTRY["name"]]
    return found


def send(api, name, node, *, needs):
    made = pod(name, node, PAUSE)
    made["metadata"]["labels"] |= {"needs": "driver"} if needs else {}
    api.create(PODS, made)


def bound(api, name):
    return wait_for(lambda: api.get(f"{PODS}/{name}")["spec"].get("nodeName"))


@pytest.mark.usefixtures("stock")
def test_its_pod_closes_its_node_for_the_pods_that_need_it_and_heals_them(hosts, api):
    clear(api)
    (its,) = [
        p
        for p in api.items(f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3Ddriver")
        if p["spec"]["nodeName"] == NODE
    ]
    try:
        hosts.ssh(NODE, f"rm {FOLDER}/works")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{its['metadata']['name']}"
        assert wait_for(lambda: condition(api.get(path), "Ready")["status"] == "False")
        send(api, "probing-needs-it", NODE, needs=True)
        waits = wait_for(lambda: told(api, "probing-needs-it"))
        assert reasons.CLOSED_NOT_READY in (waits or ""), waits
        send(api, "probing-does-not", NODE, needs=False)
        send(api, "probing-where-it-cannot-run", "control-1", needs=True)
        send(api, "probing-where-it-is-ready", "worker-2", needs=True)
        landed = {
            name: bound(api, f"probing-{name}") for name in ("does-not", "where-it-cannot-run", "where-it-is-ready")
        }
        assert landed == {"does-not": NODE, "where-it-cannot-run": "control-1", "where-it-is-ready": "worker-2"}
        assert told(api, "probing-needs-it"), "it waits all the while"
    finally:
        hosts.ssh(NODE, f"touch {FOLDER}/works")
    assert bound(api, "probing-needs-it") == NODE
    clear(api)


@pytest.mark.usefixtures("stock")
def test_nodes_it_cannot_run_on_are_not_gated_and_shown_as_such(hosts):
    seen = decided(hosts, "control-1")
    assert (True, "not-gated") == (seen["open"], seen["heldBy"])
    assert "node-role.kubernetes.io/control-plane" in seen["note"]


@pytest.mark.usefixtures("stock")
def test_its_objects_and_the_nodes_carry_nothing_of_ours(api):
    """But what we write on nodes for people, and to wake the scheduler."""
    theirs = [
        api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/driver")["spec"],
        [(p["metadata"]["labels"], p["spec"]) for p in api.items(f"/api/v1/namespaces/{NAMESPACE}/pods")],
        [(n["metadata"]["labels"], n["spec"].get("taints")) for n in api.items("/api/v1/nodes")],
    ]
    assert "readygate" not in json.dumps(theirs)


def test_site_yml_repairs_a_deleted_namespace_and_what_an_entry_that_is_gone_gave(hosts, api, ansible, stock):  # noqa: ARG001
    """In protect. What the entry gave is a right in its own namespace, which nobody has deleted."""
    assert api.get(RIGHTS)["rules"], "with the entry its pods may be read"
    assert repaired(api, ansible, ARMED)
    assert hosts.ssh("control-1", f"curl --silent --fail {POD_URL}/readyz").returncode == 0
    with pytest.raises(ApiError, match="not found"):
        api.get(RIGHTS)
