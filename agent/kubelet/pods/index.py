"""The pods of this node by uid, and mirror pods by the static pods they stand for. As basicManager of pkg/kubelet/pod.

A static pod does not come from the API server; there it has a mirror, which has the same name and another uid. Nobody
but the API server knows the mirror's uid: the status manager keeps and is asked by the static pod's.
"""

from collections.abc import Iterable

from agent.wire.model import Pod

_Name = tuple[str, str]


class PodIndex:
    """Not thread-safe: whoever owns it holds a lock."""

    def __init__(self, pods: Iterable[Pod] = ()) -> None:
        self._pods: dict[str, Pod] = {}
        self._uids: dict[_Name, str] = {}
        self._mirrors: dict[_Name, Pod] = {}
        self._resolved: dict[str, str] = {}  # a mirror's uid -> its static pod's
        for pod in pods:
            self.put(pod)

    def put(self, pod: Pod) -> None:
        """Adds it, or takes the place of an older version. Of a static pod and its mirror any may come first."""
        name = (pod.namespace, pod.name)
        if pod.mirror:
            self._mirrors[name] = pod
            if name in self._uids:
                self._resolved[pod.uid] = self._uids[name]
        else:
            self._pods[pod.uid] = pod
            self._uids[name] = pod.uid
            if name in self._mirrors:
                self._resolved[self._mirrors[name].uid] = pod.uid

    def remove(self, pod: Pod) -> None:
        """A mirror stays known as the static pod's until it goes itself."""
        name = (pod.namespace, pod.name)
        if pod.mirror:
            self._mirrors.pop(name, None)
            self._resolved.pop(pod.uid, None)
        else:
            self._pods.pop(pod.uid, None)
            if self._uids.get(name) == pod.uid:
                del self._uids[name]

    @property
    def pods(self) -> dict[str, Pod]:
        """uid -> pod, without mirrors. Not to be changed."""
        return self._pods

    def static_pods(self) -> dict[str, Pod]:
        """uid -> static pod."""
        return {uid: pod for uid, pod in self._pods.items() if pod.static}

    def orphaned_mirrors(self) -> list[Pod]:
        """The mirrors of whose name there is no pod."""
        return [mirror for name, mirror in self._mirrors.items() if name not in self._uids]

    @property
    def mirrors(self) -> dict[str, Pod]:
        """uid -> mirror."""
        return {mirror.uid: mirror for mirror in self._mirrors.values()}

    def mirror_of(self, pod: Pod) -> Pod | None:
        return self._mirrors.get((pod.namespace, pod.name))

    def resolved_uid(self, uid: str) -> str:
        """Of a mirror the uid of its static pod, else the same (TranslatePodUID)."""
        return self._resolved.get(uid, uid)

    def status_uid(self, uid: str) -> str | None:
        """By which uid the API server has the pod; None: it is static and has no mirror there (GetUIDTranslations)."""
        found = None
        for mirror_uid, resolved in self._resolved.items():
            if resolved == uid:
                found = mirror_uid
        if found is not None:
            return found
        pod = self._pods.get(uid)
        return None if pod is not None and pod.static else uid
