"""What of the last statuses cannot be written while the agent ends is written after its next start."""

import pytest

from agent.wire.model import Pod, PodPhase, RestartPolicy
from kube.errors import DeadlineExceeded
from tests.agent.kubelet.pods.test_sync import Node
from tests.agent.kubelet.status.builders import make_pod
from tests.agent.kubelet.status.scene import FakeClient

PODS = [
    make_pod("c", uid=f"uid-{n}", name=f"pod-{n}", restart_policy=policy)
    for n, policy in enumerate((RestartPolicy.NEVER, RestartPolicy.NEVER, RestartPolicy.ALWAYS, RestartPolicy.ALWAYS))
]


class ApiServer:
    """Has these pods. `answers`: how many more requests get an answer; None: all do."""

    def __init__(self) -> None:
        self._pods = {pod.name: FakeClient(pod) for pod in PODS}
        self.answers: int | None = None

    def _of(self, path: str) -> FakeClient:
        if self.answers == 0:
            raise DeadlineExceeded(path=path)
        if self.answers is not None:
            self.answers -= 1
        return self._pods[path.split("/")[6]]

    def get(self, path: str) -> bytes:
        return self._of(path).get(path)

    def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:
        return self._of(path).patch(path, body, content_type=content_type)

    def delete(self, path: str, _body: bytes = b"") -> bytes:
        raise AssertionError(f"{path} was deleted")

    def pods(self) -> list[Pod]:
        return [client.pod for client in self._pods.values() if client.pod is not None]

    def told(self) -> list[tuple[PodPhase, str, int | None]]:
        """Of each pod the phase, what its container is, and the last exit code that is told of it."""
        return [_told(pod) for pod in self.pods()]


def _told(pod: Pod) -> tuple[PodPhase, str, int | None]:
    (container,) = pod.status.container_statuses or ()
    ended = [state.exit_code for state in (container.state, container.last_state) if hasattr(state, "exit_code")]
    return pod.status.phase, type(container.state).__name__.removeprefix("Container").lower(), (ended or [None])[0]


def started(api: ApiServer, before: Node | None = None) -> Node:
    """An agent, over what the one before it has left on the disk."""
    node = Node()
    node.statuses._client = api
    if before is not None:
        node.runtime.pods, node.runtime._ids = before.runtime.pods, before.runtime._ids
    node.pods.update({pod.uid: pod for pod in api.pods()})  # all at once: what is not there is an orphan
    for pod in api.pods():
        node.put(pod)
    node.statuses.sync_batch(everything=True)
    return node


def stopped(node: Node) -> None:
    node.loop.start()
    node.loop.stop()
    node.statuses.start()
    node.statuses.stop()


RUNS = (PodPhase.RUNNING, "running", None)
ENDED, AGAIN = (PodPhase.FAILED, "terminated", 143), (PodPhase.RUNNING, "running", 143)


@pytest.mark.parametrize("answers", [0, 2, 4, 5], ids=lambda answers: f"after {answers} requests nobody answers")
def test_it_follows(answers: int) -> None:
    api = ApiServer()
    first = started(api)
    assert [RUNS] * 4 == api.told()
    api.answers = answers
    stopped(first)
    written = sum(told != RUNS for told in api.told())
    api.answers = None
    started(api, first)
    assert (answers // 2, [ENDED, ENDED, AGAIN, AGAIN]) == (written, api.told())
