"""What a runtime that can be written to has: sandboxes, containers, images. The file is the truth: it outlives it.

A sandbox's name and attempt are its own, as in containerd.
"""

import json
import threading
import time
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from agent.cri import api_pb2 as cri

_LOCK = threading.Lock()


class Refused(Exception):  # noqa: N818 - what the runtime says
    """The code of gRPC and the text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Store:
    """`calls`: what was written, in its order, as "METHOD name"."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def read(self) -> dict[str, Any]:
        if not self.file.exists():
            return {"sandboxes": {}, "containers": {}, "images": [], "calls": [], "last": 0}
        return dict(json.loads(self.file.read_text()))

    def write(self, state: dict[str, Any]) -> None:
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.replace(self.file)

    def do(self, method: str, request: Any) -> Any:
        """The answer; None: not of those that are kept here. Raises Refused."""
        act = getattr(self, f"_{method}", None)
        if act is None:
            return None
        with _LOCK:
            state = self.read()
            found = act(state, request)
            self.write(state)
        return found

    # --- pods ---

    def _RunPodSandbox(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802 - the CRI's
        config = json_format.MessageToDict(request.config)
        if any(config["metadata"] == known["config"]["metadata"] for known in state["sandboxes"].values()):
            raise Refused("UNKNOWN", f"failed to reserve sandbox name {request.config.metadata.name!r}")
        id_ = _new(state, "s")
        state["sandboxes"][id_] = {"config": config, "ready": True, "created": time.time_ns()}
        _called(state, "RunPodSandbox", request.config.metadata.name)
        return cri.RunPodSandboxResponse(pod_sandbox_id=id_)

    def _StopPodSandbox(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        found = _find(state, "sandboxes", request.pod_sandbox_id)
        found["ready"] = False
        for container in state["containers"].values():
            if container["sandbox"] == request.pod_sandbox_id and container["state"] == cri.CONTAINER_RUNNING:
                container |= {"state": cri.CONTAINER_EXITED, "code": 137, "finished": time.time_ns()}
        _called(state, "StopPodSandbox", found["config"]["metadata"]["name"])
        return cri.StopPodSandboxResponse()

    def _RemovePodSandbox(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        found = _find(state, "sandboxes", request.pod_sandbox_id)
        del state["sandboxes"][request.pod_sandbox_id]
        _called(state, "RemovePodSandbox", found["config"]["metadata"]["name"])
        return cri.RemovePodSandboxResponse()

    def _ListPodSandbox(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        items = [_sandbox(id_, known) for id_, known in state["sandboxes"].items()]
        return cri.ListPodSandboxResponse(items=_wanted(items, request.filter))

    def _PodSandboxStatus(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        known = _find(state, "sandboxes", request.pod_sandbox_id)
        listed = _sandbox(request.pod_sandbox_id, known)
        status = cri.PodSandboxStatus(
            id=listed.id, metadata=listed.metadata, state=listed.state, created_at=listed.created_at
        )
        config = json_format.ParseDict(known["config"], cri.PodSandboxConfig())
        options = config.linux.security_context.namespace_options
        status.linux.namespaces.options.CopyFrom(options)
        status.network.ip = "10.0.0.9" if known["ready"] and options.network != cri.NODE else ""
        return cri.PodSandboxStatusResponse(status=status)

    # --- containers ---

    def _CreateContainer(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        _find(state, "sandboxes", request.pod_sandbox_id)
        config = json_format.MessageToDict(request.config)
        id_ = _new(state, "c")
        state["containers"][id_] = {
            "config": config,
            "sandbox": request.pod_sandbox_id,
            "state": cri.CONTAINER_CREATED,
            "created": time.time_ns(),
        }
        _called(state, "CreateContainer", request.config.metadata.name)
        return cri.CreateContainerResponse(container_id=id_)

    def _StartContainer(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        found = _find(state, "containers", request.container_id)
        found |= {"state": cri.CONTAINER_RUNNING, "started": time.time_ns()}
        _called(state, "StartContainer", found["config"]["metadata"]["name"])
        return cri.StartContainerResponse()

    def _StopContainer(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        found = _find(state, "containers", request.container_id)
        if found["state"] == cri.CONTAINER_RUNNING:
            found |= {"state": cri.CONTAINER_EXITED, "code": 143, "finished": time.time_ns()}
        _called(state, "StopContainer", f"{found['config']['metadata']['name']} {request.timeout}")
        return cri.StopContainerResponse()

    def _RemoveContainer(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        found = _find(state, "containers", request.container_id)
        del state["containers"][request.container_id]
        _called(state, "RemoveContainer", found["config"]["metadata"]["name"])
        return cri.RemoveContainerResponse()

    def _ListContainers(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        items = [_container(id_, known) for id_, known in state["containers"].items()]
        return cri.ListContainersResponse(containers=_wanted(items, request.filter))

    def _ContainerStatus(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        known = _find(state, "containers", request.container_id)
        listed = _container(request.container_id, known)
        status = cri.ContainerStatus(
            id=listed.id,
            metadata=listed.metadata,
            state=listed.state,
            created_at=listed.created_at,
            labels=listed.labels,
            annotations=listed.annotations,
            image=listed.image,
            started_at=known.get("started", 0),
            finished_at=known.get("finished", 0),
            exit_code=known.get("code", 0),
        )
        return cri.ContainerStatusResponse(status=status)

    # --- images ---

    def _ImageStatus(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        name = _without_latest(request.image.image)
        return cri.ImageStatusResponse(image=cri.Image(id=f"sha256:{name}") if name in state["images"] else None)

    def _PullImage(self, state: dict[str, Any], request: Any) -> Any:  # noqa: N802
        name = _without_latest(request.image.image)
        _called(state, "PullImage", name)
        state["images"].append(name)
        return cri.PullImageResponse(image_ref=f"sha256:{name}")


def _without_latest(name: str) -> str:
    """As a runtime knows an image, whichever way it is asked for."""
    return name.removesuffix(":latest")


def _new(state: dict[str, Any], prefix: str) -> str:
    state["last"] += 1
    return f"{prefix}{state['last']}"


def _called(state: dict[str, Any], method: str, name: str) -> None:
    state["calls"].append(f"{method} {name}")


def _find(state: dict[str, Any], kind: str, id_: str) -> dict[str, Any]:
    if id_ not in state[kind]:
        raise Refused("NOT_FOUND", f"{id_}: not found")
    return dict.__getitem__(state[kind], id_)


def _sandbox(id_: str, known: dict[str, Any]) -> Any:
    config = json_format.ParseDict(known["config"], cri.PodSandboxConfig())
    return cri.PodSandbox(
        id=id_,
        metadata=config.metadata,
        state=cri.SANDBOX_READY if known["ready"] else cri.SANDBOX_NOTREADY,
        created_at=known["created"],
        labels=config.labels,
    )


def _container(id_: str, known: dict[str, Any]) -> Any:
    config = json_format.ParseDict(known["config"], cri.ContainerConfig())
    return cri.Container(
        id=id_,
        pod_sandbox_id=known["sandbox"],
        metadata=config.metadata,
        image=config.image,
        state=known["state"],
        created_at=known["created"],
        labels=config.labels,
        annotations=config.annotations,
    )


def _wanted(items: list[Any], filter_: Any) -> list[Any]:
    return [item for item in items if dict(filter_.label_selector).items() <= dict(item.labels).items()]
