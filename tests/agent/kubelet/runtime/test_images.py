"""Whether a container's image is there, and may be pulled, and now (row CW7). Target `images` of tools/differential
compares it with the kubelet's image manager on random histories."""

import pytest

from agent.cri.base import CriError, Trouble
from agent.cri.calls import Calls
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.images import Images
from tools.kit.cases import cases


class Runtime:
    """An ImageService, and the time of its day. `faults`: what comes of the next pulls, "" for an image."""

    def __init__(self, *, there: bool = False, inspect: str = "", faults: tuple[str, ...] = ()) -> None:
        self.there, self.inspect, self.faults = there, inspect, list(faults)
        self.asked: list[str] = []
        self.now = 0.0
        self.images = Images(monotonic=lambda: self.now)

    def image(self, name: str) -> str:
        self.asked.append(f"look for {name}")
        if self.inspect:
            raise CriError("ImageStatus", "s", Trouble.REFUSED, self.inspect)
        return "id" if self.there else ""

    def pull(self, name: str) -> str:
        self.asked.append(f"pull {name}")
        if fault := self.faults.pop(0) if self.faults else "":
            raise CriError("PullImage", "s", Trouble.REFUSED, fault)
        return "pulled"

    def said(self, name: str, policy: str = "IfNotPresent", *, at: float = 0.0) -> str:
        """What the image is called, or why there is none."""
        self.now = at
        try:
            return self.images.ensure(self, Calls(), "u", name, policy)
        except StartError as e:
            return f"{e.reason}: {e}"


@cases(
    "runtime, policy, expected",
    ("it is there", Runtime(there=True), "IfNotPresent", ["id", "look for a:1"]),
    ("it is not", Runtime(), "IfNotPresent", ["pulled", "look for a:1", "pull a:1"]),
    ("Always: nobody looks whether it is", Runtime(there=True), "Always", ["pulled", "pull a:1"]),
    ("Always: be it that one could not look", Runtime(inspect="x"), "Always", ["pulled", "pull a:1"]),
)
def test_cw7_an_image_is_looked_for_and_pulled_by_its_policy(runtime, policy: str, expected: list[str]) -> None:
    assert expected == [runtime.said("a:1", policy), *runtime.asked]


def test_cw7_an_image_without_a_tag_is_asked_for_with_the_one_that_is_meant() -> None:
    runtime = Runtime()
    assert ["pulled", "look for r.example/a:latest", "pull r.example/a:latest"] == [
        runtime.said("r.example/a"),
        *runtime.asked,
    ]


def test_cw7_what_is_no_name_of_an_image_is_neither_looked_for_nor_pulled() -> None:
    runtime = Runtime(there=True)
    expected = (
        'InvalidImageName: Failed to apply default image tag "Nginx": couldn\'t parse image name "Nginx": '
        "invalid reference format: repository name (library/Nginx) must be lowercase"
    )
    assert (expected, []) == (runtime.said("Nginx"), runtime.asked)


@cases(
    "fault, expected",
    (
        "the registry",
        "RegistryUnavailable: 503",
        "RegistryUnavailable: image pull failed for a:1 because the registry is unavailable: 503",
    ),
    (
        "the signature",
        "SignatureValidationFailed",
        "SignatureValidationFailed: image pull failed for a:1 because the signature validation failed",
    ),
    ("anything else", "no such host", f"ErrImagePull: {CriError('PullImage', 's', Trouble.REFUSED, 'no such host')}"),
)
def test_cw7_why_a_pull_failed_is_said_then_and_while_nobody_tries_again(fault: str, expected: str) -> None:
    runtime = Runtime(faults=(fault,))
    assert [expected, f'ImagePullBackOff: Back-off pulling image "a:1": {expected}'] == [
        runtime.said("a:1"),
        runtime.said("a:1", at=9.9),
    ]


@pytest.mark.parametrize(
    ("second_at", "tried_again_after_s"),
    [
        pytest.param(10.0, 20.0, id="at once: twice as long"),
        pytest.param(600.0, 20.0, id="ten minutes later: the same"),
        pytest.param(600.5, 10.0, id="later than that: as after a first one"),
    ],
)
def test_cw7_a_pull_that_failed_counts_for_ten_minutes(second_at: float, tried_again_after_s: float) -> None:
    runtime = Runtime(faults=("no", "no"))
    runtime.said("a:1")
    runtime.said("a:1", at=second_at)
    before, then = (runtime.said("a:1", at=second_at + tried_again_after_s - early) for early in (0.1, 0.0))
    assert ("ImagePullBackOff", "pulled") == (before.partition(":")[0], then)


def test_cw7_a_pull_that_goes_well_forgets_none_that_failed() -> None:
    runtime = Runtime(faults=("no", "", "no"))
    said = [runtime.said("a:1", "Always", at=at) for at in (0.0, 10.0, 30.0, 49.9, 50.0)]
    assert ["ErrImagePull", "pulled", "ErrImagePull", "ImagePullBackOff", "pulled"] == [
        s.partition(":")[0] for s in said
    ]
