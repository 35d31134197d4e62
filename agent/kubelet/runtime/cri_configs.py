"""Pods to what a container runtime is asked to make. Pure.

Mirrors generatePodSandboxConfig, generateContainerConfig and labels.go of pkg/kubelet/kuberuntime, v1.36.3. What is not
modelled is not in them (rows CW): who asks for it is refused before.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from agent.cri import api_pb2 as cri
from agent.cri.convert import (
    ANNOTATION_RESTART_COUNT,
    LABEL_CONTAINER_NAME,
    LABEL_OWNER,
    LABEL_POD_NAME,
    LABEL_POD_NAMESPACE,
    LABEL_POD_UID,
)
from agent.wire.model import Container, Pod
from component.text import expand

LONGEST_HOSTNAME = 63
# What a pod's cgroups are below; a kubelet's are below kubepods, and it removes there what it does not know.
CGROUP_PARENTS = {cri.CGROUPFS: "/readygate", cri.SYSTEMD: "readygate.slice"}
MASKED_PATHS = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
_LOG = re.compile(r"([0-9]+)\.log")
_MOST_LOGS = 2**63 - 1  # in Go the one after it is less than none
READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_UNCONFINED = cri.SecurityProfile(profile_type=cri.SecurityProfile.Unconfined)
_BY_RUNTIME = cri.SecurityProfile(profile_type=cri.SecurityProfile.RuntimeDefault)


def sandbox_config(pod: Pod, attempt: int, owner: str, logs: str, cgroup_parent: str) -> cri.PodSandboxConfig:
    """`owner`: whose it is, see LABEL_OWNER. `logs`: the pod's folder."""
    security = cri.LinuxSandboxSecurityContext(namespace_options=_namespaces(pod), seccomp=_BY_RUNTIME)
    return cri.PodSandboxConfig(
        metadata=cri.PodSandboxMetadata(name=pod.name, namespace=pod.namespace, uid=pod.uid, attempt=attempt),
        hostname="" if pod.host_network else hostname(pod),
        log_directory=logs,
        labels={**pod.labels, **_pod_labels(pod, owner)},
        annotations=pod.annotations,
        linux=cri.LinuxPodSandboxConfig(cgroup_parent=cgroup_parent, security_context=security),
    )


def container_config(
    pod: Pod, container: Container, attempt: int, owner: str, image_ref: str, env: Mapping[str, str]
) -> cri.ContainerConfig:
    """`image_ref`: as the runtime calls the image. `env`: the variables of the spec."""
    security = cri.LinuxContainerSecurityContext(
        namespace_options=_namespaces(pod),
        seccomp=_UNCONFINED,
        masked_paths=MASKED_PATHS,
        readonly_paths=READONLY_PATHS,
    )
    return cri.ContainerConfig(
        metadata=cri.ContainerMetadata(name=container.name, attempt=attempt),
        image=cri.ImageSpec(image=image_ref, user_specified_image=container.image),
        command=_expanded(container.command, env),
        args=_expanded(container.args, env),
        working_dir=container.working_dir,
        envs=[cri.KeyValue(key=name, value=value.encode()) for name, value in env.items()],
        labels={**_pod_labels(pod, owner), LABEL_CONTAINER_NAME: container.name},
        annotations={ANNOTATION_RESTART_COUNT: str(attempt)},
        log_path=log_path(container.name, attempt),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        linux=cri.LinuxContainerConfig(security_context=security),
    )


def log_path(container: str, attempt: int) -> str:
    """Below the pod's folder."""
    return f"{container}/{attempt}.log"


def restarts_by_logs(files: Iterable[str]) -> int:
    """How often a container has been restarted, by the names of the files in its folder of logs: its next log is a new
    one (calcRestartCountByLogDir)."""
    numbers = (int(match[1]) for name in files if (match := _LOG.match(name)))
    return max((number + 1 for number in numbers if number < _MOST_LOGS), default=0)


def hostname(pod: Pod) -> str:
    """As long as the kernel takes it (GeneratePodHostNameAndDomain, truncatePodHostnameIfNeeded)."""
    name = pod.hostname_override if pod.hostname_override is not None else pod.hostname or pod.name
    return name if len(name) <= LONGEST_HOSTNAME else name[:LONGEST_HOSTNAME].rstrip("-.")


def _pod_labels(pod: Pod, owner: str) -> dict[str, str]:
    return {
        LABEL_POD_NAME: pod.name,
        LABEL_POD_NAMESPACE: pod.namespace,
        LABEL_POD_UID: pod.uid,
        LABEL_OWNER: owner,
    }


def _namespaces(pod: Pod) -> cri.NamespaceOption:
    """NamespacesForPod: the processes of a container are its own, the network is the pod's."""
    return cri.NamespaceOption(network=cri.NODE if pod.host_network else cri.POD, pid=cri.CONTAINER, ipc=cri.POD)


def _expanded(words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    return [expand(word, env) for word in words]
