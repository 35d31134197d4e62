"""What a container is started with: its environment and its command line, makeEnvironmentVariables and
ExpandContainerCommandAndArgs. Left out: services, configuration and secrets, which the agent does not read."""

from random import Random

import msgspec

from agent.kubelet.runtime.base import StartError
from agent.kubelet.runtime.environment import Place, command_line, environment, variables
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from component.text import expand
from tools.differential.target import Answers, History
from tools.differential.worlds import Json, maybe

NAMES = ("A", "B", "C", "HOSTNAME", "PATH", "a.b")
VALUES = (
    *("", "v", "$(A)", "$(B)", "$(C)$(A)", "$$(A)", "$$$(A)", "$(A", "$()", "$(HOSTNAME)", "$(PATH)", "$A", "$", "$$"),
    *("a$(a.b)z", "$(A)$", "$($(A))", "ü$(A)", "$(no\nname)", "$(A))", "$((A))", "$ (A)"),
)
FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"),
    *("spec.nodeName", "spec.serviceAccountName", "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"),
    *("metadata.labels['l']", "metadata.labels['none']", "metadata.annotations['x/y']", "metadata.annotations['l']"),
    *("metadata.other", "status.phase", "metadata.labels['']", "metadata.labels"),
)
TEXTS = (
    "v",
    "",
    "a\\b",
    'a"b',
    "a\nb\tc",
    "ü",
    "\x01",
    "\x7f",
    "\u2028",
    "\U0001f600",
    "a=b",
    "\ufeff",
    "\u00a0",
    "\u00ad",
)


class StartsTarget:
    name = "starts"

    def draw(self, random: Random) -> History:
        meta: Json = {"uid": "u", "name": "pod", "namespace": "default"}
        for kind, keys in (("labels", ("l", "m", "b")), ("annotations", ("x/y", "l", "a"))):
            if maybe(random, 0.6):
                meta[kind] = {key: random.choice(TEXTS) for key in keys if maybe(random, 0.7)}
        container: Json = {"name": "a", "env": [_variable(random) for _ in range(random.choice((0, 1, 2, 3, 4)))]}
        container["command"] = [random.choice(VALUES) for _ in range(random.choice((1, 1, 2, 3)))]
        container["args"] = [random.choice(VALUES) for _ in range(random.choice((0, 0, 1, 2)))]
        spec: Json = {"containers": [container]}
        if maybe(random, 0.7):
            spec |= {"nodeName": "node-1", "serviceAccountName": "robot"}
        ip = random.choice(("10.0.0.1", "10.0.0.1", "fd00::1", ""))
        return {"pod": {"metadata": meta, "spec": spec}, "podIP": ip, "hostIP": "192.168.0.1"}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        pod = parse_pod(msgspec.json.encode(history["pod"]))
        container, place = pod.containers[0], Place(history["podIP"], history["hostIP"], {"PATH": "/bin"})
        try:
            env = variables(pod, container, place)
            line = [expand(word, env) for word in (*container.command, *container.args)]  # as over the CRI
            if container.command and line != command_line(container, environment(pod, container, place), ()):
                return {"line": "of a process another one"}
        except StartError:
            return {"fails": True}
        return {"env": env, "line": line}

    def told(self, answer: Answers) -> Answers:
        return answer


def _variable(random: Random) -> Json:
    variable: Json = {"name": random.choice(NAMES)}
    if maybe(random, 0.7):
        return {**variable, "value": random.choice(VALUES)}
    if maybe(random, 0.85):
        return {**variable, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": random.choice(FIELDS)}}}
    reference = {"name": "none", "key": "k", "optional": maybe(random, 0.8)}
    return {**variable, "valueFrom": {"configMapKeyRef": reference}}
