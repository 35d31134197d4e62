"""A worker loses its CNI configuration: how soon no new pod lands there, what the pods say, and how it ends."""

import dataclasses
import time

import pytest

from agent.wire.condition import REASON_CHECK_FAILED
from extender.policy import reasons
from kube import contract
from tests.hosts.deployment import recording
from tests.hosts.deployment.conftest import agents, save
from tests.hosts.deployment.probing import PODS, Prober, clear, failed_scheduling, health_pod, pod
from tests.hosts.waiting import wait_for, wait_until
from tools.testbed.hosts.images import PAUSE
from tools.testbed.hosts.layers import CNI_CONF_DIR
from tools.testbed.shared.api import condition

NODE = "worker-1"
AWAY = "/root/cni-away"


@pytest.fixture
def cni(hosts):
    """A function that moves the configuration away, and one that puts it back; put back at the end in any case.

    Put back by a copy: containerd overlooks a file that is only renamed into the folder (its cni_conf_syncer.go).
    """
    restore = f"cp {AWAY}/* {CNI_CONF_DIR}/ && rm {AWAY}/*"

    def away() -> None:
        hosts.ssh(NODE, f"mkdir -p {AWAY} && mv {CNI_CONF_DIR}/* {AWAY}/")

    def back() -> None:
        hosts.ssh(NODE, restore)

    yield away, back
    hosts.ssh(NODE, f'test -z "$(ls {AWAY})" || {{ {restore}; }}')


def refusals(api, prober: Prober) -> list[str]:
    """What the Events of the pods that were refused say of the fault."""
    events = [note for name in list(prober.timeline.refused)[-3:] for note in failed_scheduling(api, name)]
    return [note for note in events if reasons.CLOSED_UNHEALTHY in note]


def break_and_mend(api, cni, artefacts, profile: str, documented_s: float) -> None:
    """documented_s: how long the profile may take, which is recorded beside what it took."""
    away, back = cni
    clear(api)
    assert condition(health_pod(api, NODE), contract.CONDITION_READY)["status"] == contract.STATUS_TRUE
    prober = Prober(api, NODE, PAUSE)
    prober.start()
    try:
        assert wait_for(lambda: prober.timeline.landed), "no pod lands on the node even before the fault"
        prober.fault_now()
        away()
        # kube-scheduler is told the same of a kubelet that reports its node not Ready, which comes first.
        prober.wait_told(reasons.CLOSED_UNHEALTHY)
        agent_said = wait_for(
            lambda: (
                condition(health_pod(api, NODE), contract.CONDITION_NODE_HEALTHY)["status"] == contract.STATUS_FALSE
            ),
        )
        agent_said_s = prober.seconds() if agent_said else -1
        told_by = {
            kind: condition(health_pod(api, NODE), kind)
            for kind in (contract.CONDITION_NODE_HEALTHY, contract.CONDITION_READY)
        }
        api.create(PODS, pod("probing-anywhere", None, PAUSE))
        elsewhere = wait_for(lambda: api.get(f"{PODS}/probing-anywhere")["spec"].get("nodeName"), every_s=0.2)
        # A pod that was refused before its node closed for this reason is tried again then.
        wait_until(lambda: refusals(api, prober), "an Event names the reason")
        events = refusals(api, prober)
    finally:
        prober.stop()
    pending = [name for name in prober.timeline.refused if name not in prober.timeline.landed]
    back()
    mended = time.monotonic()
    landed = wait_for(lambda: [n for n in pending if api.get(f"{PODS}/{n}")["spec"].get("nodeName")])
    bound_again_s = time.monotonic() - mended
    clear(api)
    figures = {
        "profile": profile,
        "documented_s": documented_s,
        "last_pod_landed_s": round(prober.timeline.last_landing_s, 2),
        "first_pod_refused_s": round(min(prober.timeline.refused.values(), default=-1), 2),
        "agent_said_unhealthy_s": round(agent_said_s, 2),
        "pending_pod_bound_after_repair_s": round(bound_again_s, 2),
        "condition_on_the_pending_pod": prober.timeline.told,
        "events_of_refused_pods": events,
        "health_pod": told_by,
        "timeline": dataclasses.asdict(prober.timeline),
    }
    save(artefacts, f"fault-{profile}.json", figures)
    # The kubelet reports itself not Ready meanwhile, which the extender heeds, too: so the agent's word is timed apart.
    assert agent_said, figures
    assert prober.timeline.refused, figures
    assert elsewhere == "worker-2"
    assert events, "kube-scheduler writes the reason into an Event"
    assert reasons.CLOSED_UNHEALTHY in prober.timeline.told
    assert told_by[contract.CONDITION_NODE_HEALTHY]["status"] == contract.STATUS_FALSE
    assert told_by[contract.CONDITION_NODE_HEALTHY]["reason"] == REASON_CHECK_FAILED
    assert landed, "the pending pod did not bind by itself"


@pytest.mark.usefixtures("armed")
def test_the_default_profile_closes_the_node_and_the_filter_says_why(hosts, api, cni, artefacts):
    recording.forget(hosts)
    break_and_mend(api, cni, artefacts, "default", documented_s=35)
    calls = recording.notes(hosts)
    # The kubelet reports its node not Ready before that.
    refusals = [c for c in calls if refused(c).get(NODE) == reasons.CLOSED_UNHEALTHY]
    save(artefacts, "filter-refusal.json", refusals[0])
    save(artefacts, "filter-pass.json", next(c for c in calls if NODE in (c["reply"].get("NodeNames") or [])))
    request, reply = refusals[0]["request"], refusals[0]["reply"]
    assert sorted(request) == ["NodeNames", "Nodes", "Pod"]
    assert NODE in request["NodeNames"]
    assert NODE not in (reply.get("NodeNames") or [])


def refused(call) -> dict[str, str]:
    return call["reply"].get("FailedAndUnresolvableNodes") or {}


def test_the_fast_profile_closes_it_and_opens_it_again(hosts, api, cni, faster, artefacts):
    assert faster.changed > 0
    assert sorted(hosts.names) == sorted(agents(api))
    break_and_mend(api, cni, artefacts, "fast", documented_s=8)
