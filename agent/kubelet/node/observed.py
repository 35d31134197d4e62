"""What a runtime and what measures the machine have found for the Node's status. Pure. A runtime that knows nothing of
images, handlers or volumes leaves them empty.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from agent.wire.model import Image, NodeImage, NodeRuntimeHandler

IMAGES = 50  # nodeStatusMaxImages
NAMES = 5  # MaxNamesPerImageInNodeStatus


@dataclass(frozen=True, slots=True)
class Observed:
    """`volumes_in_use`: None until it is known, then what the Node says of them stays. `pressures`: the types of the
    conditions that are under pressure. `runtime_version`: name://version; "": the agent is the runtime.
    `supplemental_groups_policy`: does the runtime know it? None where it does not say."""

    images: tuple[Image, ...] = ()
    runtime_handlers: tuple[NodeRuntimeHandler, ...] = ()
    volumes_in_use: tuple[str, ...] | None = None
    pressures: frozenset[str] = frozenset()
    runtime_version: str = ""
    supplemental_groups_policy: bool | None = None


NOTHING = Observed()


def reported_images(images: Iterable[Image]) -> tuple[NodeImage, ...]:
    """The largest ones, each with its first names, digests before tags."""
    largest = sorted(images, key=lambda image: (image.size_bytes, image.id), reverse=True)[:IMAGES]
    return tuple(NodeImage((image.digests + image.tags)[:NAMES], image.size_bytes) for image in largest)
