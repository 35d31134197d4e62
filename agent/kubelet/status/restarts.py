"""Who may be restarted, and whether a container is a sidecar. Pure. Mirrors pkg/api/v1/pod/util.go."""

from agent.wire.model import Container, Pod, RestartPolicy, RestartRule
from agent.wire.semantics import Semantics

ACTION_RESTART = "Restart"
ACTION_RESTART_ALL = "RestartAllContainers"


def is_sidecar(container: Container) -> bool:
    """An init container with restartPolicy Always (IsRestartableInitContainer). Only meaningful for init containers."""
    return container.restart_policy == RestartPolicy.ALWAYS


def matching_rule(container: Container, exit_code: int) -> RestartRule | None:
    """The first rule whose exit codes match; rules without exit codes or with an unknown operator never do."""
    for rule in container.restart_rules:
        if rule.operator == "In" and exit_code in rule.exit_codes:
            return rule
        if rule.operator == "NotIn" and exit_code not in rule.exit_codes:
            return rule
    return None


def should_restart(container: Container, pod: Pod, exit_code: int, semantics: Semantics) -> bool:
    """ContainerShouldRestart: may this container run again after `exit_code`?

    Rules count only beside a container's own policy, and both only while ContainerRestartRules is on; a pod policy that
    is not known means Always.
    """
    if container.restart_policy is not None and semantics.container_restart_rules:
        restart_all = semantics.restart_all_containers_on_container_exits
        rule = matching_rule(container, exit_code)
        if rule is not None and (rule.action == ACTION_RESTART or (rule.action == ACTION_RESTART_ALL and restart_all)):
            return True
        own = _by_policy(container.restart_policy, exit_code)
        if own is not None:
            return own
    by_pod = _by_policy(pod.restart_policy, exit_code)
    return True if by_pod is None else by_pod


def all_containers_could_restart(pod: Pod) -> bool:
    """True when some container has a rule that would restart the whole pod in place (AllContainersCouldRestart)."""
    return any(
        rule.action == ACTION_RESTART_ALL
        for container in (*pod.init_containers, *pod.containers)
        for rule in container.restart_rules
    )


def _by_policy(policy: RestartPolicy | str, exit_code: int) -> bool | None:
    match policy:
        case RestartPolicy.ALWAYS:
            return True
        case RestartPolicy.ON_FAILURE:
            return exit_code != 0
        case RestartPolicy.NEVER:
            return False
        case _:
            return None
