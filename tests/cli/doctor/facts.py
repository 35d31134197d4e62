"""Facts of a healthy cluster, which tests change to provoke findings."""

from dataclasses import replace

from cli.doctor.facts import Extender, Facts, GateFacts, HealthSet, Loaded, Profile, Replica, Right, Scheduler
from extender import settings

ENTRY = Extender(
    url_prefix="http://127.0.0.1:9376",
    filter_verb="filter",
    preempt_verb="preempt",
    timeout_s=1.0,
    ignorable=True,
    node_cache_capable=True,
)
LOADED = Loaded(extenders=(ENTRY,), profiles=(Profile("default-scheduler"),), profiling=True, qps=50.0, burst=100)
SCHEDULER = Scheduler("kube-scheduler-c1", node="c1", version="v1.34.9", loaded=LOADED)
REPLICA = Replica("readygate-extender-x", node="c1", owner="DaemonSet", release="0.1.0")
PODS = HealthSet("readygate-system", "readygate-agent", desired=10, max_unavailable="10%", min_ready_s=60)
GATE = GateFacts("health", named_set="readygate-system/readygate-agent", health_set=PODS, pods=1)
FACTS = Facts(
    cli_release="0.1.0",
    api_version="v1.36.3",
    nodes=10,
    control_plane=("c1",),
    schedulers=(replace(SCHEDULER, version="v1.36.3"),),
    replicas=(REPLICA,),
    settings=settings.parse(""),
    gates=(GATE,),
    rights=(Right("list", "pods", "readygate-system", allowed=True),),
)


def with_entry(**changed):
    return with_loaded(extenders=(replace(ENTRY, **changed),))


def with_loaded(**changed):
    return with_scheduler(loaded=replace(LOADED, **changed))


def with_scheduler(**changed):
    return {"schedulers": (replace(FACTS.schedulers[0], **changed),)}


def with_replica(**changed):
    return {"replicas": (replace(REPLICA, **changed),)}


def with_gate(**changed):
    return {"gates": (replace(GATE, **changed),)}


def with_pods(**changed):
    return with_gate(health_set=replace(PODS, **changed))


def with_settings(text):
    return {"settings": settings.parse(text)}
