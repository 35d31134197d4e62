"""Is a plugin taken, by its name and its versions? HighestSupportedVersion, IsExtendedResourceName and ValidatePlugin
of the manager of resource claims, on random texts."""

from random import Random

from agent.kubelet.plugins.handlers import DraHandler, highest_version, is_extended_resource
from agent.wire.semantics import Semantics
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

WORDS = (
    "0",
    "1",
    "1",
    "1",
    "2",
    "00",
    "01",
    "10",
    "18446744073709551616",
    "v",
    "V",
    ".",
    ".",
    "-",
    "+",
    "rc",
    " ",
    "\u0661",
    "",
)
VERSIONS = (
    "1.0",
    "1.0.0",
    "1.2",
    "v1.3",
    "0.3",
    "2.0",
    "1",
    "1.0-rc1",
    "1.10",
    "1.9",
    " 1.4",
    "1.5 ",
    "1.6\n",
    "1.2.3.4",
)
SERVICES = ("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha4.Node", "v1", "1.0.0", "DRAPlugin")
PARTS = (
    "example.com",
    "a",
    "A",
    "-",
    ".",
    "_",
    "/",
    "kubernetes.io",
    "requests.",
    "gpu",
    "x" * 63,
    "x" * 64,
    "y." * 120,
    "\u00fc",
    "",
)


class DriversTarget:
    name = "drivers"

    def draw(self, random: Random) -> History:
        versions = [self._version(random) for _ in range(random.choice((0, 1, 1, 2, 3)))]
        name = "".join(random.choice(PARTS) for _ in range(random.randint(0, 5)))
        return {
            "name": random.choice((name, name, "example.com/gpu", f"example.com/{name}", f"requests.{name}/gpu")),
            "versions": versions,
        }

    def _version(self, random: Random) -> str:
        if maybe(random, 0.6):
            return random.choice((*VERSIONS, *SERVICES))
        return "".join(random.choice(WORDS) for _ in range(random.randint(1, 6)))

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        highest = highest_version(history["versions"])
        return {
            "volumes": "" if highest is None else ".".join(map(str, highest)),
            "devices": is_extended_resource(history["name"]),
            "claims": DraHandler().validate(history["name"], history["versions"]) == "",
        }

    def told(self, answer: Answers) -> Answers:
        return answer
