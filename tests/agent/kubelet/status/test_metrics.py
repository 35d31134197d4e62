"""What the status manager counts (rows S98, S103)."""

from agent.kubelet.status.termination import Termination, terminations
from agent.wire.model import ContainerStatus, ContainerTerminated, PodPhase, PodStatus
from kube.errors import ServerError
from tests.agent.kubelet.status.builders import make_status, running, waiting
from tests.agent.kubelet.status.scene import Scene
from tools.kit.cases import cases


def status(
    *containers: ContainerStatus, init: ContainerStatus | None = None, ephemeral: ContainerStatus | None = None
) -> PodStatus:
    return make_status(
        container_statuses=containers or None,
        init_container_statuses=None if init is None else (init,),
        ephemeral_container_statuses=None if ephemeral is None else (ephemeral,),
    )


def ended(name: str, exit_code: int = 3, reason: str = "Error") -> ContainerStatus:
    return ContainerStatus(name, ContainerTerminated(exit_code, reason))


@cases(
    "old, new, expected",
    ("it ran", status(running("a")), status(ended("a")), [Termination("container", 3, "Error")]),
    ("never seen", status(), status(ended("a")), [Termination("container", 3, "Error")]),
    ("it had ended, otherwise", status(ended("a")), status(ended("a", 0)), []),
    ("it waits again", status(ended("a")), status(waiting("a")), []),
    (
        "of each kind",
        status(),
        status(init=ended("i"), ephemeral=ended("e", 0, "")),
        [Termination("init_container", 3, "Error"), Termination("ephemeral_container", 0, "")],
    ),
)
def test_s98_a_container_that_ends_is_counted_once(old: PodStatus, new: PodStatus, expected: list[Termination]) -> None:
    assert expected == terminations(old, new)


def counted(scene: Scene) -> dict[str, float]:
    return {suffix + more.get("le", ""): value for suffix, more, value in scene.manager.took().samples()}


def test_s103_from_the_first_change_that_is_not_written_to_its_write() -> None:
    scene = Scene()
    scene.set(make_status(phase=PodPhase.PENDING))
    scene.monotonic.time += 2.0
    scene.set(make_status(phase=PodPhase.RUNNING))
    scene.monotonic.time += 2.5
    scene.client.errors["GET"] = [ServerError]
    scene.sync()
    assert 0.0 == counted(scene)["_count"], "not written"
    scene.sync()
    assert (1.0, 4.5, 1.0) == tuple(counted(scene)[name] for name in ("_count", "_sum", "_bucket5"))
    scene.monotonic.time += 50.0
    scene.set(make_status(phase=PodPhase.FAILED))
    scene.sync()
    assert (2.0, 4.5) == tuple(counted(scene)[name] for name in ("_count", "_sum"))
