"""Is a container's image there, and may it be pulled, and now? EnsureImageExists of pkg/kubelet/images, step by step
under a clock that the history moves. Left out, as the agent does not model them: credentials, Events, limits of pulls.
"""

from random import Random
from typing import Any

from agent.cri.base import CriError, Trouble
from agent.cri.calls import Calls
from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.images import ALWAYS, NEVER, Images
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

SOCKET = "s"
POLICIES = (ALWAYS, ALWAYS, "IfNotPresent", "IfNotPresent", "IfNotPresent", NEVER)
PAUSES_S = (0.0, 1.0, 9.75, 10.0, 20.0, 40.0, 300.0, 300.0, 599.75, 600.0, 600.25)
FAULTS = (
    *("no such host", "no such host", "gone: try later"),
    *("RegistryUnavailable", "RegistryUnavailable: 503", "SignatureValidationFailed: no key", "a RegistryUnavailable"),
)
HEX = "0123456789abcdef" * 4
NAMES = (
    *(
        "busybox",
        "busybox:1",
        "r.example/a/b",
        "r.example:5000/a/b:v1.2",
        "localhost/a",
        "localhost:5000/a:b",
        "localhost/B",
        "a/b/c",
    ),
    *("Busybox", "a/B", "A/b", "A.example/b", "", " ", "a b", "-a", "a-", "a__b", "a___b", "a--b", "a._b", "a//b"),
    *("/a", "a/", "a:", ":a", "a:b:c", "a:-b", "a:" + "x" * 128, "a:" + "x" * 129, "a@", "a@sha256:"),
    *(
        f"a@sha256:{HEX}",
        f"a:t@sha256:{HEX}",
        f"a@sha256:{HEX}0",
        f"a@SHA256:{HEX}",
        f"a@md5:{HEX}",
        f"a@sha256:{HEX.upper()}",
    ),
    *(
        HEX,
        f"r/{HEX}",
        HEX[:63],
        "index.docker.io/a",
        "docker.io/a:latest",
        "[::1]:5000/a",
        "[::1]/a",
        "::1/a",
        "a.b:c/d",
    ),
    *("a" * 255, "a" * 256, "\u00fc", "\u212a", "a\n", "a:b\n", "http://a/b", "a@sha512:" + HEX * 2, "a:latest:latest"),
    *("x-_-y/a", "a.b-/c", "-a.b/c", f"a@b.c:{HEX[:32]}", f"a@b:{HEX[:31]}", f"a:\u00e9@sha256:{HEX}"),
)


PIECES = (
    *(
        "a",
        "a",
        "b",
        "A",
        "a.b",
        "-",
        "_",
        "__",
        ".",
        "/",
        "/",
        ":",
        ":",
        "@",
        "@sha256:",
        HEX,
        HEX[:63],
        "localhost",
        "5000",
    ),
    *(
        "docker.io",
        "index.docker.io",
        "library/",
        "latest",
        "v1",
        "x" * 127,
        "\u00fc",
        "[::1]",
        "[::1",
        " ",
        "\n",
        "0",
        "+",
    ),
)


class ImagesTarget:
    name = "images"

    def draw(self, random: Random) -> History:
        wall, steps = worlds.START, list[Any]()
        names = [random.choice(NAMES[:6]) if maybe(random, 0.6) else _odd(random) for _ in range(2)]
        for _ in range(random.choice((1, 3, 6, 9))):
            wall += random.choice(PAUSES_S)
            step = {"wall": wall, "uid": random.choice("uuuv"), "image": random.choice((names[0], *names))}
            step |= {"policy": random.choice(POLICIES), "there": maybe(random, 0.2)}
            step["inspect"] = random.choice(FAULTS) if maybe(random, 0.05) else ""
            step["pull"] = random.choice(FAULTS) if maybe(random, 0.8) else ""
            steps.append(step)
        return {"steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        scene = _Scene()
        return [scene.take(step) for step in history["steps"]]

    def told(self, answer: Answers) -> Answers:
        """Whom an error of the runtime's is from we say in our words. A kubelet forgets the name of an image that could
        not be looked for."""
        if not isinstance(answer, list):
            return answer
        said = []
        for step in answer:
            message = step["message"]
            for call in ("PullImage", "ImageStatus"):
                begins = f"{CriError(call, SOCKET, Trouble.REFUSED)} ("
                if begins in message:
                    before, _, after = message.partition(begins)
                    message = before + after.removesuffix(")")
            if step["reason"] == "ImageInspectError":
                message = message.partition('": ')[2]
            said.append({**step, "message": message})
        return said


def _odd(random: Random) -> str:
    if maybe(random, 0.5):
        return random.choice(NAMES)
    return "".join(random.choice(PIECES) for _ in range(random.randint(1, 7)))


class _Scene:
    """An ImageService as the history has it, and who asks it."""

    def __init__(self) -> None:
        self.step: Any = None
        self.asked: list[str] = []
        self.images = Images(monotonic=lambda: self.step["wall"])

    def take(self, step: Any) -> Any:
        self.step, self.asked = step, []
        said = {"ref": "", "reason": "", "message": ""}
        try:
            said["ref"] = self.images.ensure(self, Calls(), step["uid"], step["image"], step["policy"])
        except StartError as e:
            said |= {"reason": e.reason, "message": str(e)}
        return {**said, "asked": self.asked}

    def image(self, name: str) -> str:
        self.asked.append(f"look for {name}")
        self._may_fail("ImageStatus", self.step["inspect"])
        return "id" if self.step["there"] else ""

    def pull(self, name: str) -> str:
        self.asked.append(f"pull {name}")
        self._may_fail("PullImage", self.step["pull"])
        return "pulled"

    def _may_fail(self, call: str, why: str) -> None:
        if why:
            raise CriError(call, SOCKET, Trouble.REFUSED, why)
