#!/usr/bin/python
"""Lets a pod of the new image read its new configuration, one for each kind of processor, before a DaemonSet rolls out.

So an image that cannot be pulled or run, a folder that is not there, and a configuration that the agent refuses are
found while no agent has been touched. The pods go to nodes by name: no scheduler is needed.
"""

import json
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_objects.kubectl import Kubectl, warnings_of_pods
from ansible.module_utils.readygate_objects.trial import NAME, outcome, trial_nodes, trial_pod

EVERY_S = 1.0


def run(kubectl: Kubectl, daemon_set: dict, seconds: int) -> str:
    """Why the trial failed; "" where it went well."""
    selector = "--selector=app.kubernetes.io/name=" + NAME
    nodes = trial_nodes(daemon_set, kubectl.get("nodes")["items"])
    if not nodes:
        return "no Ready node is one that it may run on: see its node selector and the image's architectures"
    kubectl.run("delete", "pods", selector, "--ignore-not-found", "--grace-period=0", "--force", "--wait=true")
    wanted = [trial_pod(daemon_set, node, arch, seconds) for arch, node in nodes.items()]
    try:
        kubectl.run("create", "--filename=-", stdin="\n---\n".join(json.dumps(pod) for pod in wanted))
        return _watch(kubectl, selector, nodes, seconds)
    finally:
        kubectl.run("delete", "pods", selector, "--ignore-not-found", "--grace-period=0", "--force", "--wait=false")


def _watch(kubectl: Kubectl, selector: str, nodes: dict, seconds: int) -> str:
    until, memories = time.monotonic() + seconds, {}
    while True:
        pods, events = kubectl.get("pods", selector)["items"], warnings_of_pods(kubectl)
        ends = {}
        for pod in pods:
            memory = memories.setdefault(pod["metadata"]["name"], {})
            ends[pod["spec"]["nodeName"]] = outcome(pod, events, memory, time.monotonic())
        wrong = [f"on {node}: {why}" for node, (ended, why) in ends.items() if ended and why]
        if wrong:
            return "; ".join(wrong)
        if len(ends) == len(nodes) and all(ended for ended, _ in ends.values()):
            return ""
        if time.monotonic() > until:
            waits = [f"on {node}: {why or 'it has not ended'}" for node, (ended, why) in ends.items() if not ended]
            return f"after {seconds} s it had not ended; " + "; ".join(waits)
        time.sleep(EVERY_S)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
            "namespace": {"required": True},
            "daemonset": {"type": "dict", "required": True},
            "timeout_seconds": {"type": "int", "default": 180},
        },
    )
    daemon_set = module.params["daemonset"]
    image = daemon_set["spec"]["template"]["spec"]["containers"][0]["image"]
    try:
        kubectl = Kubectl(module.params["kubeconfig"], module.params["namespace"])
        why = run(kubectl, daemon_set, module.params["timeout_seconds"])
    except OSError as e:
        module.fail_json(msg=f"the trial of image {image} could not be made: {e}")
    if why:
        module.fail_json(msg=f"image {image} does not take this configuration: {why}; no agent was changed")
    module.exit_json(changed=False, msg=f"image {image} takes this configuration")


if __name__ == "__main__":
    main()
