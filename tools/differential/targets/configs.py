"""What a container runtime is asked to make, as messages of the CRI: generatePodSandboxConfig, generateContainerConfig
with all they call, and calcRestartCountByLogDir.

Left out, by rows CW of docs/kubelet-parity.md: resources, users and DNS, which the runtime's own take the place of;
cgroups, the folder of logs, whose it is, all annotations of a container but its restart count. Who asks for what the
agent does not model is refused before, so it is not drawn.
"""

from random import Random
from typing import Any

import msgspec
from google.protobuf.json_format import MessageToDict

from agent.cri.convert import ANNOTATION_RESTART_COUNT, LABEL_OWNER
from agent.kubelet.runtime.cri_configs import container_config, restarts_by_logs, sandbox_config
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from tools.differential.target import Answers, History
from tools.differential.worlds import Json, maybe

NAMES = ("pod", "a-b.c", "x" * 63, "x" * 64, "x" * 62 + "-y", "y" * 61 + "..z", "z" * 200)
VALUES = ("", "v", "$(A)", "$$(A)", "$(B)$(A)", "$(none)", "ü", "a b")
KEYS = ("app", "io.kubernetes.pod.name", "io.kubernetes.pod.uid", "io.kubernetes.container.name", "x/y")
LOGS = (
    *("0.log", "1.log", "7.log", "2.log.20260101-000000", "3.log.gz", "12.logs", "a.log", "1.txt", "08.log"),
    *("5.log/", "9223372036854775806.log", "9223372036854775808.log", "-3.log", " 4.log", "4.log ", "٣.log", "6log"),
    *("9223372036854775807.log", "4294967295.log", "00.log", "+1.log", "1_0.log", "-0.log", ".log", "1.LOG", "1 .log"),
)


PIECES = (
    *(
        "0",
        "1",
        "9",
        "12",
        "9223372036854775807",
        "-",
        "+",
        "_",
        " ",
        "\t",
        ".",
        ".log",
        ".log",
        "log",
        ".gz",
        "e1",
        "x",
        "\u0663",
    ),
    *("\u00a0", "20260101-000000", "0x1", "\u2028"),
)


class ConfigsTarget:
    name = "configs"

    def draw(self, random: Random) -> History:
        meta: Json = {"uid": "u", "name": random.choice(NAMES), "namespace": random.choice(("default", "other"))}
        for kind in ("labels", "annotations"):
            if maybe(random, 0.5):
                meta[kind] = {key: random.choice(VALUES) for key in random.sample(KEYS, random.randint(0, 3))}
        spec: Json = {"containers": [_container(random, "a")], "hostNetwork": maybe(random, 0.2)}
        init = maybe(random, 0.2)
        if init:
            spec["initContainers"] = [_container(random, "i")]
        if maybe(random, 0.3):
            spec["hostname"] = random.choice(("h", "x" * 63))
        if maybe(random, 0.2):
            spec["subdomain"] = "sub"
        if maybe(random, 0.15):
            spec["hostnameOverride"] = random.choice(("over", "over.example", "o" * 64))
        return {
            "pod": {"metadata": meta, "spec": spec},
            "init": init,
            "attempt": random.choice((0, 1, 2, 2**31 - 1)),
            "env": [[name, random.choice(VALUES)] for name in random.sample(("A", "B", "C"), random.randint(0, 3))],
            "image": random.choice(("sha256:" + "0" * 64, "registry/a@sha256:1")),
            "logs": _logs(random) if maybe(random, 0.2) else [],
        }

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        pod = parse_pod(msgspec.json.encode(history["pod"]))
        container = pod.init_containers[0] if history["init"] else pod.containers[0]
        attempt, env = history["attempt"], dict(history["env"])
        if pod.beyond or container.beyond:
            raise ValueError(f"refused: {pod.beyond} {container.beyond}")
        return {
            "restarts": restarts_by_logs(name for name in history["logs"] if not name.endswith("/")),
            "sandbox": MessageToDict(sandbox_config(pod, attempt, "me", "/logs/u", "/parent")),
            "container": MessageToDict(container_config(pod, container, attempt, "me", history["image"], env)),
        }

    def told(self, answer: Answers) -> Answers:
        if "sandbox" not in answer:
            return answer
        sandbox, container = dict(answer["sandbox"]), dict(answer["container"])
        for key in ("logDirectory", "dnsConfig"):
            sandbox.pop(key, None)
        sandbox["linux"] = _without(sandbox["linux"], "cgroupParent", "resources", "overhead")
        for one in (sandbox, container):
            one["labels"] = _without(one["labels"], LABEL_OWNER)
        linux = container["linux"]
        linux = {**linux, "securityContext": _without(linux["securityContext"], "runAsUser", "runAsUsername")}
        container["linux"] = _without(linux, "resources")
        container["annotations"] = {ANNOTATION_RESTART_COUNT: container["annotations"][ANNOTATION_RESTART_COUNT]}
        return {**answer, "sandbox": sandbox, "container": container}


def _logs(random: Random) -> list[str]:
    made = ("".join(random.choice(PIECES) for _ in range(random.randint(1, 4))) for _ in range(random.randint(0, 3)))
    return list(
        dict.fromkeys((*random.sample(LOGS, random.randint(1, 4)), *(name for name in made if name.strip("."))))
    )


def _without(of: Json, *keys: str) -> Any:
    return {key: value for key, value in of.items() if key not in keys}


def _container(random: Random, name: str) -> Json:
    container: Json = {"name": name, "image": random.choice(("a", "registry/a:1"))}
    for field in ("command", "args"):
        container[field] = [random.choice(VALUES) for _ in range(random.choice((0, 0, 1, 2)))]
    for field in ("tty", "stdin", "stdinOnce"):
        if maybe(random, 0.3):
            container[field] = True
    if maybe(random, 0.3):
        container["workingDir"] = random.choice(("/", "/a b", "relative"))
    if maybe(random, 0.2):
        container["terminationMessagePath"] = "/dev/other"
    return container
