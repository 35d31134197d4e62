"""Several gates in one real process: who is refused by which, what orders do, and what a restart remembers."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from extender.policy.reasons import CLOSED_HELD, CLOSED_NO_HEALTH_POD, CLOSED_NOT_READY
from tests.extender.builders import node_json, owner, pod_json
from tests.scripted.extender_process import ExtenderProcess
from tests.scripted.status_api_process import StatusApiProcess
from tools.fakes.api_server import FakeApiServer

GPU_POD = {
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
}
GATES = [
    {"name": "health"},
    {
        "name": "gpu",
        "healthPods": {"namespace": "gpu-operator", "labelSelector": "app=validator", "daemonSet": "validator"},
        "for": {"resources": ["nvidia.com/gpu"]},
    },
]
CONFIG = {"gates": GATES, "heartbeat": {"limitSeconds": 0}}
ORDERS = ("ConfigMap", "readygate-orders", "readygate-system")


def validator(on, **statuses):
    """A health pod of the gate `gpu`."""
    pod = pod_json(on, name=f"validator-{on}", namespace="gpu-operator", owners=[owner("validator")], **statuses)
    pod["metadata"]["labels"] = {"app": "validator"}
    return pod


def daemon_set(name, namespace, **selector):
    template = {"spec": {"nodeSelector": selector}}
    return {
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": template},
    }


def orders(**entries):
    """The ConfigMap: by id, the order."""
    data = {id_.replace("_", "-"): json.dumps(entry) for id_, entry in entries.items()}
    return {"kind": "ConfigMap", "metadata": {"name": ORDERS[1], "namespace": ORDERS[2]}, "data": data}


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    """Nodes n1 to n3, healthy at both gates but for n2, whose `gpu` is not; and w1, where no validator can run."""
    with FakeApiServer() as api:
        for name in ("n1", "n2", "n3"):
            node = node_json(name, Ready="True")
            node["metadata"]["labels"] = {"gpu": "yes"}
            api.put(node)
            api.put(pod_json(name))
            api.put(validator(name, Ready="False" if name == "n2" else "True"))
        api.put(node_json("w1", Ready="True"))
        api.put(pod_json("w1"))
        api.put(daemon_set("readygate-agent", "readygate-system"))
        api.put(daemon_set("validator", "gpu-operator", gpu="yes"))
        yield api


def asked(process, *names, pod=None):
    """By name: why it is refused."""
    found = process.filter(list(names), **({} if pod is None else {"pod": pod}))
    assert not found.Error
    return found.FailedAndUnresolvableNodes


def test_each_pod_is_kept_off_by_the_gates_that_speak_for_it(api, tmp_path):
    with ExtenderProcess(api, tmp_path, config=CONFIG) as process, ExitStack() as leave:
        process.wait_ready()
        status_api = leave.enter_context(StatusApiProcess(process.settings, tmp_path))
        status_api.wait_follows()
        for one in (process, status_api):
            one.wait(lambda one=one: asked(one, "n1", "n2", "w1") == {})
            one.wait(lambda one=one: asked(one, "n1", "n2", "w1", pod=GPU_POD) == {"n2": CLOSED_NOT_READY})
        api.put(pod_json("n1", Ready="False"))
        for one in (process, status_api):
            one.wait(lambda one=one: asked(one, "n1", "n2", "w1") == {"n1": CLOSED_NOT_READY})
            one.wait(
                lambda one=one: asked(one, "n1", "n2", pod=GPU_POD) == dict.fromkeys(("n1", "n2"), CLOSED_NOT_READY)
            )
        api.put(daemon_set("validator", "gpu-operator"))  # it could run on w1 now, and there is none
        process.wait(lambda: asked(process, "w1", pod=GPU_POD) == {"w1": CLOSED_NO_HEALTH_POD})
        assert asked(process, "w1") == {}


def test_what_operators_order_holds_from_one_moment_to_the_next(api, tmp_path):
    with ExtenderProcess(api, tmp_path, config=CONFIG) as process:
        process.wait_ready()
        assert asked(process, "n1", "n3") == {}
        api.put(orders(disk={"order": "hold", "scope": {"node": "n1"}, "author": "anna", "reason": "disk"}))
        process.wait(lambda: asked(process, "n1", "n3") == {"n1": CLOSED_HELD})
        gpu = {"order": "exempt", "scope": {"node": "n2", "gate": "gpu"}}
        api.put(orders(driver=gpu, rubbish={"order": "explode"}))
        process.wait(lambda: asked(process, "n1", "n2", "n3", pod=GPU_POD) == {})
        process.wait(lambda: "order ignored" in process.log)
        api.delete(*ORDERS)
        process.wait(lambda: asked(process, "n2", pod=GPU_POD) == {"n2": CLOSED_NOT_READY})
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 8))
        api.put(orders(disk={"order": "hold", "scope": {"node": "n1"}, "expires": soon}))
        process.wait(lambda: asked(process, "n1") == {"n1": CLOSED_HELD})
        process.wait(lambda: asked(process, "n1") == {})


def test_a_gate_in_shadow_refuses_nothing_until_it_is_armed_without_a_restart(api, tmp_path):
    config = CONFIG | {"gates": [gate | {"enforcement": "shadow"} for gate in GATES]}
    api.put(pod_json("n1", Ready="False"))
    with ExtenderProcess(api, tmp_path, config=config) as process:
        process.wait_ready()
        assert asked(process, "n1", "n2", pod=GPU_POD) == {}
        api.put(orders(go={"order": "arm", "scope": {"gate": "health"}}))
        process.wait(lambda: asked(process, "n1", "n2", pod=GPU_POD) == {"n1": CLOSED_NOT_READY})
        process.wait(lambda: 'gate armed gate="health"' in process.log)
        api.delete(*ORDERS)
        process.wait(lambda: asked(process, "n1", "n2", pod=GPU_POD) == {})


def answers_of_the_start(process):
    """All that is answered of n1 until it has been answered for a second."""
    given, first = [], None
    while first is None or time.monotonic() - first < 1.0:
        found = process.filter(["n1"])
        if not found.Error:
            first = first or time.monotonic()
            given.append(tuple(found.FailedAndUnresolvableNodes.values()))
    return set(given)


def test_a_restart_forgets_no_order_though_it_is_told_of_them_last(api, tmp_path):
    """Nodes and health pods are there at once; the orders' list fails at first, and is asked for again within 1.6 s."""
    api.put(orders(disk={"order": "hold", "scope": {"node": "n1"}}))
    api.answer_next(503, path="/configmaps")
    with ExtenderProcess(api, tmp_path, config=CONFIG) as process:
        assert answers_of_the_start(process) == {(CLOSED_HELD,)}


@pytest.mark.parametrize("path", ["/configmaps", "/daemonsets"])
def test_without_the_right_to_read_them_it_starts_and_says_so_once(api, tmp_path, path):
    api.answer_next(403, reason="Forbidden", path=path, times=1000)
    with ExtenderProcess(api, tmp_path, config=CONFIG) as process:
        process.wait_ready()
        assert asked(process, "n1") == {}
        process.wait(lambda: "decided without inputs that could not be read yet" in process.log)
        time.sleep(2)
        assert process.log.count("decided without") == 1
        assert process.get("/readyz")[0] == 200


def test_orders_that_never_come_keep_nobody_waiting_for_long(api, tmp_path):
    api.stall_next(path="/configmaps", times=100)
    with ExtenderProcess(api, tmp_path, config=CONFIG) as process:
        process.wait_ready(timeout_s=20)  # they come never
        assert asked(process, "n1") == {}


def test_orders_stay_while_the_api_server_is_away(api, tmp_path):
    api.put(orders(disk={"order": "hold", "scope": {"node": "n1"}}))
    with ExtenderProcess(api, tmp_path, config=CONFIG) as process:
        process.wait_ready()
        api.refuse()
        process.wait(lambda: "ConnectionRefused" in process.log)
        time.sleep(1)
        assert asked(process, "n1", "n3") == {"n1": CLOSED_HELD}
        api.listen()


NODES = [f"m{number}" for number in range(20)]
BRAKES = {"cap": {"cluster": None, "gate": "30%"}, "storm": False, "heartbeat": {"limitSeconds": 0}}
STORM = {"cap": False, "storm": {"percent": 20, "atLeast": 3, "withinSeconds": 60, "calmSeconds": 1}}


@pytest.fixture
def many(api):
    """Twenty healthy nodes more."""
    for name in NODES:
        api.put(node_json(name, Ready="True"))
        api.put(pod_json(name))
    return api


def test_of_many_that_fail_one_by_one_no_more_are_closed_than_the_cap_allows(many, tmp_path):
    with ExtenderProcess(many, tmp_path, config=BRAKES) as process:
        process.wait_ready()
        for name in NODES[:12]:
            many.put(pod_json(name, Ready="False"))
        process.wait(lambda: len(asked(process, *NODES)) == 7)  # 30 % of 24
        process.wait(lambda: "cap reached" in process.log)
        many.put(pod_json(NODES[0]))
        process.wait(lambda: len(asked(process, *NODES)) == 7 and NODES[0] not in asked(process, *NODES))
        for name in NODES[:12]:
            many.put(pod_json(name))
        process.wait(lambda: asked(process, *NODES) == {})


def test_many_that_fail_at_once_are_held_open_by_a_storm_until_it_is_calm(many, tmp_path):
    with ExtenderProcess(many, tmp_path, config=STORM | {"heartbeat": {"limitSeconds": 0}}) as process:
        process.wait_ready()
        many.hold_events()
        for name in NODES:
            many.put(pod_json(name, Ready="False"))
        many.release_events()
        process.wait(lambda: "storm began" in process.log)
        process.wait(lambda: asked(process, *NODES) == {})
        for name in NODES[1:]:
            many.put(pod_json(name))
        process.wait(lambda: asked(process, *NODES) == {NODES[0]: CLOSED_NOT_READY})
        assert "storm ended" in process.log


def claim_of(name, volume="", storage_class="fast"):
    spec = {"volumeName": volume, "storageClassName": storage_class}
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def with_claim(name):
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    return {"metadata": {"name": "db", "namespace": "default"}, "spec": {"volumes": [volume]}}


def test_a_gate_speaks_for_the_volumes_of_its_driver(api, tmp_path):
    api.put({"kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "fast.csi.example.com"})
    api.put({"kind": "PersistentVolume", "metadata": {"name": "pv-1"}, "spec": {"nfs": {"path": "/"}}})
    api.put(claim_of("fast"))
    api.put(claim_of("old", volume="pv-1"))
    gates = [GATES[0], GATES[1] | {"for": {"csiDrivers": ["fast.csi.example.com"]}}]
    with ExtenderProcess(api, tmp_path, config=CONFIG | {"gates": gates}) as process:
        process.wait_ready()
        refused = {"n2": CLOSED_NOT_READY}
        assert [refused, {}, {}] == [
            asked(process, "n1", "n2", pod=pod) for pod in (with_claim("fast"), with_claim("old"), GPU_POD)
        ]
        assert asked(process, "n2", pod=with_claim("unknown")) == refused
        api.put(claim_of("unknown", volume="pv-1"))
        process.wait(lambda: asked(process, "n2", pod=with_claim("unknown")) == {})


def claims_devices(*, claim="", template=""):
    named = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    return {
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"resourceClaims": [{"name": "gpu"} | named], "containers": [{"name": "c"}]},
    }


def device_request(device_class):
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": device_class}}]}}


def device_claim(name, device_class):
    meta = {"name": name, "namespace": "default"}
    return {"kind": "ResourceClaim", "metadata": meta, "spec": device_request(device_class)}


def device_class(name, driver):
    selectors = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
    return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}


@pytest.mark.parametrize("asked_for", [{"deviceClasses": ["gpu.nvidia.com"]}, {"resources": ["nvidia.com/gpu"]}])
def test_a_gate_speaks_for_claims_of_devices(api, tmp_path, asked_for):
    api.put(device_class("gpu.nvidia.com", "gpu.nvidia.com"))
    api.put(device_class("nic.example.com", "dra.net"))
    api.put(device_claim("gpu", "gpu.nvidia.com"))
    api.put(device_claim("nic", "nic.example.com"))
    meta = {"name": "gpus", "namespace": "default"}
    api.put({"kind": "ResourceClaimTemplate", "metadata": meta, "spec": {"spec": device_request("gpu.nvidia.com")}})
    gates = [GATES[0], GATES[1] | {"for": asked_for}]
    with ExtenderProcess(api, tmp_path, config=CONFIG | {"gates": gates}) as process:
        process.wait_ready()
        refused = {"n2": CLOSED_NOT_READY}
        pods = [{"claim": "gpu"}, {"template": "gpus"}, {"claim": "nic"}, {"claim": "unknown"}]
        assert [refused, refused, {}, refused] == [
            asked(process, "n1", "n2", pod=claims_devices(**one)) for one in pods
        ]
        api.put(device_claim("unknown", "nic.example.com"))
        process.wait(lambda: asked(process, "n2", pod=claims_devices(claim="unknown")) == {})
        assert not [one for one in api.requests if "/resourceclaims/" in one.path]  # of none it asks by itself


def test_without_a_gate_of_devices_none_of_their_objects_is_read(api, tmp_path):
    gates = [GATES[0], GATES[1] | {"for": {"resources": ["cpu"]}}]
    with ExtenderProcess(api, tmp_path, config=CONFIG | {"gates": gates}) as process:
        process.wait_ready()
        asked(process, "n2", pod=claims_devices(claim="gpu"))
        assert not [one for one in api.requests if "resource.k8s.io" in one.path]


def test_a_gate_of_node_conditions_needs_no_health_pods(api, tmp_path):
    """As node-problem-detector writes them; and of no other condition a change is looked at."""
    conditions = {"allOf": [{"of": "node", "type": "KernelDeadlock", "status": "False", "missing": "open"}]}
    gates = [{"name": "kernel", "healthPods": None, "conditions": conditions}]
    with ExtenderProcess(api, tmp_path, config=CONFIG | {"gates": gates}) as process:
        process.wait_ready()
        assert asked(process, "n1", "n2", "w1") == {}
        assert not [request for request in api.requests if "/pods" in request.path]
        api.put(node_json("n1", Ready="True", KernelDeadlock="True"))
        process.wait(lambda: list(asked(process, "n1", "n2", "w1")) == ["n1"])
        api.put(node_json("n1", Ready="True", KernelDeadlock="False"))
        process.wait(lambda: asked(process, "n1") == {})


def test_a_gate_more_comes_by_a_reload_and_no_call_fails_meanwhile(api, tmp_path):
    with ExtenderProcess(api, tmp_path, config=CONFIG | {"gates": GATES[:1]}) as process:
        process.wait_ready()
        assert asked(process, "n1", "n2", pod=GPU_POD) == {}
        process.settings["gates"] = GATES
        process.write()
        os.kill(process.process.pid, signal.SIGHUP)
        process.wait(lambda: asked(process, "n1", "n2", pod=GPU_POD) == {"n2": CLOSED_NOT_READY})
