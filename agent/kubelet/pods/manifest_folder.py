"""The static pods that the files of a folder hold, scan by scan. Pure. As listConfig of pkg/kubelet/config/file.go.

A broken file keeps the pod of its last good version. A folder that is gone keeps all pods until it has been gone for
`GONE_S`. Of several files with one pod name the last by path counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.wire.manifest import ManifestError, StaticPod, static_pod
from agent.wire.pod import ANNOTATION_CONFIG_SEEN

GONE_S = 20.0  # the kubelet's fileCheckFrequency: a folder that is gone still is at the next scan


@dataclass(frozen=True, slots=True)
class File:
    """`data`: as it was read last; None: it cannot be read. `pod`: of its last good version. `error`: what is wrong."""

    data: bytes | None
    pod: StaticPod | None
    error: str = ""


class Folder:
    """`files`: by path. `known`: whether it is known which pods there are. Not thread-safe."""

    def __init__(self, node_name: str) -> None:
        self._node_name = node_name
        self._gone_since: float | None = None
        self.files: dict[str, File] = {}
        self.known = False

    def scanned(self, found: Mapping[str, bytes | str] | None, seen: str, monotonic: float) -> None:
        """Takes the content of each file, or why it cannot be read. None: the folder is gone."""
        if found is None:
            if self._gone_since is None:
                self._gone_since = monotonic
            if monotonic - self._gone_since >= GONE_S:
                self.files, self.known = {}, True
            return
        self._gone_since, self.known = None, True
        self.files = {path: self._file(path, found[path], seen) for path in sorted(found)}

    def _file(self, path: str, content: bytes | str, seen: str) -> File:
        before = self.files.get(path, File(None, None))
        if isinstance(content, str):
            return File(None, before.pod, content)
        if content == before.data:
            return before
        try:
            found = static_pod(content, path, self._node_name, seen)
            if before.pod is not None and before.pod.pod.uid == found.pod.uid:  # it was seen first at another time
                seen = before.pod.pod.annotations[ANNOTATION_CONFIG_SEEN]
                found = static_pod(content, path, self._node_name, seen)
            return File(content, found)
        except ManifestError as e:
            return File(content, before.pod, str(e))

    def pods(self) -> list[StaticPod]:
        """One for each namespace and name."""
        by_name = {(one.pod.namespace, one.pod.name): one for file in self.files.values() if (one := file.pod)}
        return list(by_name.values())

    def errors(self) -> dict[str, str]:
        """By path: what is wrong with a file, or that another one has its pod's name."""
        last: dict[tuple[str, str], str] = {}
        errors = {path: file.error for path, file in self.files.items() if file.error}
        for path, file in self.files.items():
            if file.pod is None:
                continue
            name = (file.pod.pod.namespace, file.pod.pod.name)
            if name in last:
                errors.setdefault(last[name], f"has the pod {name[0]}/{name[1]}, as {path} has, which counts")
            last[name] = path
        return errors
