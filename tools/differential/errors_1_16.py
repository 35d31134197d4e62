"""Errors in what the agent does as kubelet 1.16 did, for the targets that 1.16's driver answers."""

from tools.differential.planted_error import Planted

_DECIDE, _MANAGER = "kubelet/prober/decide.py", "kubelet/prober/manager.py"
_CONDITIONS, _MERGE, _PHASE = "kubelet/status/conditions.py", "kubelet/status/merge.py", "kubelet/status/phase.py"
_GENERATE, _WORKER, _TICKER = "kubelet/status/generate.py", "kubelet/prober/worker.py", "probe/ticker.py"
_EVENTS, _RELIST, _CACHE = "kubelet/pleg/events.py", "kubelet/pleg/relist.py", "kubelet/pleg/cache.py"
_FACTS, _FOUND, _REPORTS = "kubelet/node/facts.py", "kubelet/node/observed.py", "kubelet/node/registration.py"
_INDEX, _SOURCE, _MIRRORS = "kubelet/pods/index.py", "kubelet/pods/source.py", "kubelet/pods/mirrors.py"
_PROBER, _STATUS = "prober-1.16", "status-1.16"

OLD = (
    Planted("generate-1.16", _GENERATE, "if not semantics.lost_containers_fail:", "if False:"),
    Planted(
        "generate-1.16", _GENERATE, "ContainerRunning) and inputs.semantics.lost_containers_fail", "ContainerRunning)"
    ),
    Planted("generate-1.16", _GENERATE, "ends = inputs.semantics.lost_containers_fail and", "ends ="),
    Planted("generate-1.16", _GENERATE, "if old is not None and inherits:", "if old is not None:"),
    Planted("generate-1.16", _GENERATE, "if len(instances) > 1:", "if False:"),
    Planted("generate-1.16", _GENERATE, "ends = inputs.semantics.phase_ends_readiness", "ends = True"),
    Planted("generate-1.16", _CONDITIONS, "if begun and semantics.initialized_by_apps:", "if begun:"),
    Planted(
        "loops-1.16",
        _WORKER,
        "0.0 if context.semantics.always_jitters else context.monotonic()",
        "context.monotonic()",
    ),
    Planted("loops-1.16", _WORKER, "while not self._stopped:", "while True:"),
    Planted("loops-1.16", _TICKER, "(missed + 1) * self._period_s", "self._period_s"),
    Planted("loops-1.16", _DECIDE, "ending = semantics.stops_probes_of_ending_pods and", "ending ="),
    Planted(
        "loops-1.16", _MANAGER, "worker is not None and self._semantics.triggers_readiness:", "worker is not None:"
    ),
    Planted("loops-1.16", "probe/exec.py", "raise RuntimeUnavailable(str(e)) from e", "raise"),
    Planted("node-1.16", _REPORTS, "if self._get_on_exists_only and isinstance(e, Forbidden):", "if False:"),
    Planted("node-1.16", _FACTS, "if name in capacity or not _is_extended(name)", "if name in capacity"),
    Planted("node-1.16", _FACTS, "before is None or before.status != condition.status", "before is None"),
    Planted("node-1.16", _FACTS, "if len(once) == 1 else", "if once else"),
    Planted("node-1.16", _FACTS, "old.info != new.info or ", ""),
    Planted(
        "node-1.16", _FACTS, "old.volumes_in_use if found.volumes_in_use is None", "() if not found.volumes_in_use"
    ),
    Planted("node-1.16", _FACTS, "return {ATTACHES: ours.get(ATTACHES)}", "return {ATTACHES: None}"),
    Planted("node-1.16", _FOUND, "IMAGES = 50", "IMAGES = 51"),
    Planted("pleg-1.16", _EVENTS, "(EventType.REMOVED,) if before is ContainerPhase.EXITED else ", ""),
    Planted("pleg-1.16", _EVENTS, "before = ContainerPhase.UNKNOWN", "before = ContainerPhase.RUNNING"),
    Planted("pleg-1.16", _RELIST, "if not events and self._syncs_reinspected:", "if not events:"),
    Planted("pleg-1.16", _RELIST, "if elapsed_s <= self.pace.threshold_s:", "if elapsed_s < self.pace.threshold_s:"),
    Planted("pleg-1.16", _RELIST, "            self._marked.add(uid)\n            return e", "            return e"),
    Planted("pleg-1.16", _RELIST, " or any(sandbox.ready for sandbox in pod.sandboxes)", ""),
    Planted("pleg-1.16", _CACHE, "time > monotonic for time in times", "time >= monotonic for time in times"),
    Planted("sources-1.16", _INDEX, "            self._resolved.pop(pod.uid, None)\n", ""),
    Planted("sources-1.16", _INDEX, "            if name in self._uids:", "            if False:"),
    Planted("sources-1.16", _SOURCE, "replace(new, status=old.status) != old or need_to", "need_to"),
    Planted("sources-1.16", _SOURCE, "if not pod.static and pod.uid not in found:", "if pod.uid not in found:"),
    Planted("sources-1.16", _MIRRORS, "mirror.deletion_timestamp is not None or", ""),
    Planted("sources-1.16", _MIRRORS, "return given is not None and given ==", "return given is not None or given =="),
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
    Planted(
        _STATUS, "kubelet/status/manager.py", "sends_empty=self._semantics.sends_empty_patches", "sends_empty=False"
    ),
    Planted(_STATUS, "kubelet/status/termination.py", "if not semantics.lost_containers_fail:", "if False:"),
    Planted(
        _STATUS,
        _PHASE,
        "counts.init_failed > 0 and pod.restart_policy ==",
        "counts.init_failed > 0 or pod.restart_policy ==",
    ),
)
