"""How long a container that keeps ending waits until it is started again, and what is told of that."""

from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec

from agent.kubelet.pods.starts import PodStarts, Starter
from agent.wire.containers import ContainerPhase, RuntimeContainer
from agent.wire.pod import parse_pod
from agent.wire.semantics import Semantics
from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.worlds import maybe

LONGEST_S = (300.0, 300.0, 300.0, 1.0, 9.0, 10.0, 15.0, 45.0)
PAUSES_S = (0.0, 0.25, 1.0, 9.75, 10.0, 10.25, 20.0, 45.0, 160.0, 300.0, 310.0, 600.0, 600.25, 900.0)


class BackOffTarget:
    name = "backoff"

    def draw(self, random: Random) -> History:
        """Tries now and then; between two, a container that was started has ended again, or not."""
        wall, ended, steps = worlds.START, [worlds.START, worlds.START], list[Any]()
        for _ in range(random.randint(1, 10)):
            wall += random.choice(PAUSES_S)
            container = 0 if maybe(random, 0.7) else 1
            if maybe(random, 0.7):
                ended[container] = wall - random.choice((0.0, 0.0, 0.25, 9.75, 10.0, 80.0, 700.0))
            steps.append({"wall": wall, "container": container, "ended": ended[container]})
        meta = {"uid": "u", "name": "pod", "namespace": "default"}
        pod = {"metadata": meta, "spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
        return {"pod": pod, "longest": random.choice(LONGEST_S), "steps": steps}

    def answer(self, history: History, semantics: Semantics) -> Answers:  # noqa: ARG002 - no gate is asked
        pod, now, told = parse_pod(msgspec.json.encode(history["pod"])), SimpleNamespace(wall=0.0), list[Any]()
        starter = Starter(
            None,  # type: ignore[arg-type] # nothing is started
            None,  # type: ignore[arg-type]
            wall=lambda: now.wall,
            monotonic=lambda: now.wall,
            record=told.append,
            semantics=Semantics(max_container_restart_period_s=history["longest"]),
        )
        starts, answers = PodStarts(), list[Any]()
        for number, step in enumerate(history["steps"]):
            now.wall, name = step["wall"], pod.containers[step["container"]].name
            starts.errors.clear()
            told.clear()
            ended = RuntimeContainer(
                f"test://{number}", name, ContainerPhase.EXITED, step["ended"], finished_at=step["ended"]
            )
            again_s = starter._backs_off(pod, starts, ended)
            error = starts.errors.get(name)
            answers.append(
                {
                    "waits": error is not None,
                    "message": "" if error is None else error.message,
                    "again": again_s,
                    "events": [f"{event.type} {event.reason} {event.message}" for event in told],
                }
            )
        return answers

    def told(self, answer: Answers) -> Answers:
        return answer
