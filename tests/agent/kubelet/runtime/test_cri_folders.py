"""Where a container runtime says that it has images and containers (rows EP10, EP11)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cri.base import CriError
from agent.kubelet.runtime.connect import connect_runtime
from agent.kubelet.runtime.cri_runtime import CriRuntime
from agent.kubelet.runtime.kubelet_lock import KubeletLock
from tools.fakes.cri import Runtime


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    made = Runtime(tmp_path)
    made.start()
    yield made
    made.process.kill()


@pytest.fixture
def agent(runtime: Runtime, tmp_path: Path) -> Iterator[CriRuntime]:
    made = connect_runtime(
        runtime.socket, owner="n", host_ip="192.0.2.7", logs=tmp_path, guard=KubeletLock(None), deadline_s=60.0
    )
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("images", "containers", "expected"),
    [
        pytest.param(["/i", "/more"], [], ("/i", "/i"), id="the first of several, containers with them"),
        pytest.param(["/i"], ["/c", "/more"], ("/i", "/c"), id="containers elsewhere"),
    ],
)
def test_ep10_where_the_runtime_has_images_and_containers(
    runtime: Runtime, agent: CriRuntime, images: list[str], containers: list[str], expected: tuple[str, str]
) -> None:
    def told(folders: list[str]) -> list[object]:
        return [{"timestamp": "1", "fsId": {"mountpoint": folder}} for folder in folders]

    runtime.says(ImageFsInfo={"imageFilesystems": told(images), "containerFilesystems": told(containers)})
    assert expected == agent.folders()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({}, "no folder of images is in it", id="none at all"),
        pytest.param(
            {"imageFilesystems": [{"timestamp": "1"}]}, "no folder of images is in it", id="one without a place"
        ),
        pytest.param("UNKNOWN:no such snapshotter", "no such snapshotter", id="an error"),
        pytest.param("UNIMPLEMENTED:unknown method", "not offered", id="not offered"),
        pytest.param("garbage", "the answer is no CRI", id="garbage"),
        pytest.param("vanish", "went away|nobody listens", id="gone in the middle"),
        pytest.param("hang", "no answer within 0.2s", id="it hangs"),
    ],
)
def test_ep11_a_runtime_that_does_not_say_where_its_images_are(
    runtime: Runtime, agent: CriRuntime, said: object, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.kubelet.runtime.cri_writer.FOLDERS_S", 0.2 if said == "hang" else 60.0)
    runtime.says(ImageFsInfo=said)
    with pytest.raises(CriError, match=expected) as caught:
        agent.folders()
    assert "\n" not in str(caught.value)
