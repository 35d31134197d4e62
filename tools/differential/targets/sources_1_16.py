"""Where pods come from in kubelet 1.16, and in the agent with `compat: v1.16`.

podStorage.Merge, the folder of manifests as it is scanned, the pod manager with its translation of uids, and the mirror
client. Not drawn is what differs on purpose: files that are broken, a folder that vanishes, static pods that are being
ended.
"""

import itertools
import json
import re
from random import Random
from typing import Any

from tools.differential import worlds
from tools.differential.target import Answers, History
from tools.differential.targets.sources import FILES, NODE, SourcesTarget
from tools.differential.worlds import maybe

_OWNER = re.compile(r"^(create \S+ \S+) of Node node-uid true$")
NAMES = [f"web-{index}" for index in range(len(FILES))]


class OldSourcesTarget(SourcesTarget):
    name = "sources-1.16"

    def draw(self, random: Random) -> History:
        steps, pods, numbers = list[Any](), dict[str, Any](), itertools.count()
        node = "there"
        for number in range(random.randint(1, 7)):
            files: dict[str, str | None] = {}
            for file, name in zip(FILES, NAMES, strict=True):
                if maybe(random, 0.4):
                    files[file] = None if maybe(random, 0.25) else _manifest(random, name)
            self._change(random, pods, [f"{name}-{NODE}" for name in NAMES], numbers)
            node = random.choice((node, node, node, "", "deleting", "there"))
            steps.append(
                {
                    "wall": worlds.START + 10.0 * number,
                    "gone": False,
                    "files": files,
                    "scan": True,
                    "listed": maybe(random, 0.7),
                    "pods": json.loads(json.dumps([*pods.values()])),
                    "node": node,
                    "ending": [],
                    "faults": [random.choice(("", "", "gone", "conflict", "away")) for _ in range(3)],
                }
            )
        return {"steps": steps}

    def told(self, answer: Answers) -> Answers:
        """Not to which Node a mirror belongs: 1.16 does not say."""
        if not isinstance(answer, list):
            return answer
        return [{**step, "calls": [_OWNER.sub(r"\1", call) for call in step["calls"]]} for step in answer]


def _manifest(random: Random, name: str) -> str:
    meta, spec = [f"name: {name}"], [f"containers: [{{name: c, image: {random.choice('ij')}}}]"]
    if maybe(random, 0.2):
        meta.append(f"labels: {{a: {random.choice('bc')}}}")
    if name == NAMES[2] and maybe(random, 0.5):
        meta.append("uid: fixed")
    if maybe(random, 0.15):
        meta.append(f"annotations: {{a: {random.choice('bc')}}}")
    if maybe(random, 0.15):
        spec.append(f"terminationGracePeriodSeconds: {random.choice((0, 5))}")
    if maybe(random, 0.15):
        spec.append("hostNetwork: true")
    if maybe(random, 0.15):
        spec.append(f"restartPolicy: {random.choice(('OnFailure', 'Never'))}")  # a default is no part of 1.16's hash
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{{', '.join(meta)}}}\nspec: {{{', '.join(spec)}}}\n"
