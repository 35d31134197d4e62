"""Which kubelet we are: profile, feature gates, named fixes. Pure; one value, handed by the mode to its rooms."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

MAX_CONTAINER_RESTART_PERIOD_S = 300
"""v1beta1.MaxContainerBackOff."""
RESTART_ALL = "RestartAllContainersOnContainerExits"


@dataclass(frozen=True, slots=True)
class Semantics:
    """The fields' defaults are what kubelet 1.36.3 does, but for fixes that are on.

    profile: the release whose rules are followed; the Node names it as its kubelet's version.
    """

    profile: str = "v1.36.3"

    # Feature gates of the kubelet, by their names, as far as our rooms look at them.
    change_container_status_on_kubelet_restart: bool = False
    container_restart_rules: bool = True
    restart_all_containers_on_container_exits: bool = True
    pod_ready_to_start_containers_condition: bool = True
    pleg_on_demand_relist: bool = True
    node_declared_features: bool = True
    kubelet_registration_get_on_exists_only: bool = False
    evented_pleg: bool = False  # over the CRI; processes tell by themselves in any case
    # Of the gate KubeletCrashLoopBackOffMax, which is on: its default is the one that had always been.
    max_container_restart_period_s: float = MAX_CONTAINER_RESTART_PERIOD_S

    # What kubelets of old did otherwise (rows CM of docs/kubelet-parity.md).
    always_jitters: bool = False  # CM1: the first probe, however old the prober is
    triggers_readiness: bool = True  # CM2: a container that is not known to be ready is probed at once
    startup_holds: bool = True  # CM3: after a success, too
    startup_begins_unknown: bool = True  # CM4: else as a failure
    stops_probes_of_ending_pods: bool = True  # CM5
    probes_sidecars: bool = True  # CM6, CM21
    only_success_is_ready: bool = True  # CM10: else any result decides
    started_before_ready: bool = (
        True  # CM28: else Ready is made of readiness alone, and init containers have no started
    )
    exec_timeout_fails: bool = True  # CM11: else the probe could not be made
    sends_empty_patches: bool = False  # CM15: else a patch is sent only if something changes
    lost_containers_fail: bool = True  # CM16, CM43, CM44: else no end is made up for what nobody saw end
    deletes_by_phase: bool = True  # CM17
    compares_gone_conditions: bool = True  # CM18
    owns_unschedulable: bool = False  # CM19
    phase_ends_readiness: bool = True  # CM20
    syncs_after_probes: bool = True  # CM22
    syncs_reinspected: bool = True  # CM25: a pod that was inspected again on request
    observes_generation: bool = True  # CM29
    waits_with_terminal_phase: bool = True  # CM30, CM31: and DisruptionTarget with it
    checks_init_order: bool = True  # CM32
    initialized_by_apps: bool = True  # CM33

    # Fixes of upstream's mistakes: False is what 1.36.3 does.
    # add_pod goes on behind a probe that has its worker already, instead of ending there (kubernetes #138930).
    fix_add_pod_ends_at_first_worker: bool = True
    # Readiness is compared with init and app statuses together. With app ones only, a pod with sidecars and readiness
    # gates is synced on every status event while it is Ready.
    fix_readiness_without_sidecars: bool = True
    # A container that the runtime does not know has ended if its status says so, and starts again by its policy only; a
    # kubelet runs it once more.
    fix_ended_containers_without_record: bool = True
    # With events of the runtime, a container that was removed is gone from what is known of its pod; a kubelet keeps it
    # until its next list, which may be five minutes away.
    fix_removed_container_stays_known: bool = True
    # How old a container is counts by a clock that nobody sets; for a kubelet whose clock was set back an hour each
    # container is too young to be probed for that hour, and one that is new was there before the kubelet.
    fix_clock_that_is_set: bool = True
    # Commands that ask whether a pod that is being ended is ready are run (CM26). In 1.36.3 what such a pod was synced
    # with is over by then, so each errors, and what was found last stands.
    fix_exec_probes_of_ending_pods: bool = True

    @property
    def declared_features(self) -> tuple[str, ...] | None:
        """What pods may need of the node, of which the scheduler looks at the Node; None where that is off."""
        if not self.node_declared_features:
            return None
        return (RESTART_ALL,) if self.restart_all_containers_on_container_exits else ()


V1_16 = Semantics(
    profile="v1.16.0",
    change_container_status_on_kubelet_restart=True,
    container_restart_rules=False,
    restart_all_containers_on_container_exits=False,
    pod_ready_to_start_containers_condition=False,
    pleg_on_demand_relist=False,
    node_declared_features=False,
    kubelet_registration_get_on_exists_only=True,  # CM45
    always_jitters=True,
    triggers_readiness=False,
    startup_holds=False,
    startup_begins_unknown=False,
    stops_probes_of_ending_pods=False,
    probes_sidecars=False,
    only_success_is_ready=False,
    started_before_ready=False,
    exec_timeout_fails=False,
    sends_empty_patches=True,
    lost_containers_fail=False,
    deletes_by_phase=False,
    compares_gone_conditions=False,
    owns_unschedulable=True,
    phase_ends_readiness=False,
    syncs_after_probes=False,
    syncs_reinspected=False,
    observes_generation=False,
    waits_with_terminal_phase=False,
    checks_init_order=False,
    initialized_by_apps=False,
    fix_add_pod_ends_at_first_worker=False,  # CM7
)
PROFILES = {"current": Semantics(), "v1.16": V1_16}

GATES = {
    "ChangeContainerStatusOnKubeletRestart": "change_container_status_on_kubelet_restart",
    "ContainerRestartRules": "container_restart_rules",
    RESTART_ALL: "restart_all_containers_on_container_exits",
    "PodReadyToStartContainersCondition": "pod_ready_to_start_containers_condition",
    "PLEGOnDemandRelist": "pleg_on_demand_relist",
    "NodeDeclaredFeatures": "node_declared_features",
    "KubeletRegistrationGetOnExistsOnly": "kubelet_registration_get_on_exists_only",
    "EventedPLEG": "evented_pleg",
}
"""Feature gates that may be set -> the field that each is."""


def chosen(
    compat: str,
    gates: Iterable[tuple[str, bool]],
    *,
    max_container_restart_period_s: float = MAX_CONTAINER_RESTART_PERIOD_S,
) -> Semantics:
    """A profile, with gates and that period set otherwise. Raises KeyError for a word that there is not."""
    fields: dict[str, Any] = {GATES[name]: on for name, on in gates}
    return replace(PROFILES[compat], **fields, max_container_restart_period_s=max_container_restart_period_s)
