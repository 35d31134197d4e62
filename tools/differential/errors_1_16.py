"""Errors in what the agent does as kubelet 1.16 did, for the targets that 1.16's driver answers."""

from tools.differential.planted_error import Planted

_DECIDE, _MANAGER = "prober/decide.py", "prober/manager.py"
_CONDITIONS, _MERGE, _PHASE = "status/conditions.py", "status/merge.py", "status/phase.py"
_PROBER, _STATUS = "prober-1.16", "status-1.16"

OLD = (
    Planted(
        _PROBER, _DECIDE, "if target.type is ProbeType.STARTUP and not semantics.startup_begins_unknown:", "if False:"
    ),
    Planted(_PROBER, _DECIDE, "(semantics.startup_holds or result is Result.FAILURE)", "True"),
    Planted(_PROBER, _DECIDE, "!= RestartPolicy.NEVER or target.sidecar", "!= RestartPolicy.ALWAYS"),
    Planted(_PROBER, _DECIDE, "ending = semantics.stops_probes_of_ending_pods and", "ending ="),
    Planted(_PROBER, _DECIDE, "if semantics.fix_clock_that_is_set:", "if True:"),
    Planted(_PROBER, _MANAGER, "if result is not None and not self._semantics.only_success_is_ready:", "if False:"),
    Planted(_PROBER, _MANAGER, "return replace(container, ready=done)", "return container"),
    Planted(
        _PROBER, _MANAGER, "not container.started and self._semantics.started_before_ready:", "not container.started:"
    ),
    Planted(_PROBER, _MANAGER, "worker is not None and self._semantics.triggers_readiness:", "worker is not None:"),
    Planted(_PROBER, _MANAGER, "if self._semantics.fix_add_pod_ends_at_first_worker:", "if True:"),
    Planted(_STATUS, _CONDITIONS, "phase == PodPhase.FAILED and failed_is_unready:", "phase == PodPhase.FAILED:"),
    Planted(_STATUS, _CONDITIONS, "failed_is_unready=semantics.phase_ends_readiness", "failed_is_unready=True"),
    Planted(_STATUS, _CONDITIONS, "if begun and semantics.initialized_by_apps:", "if begun:"),
    Planted(_STATUS, _CONDITIONS, "if semantics.owns_unschedulable and condition_type in OWNED_SINCE:", "if False:"),
    Planted(
        _STATUS, _CONDITIONS, " or (semantics.owns_unschedulable and condition_type == CONDITION_UNSCHEDULABLE)", ""
    ),
    Planted(_STATUS, _MERGE, "if out_of_order and semantics.checks_init_order:", "if out_of_order:"),
    Planted(
        _STATUS, _MERGE, "new.observed_generation) if semantics.observes_generation else 0", "new.observed_generation)"
    ),
    Planted(_STATUS, _MERGE, "replace(c, observed_generation=0) if is_owned(c.type, semantics) else c", "c"),
    Planted(_STATUS, _MERGE, " if semantics.waits_with_terminal_phase else OLD_TIMED_CONDITIONS", ""),
    Planted(_STATUS, _MERGE, "shares = semantics.waits_with_terminal_phase", "shares = True"),
    Planted(_STATUS, _MERGE, "if not semantics.compares_gone_conditions:", "if False:"),
    Planted(_STATUS, _MERGE, " or not semantics.deletes_by_phase", ""),
    Planted(_STATUS, _MERGE, "semantics.phase_ends_readiness\n        and", ""),
    Planted(_STATUS, "status/manager.py", "sends_empty=self._semantics.sends_empty_patches", "sends_empty=False"),
    Planted(_STATUS, "status/termination.py", "if not semantics.lost_containers_fail:", "if False:"),
    Planted(
        _STATUS,
        _PHASE,
        "counts.init_failed > 0 and pod.restart_policy ==",
        "counts.init_failed > 0 or pod.restart_policy ==",
    ),
)
