#!/usr/bin/python
"""Lets a pod of a new image read its new configuration before anything is changed.

It tries one pod for each processor architecture before a DaemonSet rolls out (`daemonset`), or a given one (`pod`). So
an image that cannot be pulled or run, a missing folder and a refused configuration are detected before any change. The
pods name their nodes, so no scheduler is needed.
"""

import json
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_objects.kubectl import Kubectl, warnings_of_pods
from ansible.module_utils.readygate_objects.trial import outcome, trial_nodes, trial_pod, turned_away

EVERY_S = 1.0
LABEL = "app.kubernetes.io/name"
NO_NODE = "it may run on no Ready node: check its node selector and the image's architectures"
LINES_OF_A_POD = 4


class Trial:
    """Runs trial pods to their end and removes them. Raises OSError if kubectl fails."""

    def __init__(self, kubectl: Kubectl, seconds: int, lines: int = 1) -> None:
        self._kubectl = kubectl
        self._seconds = seconds
        self._until = time.monotonic() + seconds
        self._lines = lines

    def on_each_architecture(self, daemon_set: dict) -> str:
        """Why the trial failed; "" if it succeeded. If a node has no room, another one of its architecture is tried."""
        all_nodes = self._kubectl.get("nodes")["items"]
        wanted, away = trial_nodes(daemon_set, all_nodes), {}
        nodes = wanted
        while nodes:
            pods = [trial_pod(daemon_set, node, arch, self._seconds) for arch, node in nodes.items()]
            why, more = self.of(pods)
            away.update(more)
            left = [node for node in all_nodes if node["metadata"]["name"] not in away]
            nodes = trial_nodes(daemon_set, left)
            if not more or nodes.keys() != wanted.keys() or time.monotonic() > self._until:
                return why
        return NO_NODE

    def of(self, wanted: list) -> tuple:
        """(why it failed, node -> why its kubelet had no room): as `on_each_architecture`."""
        selector = "--selector={}={}".format(LABEL, wanted[0]["metadata"]["labels"][LABEL])
        self._kubectl.run(
            "delete", "pods", selector, "--ignore-not-found", "--grace-period=0", "--force", "--wait=true"
        )
        try:
            self._kubectl.run("create", "--filename=-", stdin="\n---\n".join(json.dumps(pod) for pod in wanted))
            return self._watch(selector, len(wanted))
        finally:
            self._kubectl.run(
                "delete", "pods", selector, "--ignore-not-found", "--grace-period=0", "--force", "--wait=false"
            )

    def _watch(self, selector: str, number: int) -> tuple:
        memories = {}
        while True:
            pods, events = self._kubectl.get("pods", selector)["items"], warnings_of_pods(self._kubectl)
            ends, away = {}, {}
            for pod in pods:
                memory, node = memories.setdefault(pod["metadata"]["name"], {}), pod["spec"]["nodeName"]
                ends[node] = outcome(pod, events, memory, time.monotonic(), self._lines)
                if turned_away(pod):
                    away[node] = turned_away(pod)
            wrong = [f"on {node}: {why}" for node, (ended, why) in ends.items() if ended and why]
            if wrong:
                return "; ".join(wrong), away
            if len(ends) == number and all(ended for ended, _ in ends.values()):
                return "", {}
            if time.monotonic() > self._until:
                waits = [f"on {node}: {why or 'it has not ended'}" for node, (ended, why) in ends.items() if not ended]
                return f"after {self._seconds} s it had not ended; " + "; ".join(waits), {}
            time.sleep(EVERY_S)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
            "namespace": {"required": True},
            "daemonset": {"type": "dict"},
            "pod": {"type": "dict"},
            "timeout_seconds": {"type": "int", "default": 180},
        },
        mutually_exclusive=[["daemonset", "pod"]],
        required_one_of=[["daemonset", "pod"]],
    )
    daemon_set, pod = module.params["daemonset"], module.params["pod"]
    spec = pod["spec"] if pod else daemon_set["spec"]["template"]["spec"]
    image, changed = spec["containers"][0]["image"], "nothing was changed" if pod else "no agent was changed"
    try:
        kubectl = Kubectl(module.params["kubeconfig"], module.params["namespace"])
        trial = Trial(kubectl, module.params["timeout_seconds"], LINES_OF_A_POD if pod else 1)
        why = trial.of([pod])[0] if pod else trial.on_each_architecture(daemon_set)
    except OSError as e:
        module.fail_json(msg=f"the trial of image {image} could not run: {e}; {changed}")
    if why:
        module.fail_json(msg=f"image {image} does not accept this configuration: {why}; {changed}")
    module.exit_json(changed=False, msg=f"image {image} accepts this configuration")


if __name__ == "__main__":
    main()
