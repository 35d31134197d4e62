"""Pods as last seen in the watch, for tests: uid -> pod."""

from agent.kubelet.pods.index import PodIndex
from agent.wire.model import Pod


class Pods(dict[str, Pod]):
    """With mirrors among them."""

    def _index(self) -> PodIndex:
        return PodIndex(self.values())

    def pod_by_uid(self, uid: str) -> Pod | None:
        return self._index().pods.get(uid)

    def uids(self) -> frozenset[str]:
        return frozenset(self._index().pods)

    def mirror_of(self, pod: Pod) -> Pod | None:
        return self._index().mirror_of(pod)

    def resolved_uid(self, uid: str) -> str:
        return self._index().resolved_uid(uid)

    def status_uid(self, uid: str) -> str | None:
        return self._index().status_uid(uid)
