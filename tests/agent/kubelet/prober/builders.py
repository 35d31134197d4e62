"""Pods, statuses and a worker under a fake clock, as the tests of kubelet's prober have them."""

from collections.abc import Callable, Iterable

from agent.kubelet.prober.decide import Target
from agent.kubelet.prober.results import Results
from agent.kubelet.prober.worker import Worker, WorkerContext
from agent.probe.result import ProbeErrored
from agent.wire.model import (
    Container,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ExecAction,
    Pod,
    PodPhase,
    PodStatus,
    Probe,
    ProbeType,
    RestartPolicy,
    Result,
)
from agent.wire.semantics import Semantics

NAME = "cOnTaInEr_NaMe"
ID = "test://cOnTaInEr_Id"
UID = "pOd_UiD"
NOW = 1_000_000.0

LIVENESS, READINESS, STARTUP = ProbeType.LIVENESS, ProbeType.READINESS, ProbeType.STARTUP
ALL_TYPES = (LIVENESS, READINESS, STARTUP)
S, F, U = Result.SUCCESS, Result.FAILURE, Result.UNKNOWN
GATE_ON = Semantics(change_container_status_on_kubelet_restart=True)
RULES_OFF = Semantics(container_restart_rules=False)
RESTART_ALL_OFF = Semantics(restart_all_containers_on_container_exits=False)


def make_probe(action: object = ExecAction(("true",)), **fields: object) -> Probe:
    return Probe(**{"action": action, "period_s": 1, "failure_threshold": 1, **fields})


def make_container(probe_type: ProbeType | Iterable[ProbeType] = (), name: str = NAME, **fields: object) -> Container:
    probe = fields.pop("probe", None) or make_probe()
    types = [probe_type] if isinstance(probe_type, ProbeType) else list(probe_type)
    return Container(name=name, **{f"{t.lower()}_probe": probe for t in types}, **fields)


def make_pod(*containers: Container, sidecar: bool = False, **fields: object) -> Pod:
    where = "init_containers" if sidecar else "containers"
    given = {"uid": UID, "name": "testPod", "namespace": "default", "restart_policy": RestartPolicy.NEVER}
    return Pod(**{**given, where: containers, **fields})


def running(started_at: float | None = NOW) -> ContainerRunning:
    return ContainerRunning(started_at)


def exited(code: int = 0) -> ContainerTerminated:
    return ContainerTerminated(exit_code=code)


def make_status(
    state: ContainerState | None,
    *,
    started: bool | None = True,
    container_id: str = ID,
    name: str = NAME,
    sidecar: bool = False,
    **fields: object,
) -> PodStatus:
    own = ContainerStatus(name=name, state=state, started=started, container_id=container_id)
    where = "init_container_statuses" if sidecar else "container_statuses"
    return PodStatus(**{"phase": PodPhase.RUNNING, where: (own,), **fields})


class Bench:
    """One worker, its cache and everything context it. The manager starts at NOW; `outcome` is what a probe gives."""

    def __init__(
        self,
        probe_type: ProbeType,
        *,
        pod: Pod | None = None,
        container: Container | None = None,
        status: PodStatus | None = None,
        semantics: Semantics | None = None,
        manager_start: float = NOW,
        **probe: object,
    ) -> None:
        self.type = probe_type
        self.container = container or make_container(probe_type, probe=make_probe(**probe))
        self.pod = pod or make_pod(self.container)
        self.status = status
        self.now = NOW
        self.ahead = 0.0  # by how much the clock was set ahead
        self.outcome: Result | Exception = S
        self.probes = 0
        self.counted: list[Result] = []
        self.updates: list[tuple[str, Result]] = []
        self.results = Results(lambda update: self.updates.append((update.container_id, update.result)))
        context = WorkerContext(
            get_pod_status=lambda _uid: self.status,
            probe=self._probe,
            results=dict.fromkeys(ALL_TYPES, self.results),
            start_wall=manager_start,
            start_monotonic=manager_start,
            semantics=semantics or Semantics(),
            wall=lambda: self.now,
            monotonic=lambda: self.now - self.ahead,
            count=lambda _target, result, _took_s: self.counted.append(result),
        )
        self.worker = Worker(Target(self.pod, self.container, probe_type), context, lambda _worker: None)

    @classmethod
    def ready(cls, probe_type: ProbeType, **given: object) -> "Bench":
        """A bench whose container runs since NOW, started unless it is the startup probe that finds out."""
        given.setdefault("status", make_status(running(), started=probe_type is not STARTUP))
        return cls(probe_type, **given)

    def _probe(self, *_arguments: object) -> Result:
        self.probes += 1
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def once(self, outcome: Result | Exception | None = None) -> bool:
        """One look of the worker; says whether it goes on."""
        if outcome is not None:
            self.outcome = outcome
        return self.worker.do_probe()

    def result(self, container_id: str = ID) -> Result | None:
        return self.results.get(container_id)

    @property
    def run(self) -> int:
        return self.worker.state.streak.run

    @property
    def on_hold(self) -> bool:
        return self.worker.state.on_hold


ERROR = ProbeErrored("runtime is gone")
Status = PodStatus | None
StatusOf = Callable[[ProbeType], Status]
