"""What is done over the CRI: one call each, in the kubelet's order and with its deadlines.

Mirrors cri-client's remote_runtime.go and remote_image.go, v1.36.3. What belongs to others is out of its sight, and so
out of its reach: lists are of the owner's only, and ids come from them.
"""

import copy
from typing import Self

from agent.cri import api_pb2 as cri
from agent.cri.base import CriError, Trouble
from agent.cri.calls import Calls
from agent.cri.client import LONGEST_S, Client
from agent.cri.convert import Garbled, bare_id
from agent.cri.reader import CriReader
from agent.kubelet.runtime.cri_configs import CGROUP_PARENTS
from agent.wire.model import Image

PULL_S = 3600.0
"""A pull that takes longer has failed; a kubelet waits for ever."""


IMAGES_S = 10.0
"""So that a list that hangs does not keep us from asking how the runtime is, which would make the node not ready."""
MOST_BYTES = 2**63 - 1  # of an image: the API server refuses a Node with more
CIDR_S = 10.0
"""The thread that writes the Node's status waits for it."""
FOLDERS_S = 30.0
"""It is asked every ten seconds; a kubelet waits for its answer as long as for any other."""


class CriWriter(CriReader):
    """A Reader of what is the owner's, which also writes. Several threads may call at once. All raise CriError; what is
    not there any more is as good as stopped and removed."""

    def __init__(self, client: Client, *, owner: str) -> None:
        super().__init__(client, may_exec=True, owner=owner)
        self.owner = owner
        self._cgroup_parent: str | None = None

    def of_pod(self, calls: Calls) -> Self:
        """The same, until `calls` end."""
        made = copy.copy(self)
        made._client = self._client.of_pod(calls)  # noqa: SLF001 - of our own kind
        return made

    def cgroup_parent(self) -> str:
        """Spelled for the runtime's driver, asked for once. One of old does not tell: cgroupfs, as for a kubelet."""
        if self._cgroup_parent is None:
            try:
                answer = self._client.call(cri.RuntimeConfigRequest(), cri.RuntimeConfigResponse)
                driver = answer.linux.cgroup_driver if answer.HasField("linux") else cri.CGROUPFS
            except CriError as e:
                if e.trouble is not Trouble.NOT_OFFERED:
                    raise
                driver = cri.CGROUPFS
            self._cgroup_parent = CGROUP_PARENTS.get(driver, CGROUP_PARENTS[cri.CGROUPFS])
        return self._cgroup_parent

    def run_sandbox(self, config: cri.PodSandboxConfig) -> str:
        """Its id, when it is ready. Twice the deadline, as a kubelet gives it."""
        request = cri.RunPodSandboxRequest(config=config)
        answer = self._client.call(request, cri.RunPodSandboxResponse, deadline_s=2 * self._client.deadline_s)
        return self._id("RunPodSandbox", answer.pod_sandbox_id)

    def stop_sandbox(self, sandbox_id: str) -> None:
        """Ends what runs in it, without grace, and its network."""
        self._found(cri.StopPodSandboxRequest(pod_sandbox_id=bare_id(sandbox_id)), cri.StopPodSandboxResponse)

    def remove_sandbox(self, sandbox_id: str) -> None:
        """With the containers in it."""
        self._found(cri.RemovePodSandboxRequest(pod_sandbox_id=bare_id(sandbox_id)), cri.RemovePodSandboxResponse)

    def create(self, sandbox_id: str, config: cri.ContainerConfig, sandbox: cri.PodSandboxConfig) -> str:
        """The id of a container that does not run yet."""
        request = cri.CreateContainerRequest(pod_sandbox_id=bare_id(sandbox_id), config=config, sandbox_config=sandbox)
        answer = self._client.call(request, cri.CreateContainerResponse)
        return self._id("CreateContainer", answer.container_id)

    def start(self, container_id: str) -> None:
        self._client.call(cri.StartContainerRequest(container_id=bare_id(container_id)), cri.StartContainerResponse)

    def stop(self, container_id: str, grace_s: float) -> None:
        """Returns when it has ended: by force after the grace, in whole seconds."""
        grace_s = min(max(0.0, grace_s), LONGEST_S)  # a pod's may be all that 64 bits hold
        request = cri.StopContainerRequest(container_id=bare_id(container_id), timeout=round(grace_s))
        try:
            deadline_s = self._client.deadline_s + grace_s
            self._client.call(request, cri.StopContainerResponse, deadline_s=deadline_s)
        except CriError as e:
            if e.trouble is not Trouble.NOT_FOUND:
                raise

    def remove(self, container_id: str) -> None:
        """Whether it runs or not."""
        self._found(cri.RemoveContainerRequest(container_id=bare_id(container_id)), cri.RemoveContainerResponse)

    def image(self, name: str) -> str:
        """What the runtime calls it, "" if it is not there."""
        answer = self._client.call(cri.ImageStatusRequest(image=cri.ImageSpec(image=name)), cri.ImageStatusResponse)
        return answer.image.id

    def images(self) -> tuple[Image, ...]:
        """All that are there, whoever has pulled them."""
        deadline_s = min(IMAGES_S, self._client.deadline_s)
        answer = self._client.call(cri.ListImagesRequest(), cri.ListImagesResponse, deadline_s=deadline_s)
        found = ((i.id, min(i.size, MOST_BYTES), i.repo_digests, i.repo_tags) for i in answer.images)
        return tuple(Image(id_, size, tuple(digests), tuple(tags)) for id_, size, digests, tags in found)

    def use_pod_cidr(self, cidr: str) -> None:
        """Tells the runtime which addresses pods have."""
        config = cri.RuntimeConfig(network_config=cri.NetworkConfig(pod_cidr=cidr))
        request = cri.UpdateRuntimeConfigRequest(runtime_config=config)
        self._client.call(request, cri.UpdateRuntimeConfigResponse, deadline_s=min(CIDR_S, self._client.deadline_s))

    def folders(self) -> tuple[str, str]:
        """Where images and containers are: of several file systems the first, as for a kubelet. Containers that are
        not told of are with the images."""
        deadline_s = min(FOLDERS_S, self._client.deadline_s)
        answer = self._client.call(cri.ImageFsInfoRequest(), cri.ImageFsInfoResponse, deadline_s=deadline_s)
        images, containers = (
            next(iter(told), cri.FilesystemUsage()).fs_id.mountpoint
            for told in (answer.image_filesystems, answer.container_filesystems)
        )
        if not images:
            raise CriError("ImageFsInfo", self._client.socket, Trouble.GARBAGE, Garbled("no folder of images is in it"))
        return images, containers or images

    def pull(self, name: str) -> str:
        """What the runtime calls it, when it is there."""
        request = cri.PullImageRequest(image=cri.ImageSpec(image=name))
        return self._id("PullImage", self._client.call(request, cri.PullImageResponse, deadline_s=PULL_S).image_ref)

    def _id(self, call: str, id_: str) -> str:
        """With the runtime's name, but for an image's."""
        if not id_:
            raise CriError(call, self._client.socket, Trouble.GARBAGE, Garbled("there is no id in it"))
        return id_ if call == "PullImage" else f"{self._runtime()}://{id_}"
