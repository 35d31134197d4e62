"""Which kubelet we are: profile, feature gates, named fixes. Pure; one value, handed by the mode to its rooms."""

from dataclasses import dataclass


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

    # Fixes of upstream's mistakes: False is what 1.36.3 does.
    # add_pod goes on behind a probe that has its worker already, instead of ending there (kubernetes #138930).
    fix_add_pod_ends_at_first_worker: bool = False
    # Readiness is compared with init and app statuses together. With app ones only, a pod with sidecars and readiness
    # gates is synced on every status event while it is Ready.
    fix_readiness_without_sidecars: bool = True
    # A container that the runtime does not know has ended if its status says so, and starts again by its policy only; a
    # kubelet runs it once more.
    fix_ended_containers_without_record: bool = True
    # With events of the runtime, a container that was removed is gone from what is known of its pod; a kubelet keeps it
    # until its next list, which may be five minutes away.
    fix_removed_container_stays_known: bool = True
