"""Mode `pod`, put together: checks -> health of the node -> /readyz, and if wanted the condition of the own pod."""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from agent.checks.catalogue import CheckSpec, check_spec
from agent.checks.engine import CheckEngine
from agent.checks.health import NodeHealth, condition_message, readyz_text, status_line
from agent.checks.last_failures import Said
from agent.checks.pages import checks_json
from agent.checks.state import CheckState, CheckStatus
from agent.modes import start_delay, systemd_notify
from agent.modes.pod_network import Around, answers_of, families_of, in_a_pod
from agent.processes.proc import seconds_since_boot
from agent.report.condition import Condition, ConditionPublisher
from agent.report.metrics import Family, metrics_page, process_families
from agent.report.server import JSON, HealthServer, Page, livez_page
from agent.settings import Settings
from component.command import product_version
from component.lifecycle import Service
from kube import contract

ANSWER_LIMIT_BYTES = 8 * 2**20  # of the API server about one pod; etcd takes 1.5 MiB


class Kept(TypedDict, total=False):
    restored: Mapping[str, CheckStatus]
    save: Callable[[Sequence[CheckStatus]], None]
    follow: Callable[[Sequence[CheckSpec]], None]


def build(settings: Settings) -> list[Service]:
    """The services in the order they start. Raises kube.errors.CredentialsInvalid."""
    around = in_a_pod(settings)
    specs = [check_spec(check, state_file=settings.state_file, around=around) for check in settings.checks]
    states = kept(settings.state_file, specs)
    publisher = _publisher(settings, first_pause_s(states)) if settings.condition.publish else None
    engine = CheckEngine(specs, _publish_to(publisher), **states)
    services: list[Service] = []
    said = Said()
    pages = {
        "/readyz": lambda: readyz_page(engine.node_health(), time.time()),
        "/livez": lambda: livez_page(services, time.monotonic()),
        "/checks": lambda: checks_page(engine),
        "/metrics": lambda: metrics_page([*families(engine, publisher, said), *families_of(around.board)]),
    }
    # The server first: a taken port ends the start before a check has run.
    listen = settings.listen
    services += [HealthServer(listen.address, listen.port, pages, answers=answers_of(around.board)), engine]
    services.append(Around(around))
    if publisher is not None:
        services.append(publisher)  # last: it is stopped first, so the condition is False before the rest ends
    services += systemd_notify.notifiers(os.environ, services, lambda: status_line(engine.node_health()))
    return services


def readyz_page(health: NodeHealth, wall: float) -> Page:
    return Page(200 if health.healthy else 503, readyz_text(health, wall))


def checks_page(engine: CheckEngine) -> Page:
    return Page(200, checks_json(engine.node_health(), engine.shown()), JSON)


def condition_of(health: NodeHealth) -> Condition:
    status = contract.STATUS_TRUE if health.healthy else contract.STATUS_FALSE
    return Condition(status, health.reason, condition_message(health), health.identity)


def families(engine: CheckEngine, publisher: ConditionPublisher | None, said: Said) -> list[Family]:
    """What /metrics shows."""
    shown = [*process_families(product_version(), "pod"), *check_families(engine, said)]
    if publisher is not None:
        shown += condition_families(publisher.writes, publisher.errors)
    return shown


def check_families(engine: CheckEngine, said: Said) -> list[Family]:
    """What /metrics shows of the checks."""
    statuses = engine.statuses()
    return [
        Family(
            "readygate_node_healthy",
            "gauge",
            "1 while all gate checks pass.",
            [({}, float(engine.node_health().healthy))],
        ),
        Family(
            "readygate_check_status",
            "gauge",
            "1 for the state the check is in.",
            [
                ({"check": s.name, "state": str(state)}, float(s.state is state))
                for s in statuses
                for state in CheckState
            ],
        ),
        Family(
            "readygate_check_output",
            "gauge",
            "1 while the check does not pass, with what it said when that began.",
            said.samples(statuses),
        ),
        Family(
            "readygate_check_runs_total",
            "counter",
            "Runs of a check by what they found.",
            [({"check": check, "result": str(state)}, float(count)) for check, state, count in engine.runs()],
        ),
    ]


def condition_families(writes: int, errors: int) -> list[Family]:
    """What /metrics shows of what is published."""
    return [
        Family("readygate_condition_writes_total", "counter", "Condition writes.", [({}, float(writes))]),
        Family("readygate_condition_errors_total", "counter", "Failed writes.", [({}, float(errors))]),
    ]


def kept(path: str | None, specs: list[CheckSpec]) -> Kept:
    """The states from before a restart, and who keeps those of now."""
    if path is None:
        return {}
    from agent.store.check_states import StateFile  # late, as it needs OpenSSL

    state = StateFile(Path(path), specs)
    return {"restored": state.restored(), "save": state.save, "follow": state.follow}


def _publish_to(publisher: ConditionPublisher | None) -> Callable[[NodeHealth], None]:
    if publisher is None:
        return lambda _health: None
    return lambda health: publisher.publish(condition_of(health))


def _publisher(settings: Settings, pause_s: float) -> ConditionPublisher:
    # Imported only where something is published: the client is a third of the agent's memory.
    from kube.client import Client
    from kube.connect import connect

    connection = connect(settings.kubernetes.kubeconfig, server=settings.kubernetes.server)
    name = f"readygate-agent/{product_version()}"
    client = Client(connection, user_agent=name, deadline_s=5.0, answer_limit_bytes=ANSWER_LIMIT_BYTES)
    condition = settings.condition
    return ConditionPublisher(
        client,
        namespace=condition.pod_namespace,
        pod_name=condition.pod_name,
        pod_uid=condition.pod_uid,
        not_before=time.monotonic() + pause_s,
    )


def first_pause_s(states: Kept) -> float:
    """Before the API server is asked first."""
    return start_delay.first_pause_s(seconds_since_boot(), random.random(), is_first=not states.get("restored"))
