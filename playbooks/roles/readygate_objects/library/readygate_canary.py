#!/usr/bin/python
"""Checks that kube-scheduler asks readygate and follows its answer, with a pod that readygate refuses on every node.

It reads the pod's condition PodScheduled, which the scheduler writes at each attempt. Events have the same text, but a
busy cluster may drop them. All objects are removed afterwards.
"""

import json
import signal
import sys
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_objects.canary import (
    NAME,
    OTHERS,
    PLACED,
    REFUSED,
    SWITCH,
    WAITS,
    canary,
    judged,
    outcome,
    priority_class,
)
from ansible.module_utils.readygate_objects.kubectl import Kubectl

EVERY_S = 0.5
TRIES = 3  # in mode protect a scheduler that has just started may miss an answer, and places the pod without it
BETWEEN_TRIES_S = 3.0
CLASS_KNOWN_WITHIN_S = 10.0  # each API server learns of a new PriorityClass through its own watch
KINDS = "pods,priorityclasses.scheduling.k8s.io"


class Canaries:
    """One pod for each scheduler, in the order of `schedulers`. Raises OSError if kubectl fails."""

    def __init__(self, kubectl: Kubectl, namespace: str, schedulers: list, image: str, resources: list) -> None:
        self._kubectl = kubectl
        self._schedulers = schedulers
        self._pods = [canary(n, namespace, each, image, resources) for n, each in enumerate(schedulers)]
        self._selector = "--selector=app.kubernetes.io/name=" + NAME

    def make(self) -> None:
        self._kubectl.run("create", "--filename=-", stdin=json.dumps(priority_class()))
        until = time.monotonic() + CLASS_KNOWN_WITHIN_S
        for pod in self._pods:
            while True:
                try:
                    self._kubectl.run("create", "--filename=-", stdin=json.dumps(pod))
                    break
                except OSError as e:
                    if "no PriorityClass with name" not in str(e) or time.monotonic() > until:
                        raise
                time.sleep(EVERY_S)

    def outcomes(self) -> dict:
        """The outcome of each scheduler's pod, also of one that is gone."""
        found = {each["metadata"]["name"]: each for each in self._kubectl.get("pods", self._selector)["items"]}
        pairs = zip(self._schedulers, self._pods)
        return {each: outcome(found.get(pod["metadata"]["name"], {}), each) for each, pod in pairs}

    def leader(self) -> str:
        """The host of the leading scheduler, "" if it is unknown. The holder of its Lease is HOST_UUID."""
        ask = ["lease", "kube-scheduler", "--namespace=kube-system", "--ignore-not-found"]
        try:
            return self._kubectl.run("get", *ask, "--output=jsonpath={.spec.holderIdentity}").partition("_")[0]
        except OSError:
            return ""

    def remove(self, *options: str) -> None:
        """Removes the pods, also those that an earlier run has left."""
        self._kubectl.run(
            "delete", KINDS, self._selector, "--ignore-not-found", "--grace-period=0", "--force", *options
        )


def prove(canaries: Canaries, seconds: float) -> tuple:
    """(state, text): REFUSED is proof, OTHERS is unknown, any other state a failure."""
    until = time.monotonic() + seconds
    for left in reversed(range(TRIES)):
        canaries.remove("--wait=true", "--timeout=20s")
        try:
            canaries.make()
            state, text = _watch(canaries, until, seconds)
        finally:
            _remove(canaries)
        if state != PLACED or not left:
            break
        time.sleep(BETWEEN_TRIES_S)
    leader = "" if state in (REFUSED, OTHERS) else canaries.leader()
    return state, text + (". The leading scheduler is on " + leader if leader else "")


def _watch(canaries: Canaries, until: float, seconds: float) -> tuple:
    began = time.monotonic()
    while True:
        try:
            state, text = judged(canaries.outcomes(), time.monotonic() - began, seconds)
        except OSError as e:  # the API server may be back in a moment
            state, text = WAITS, "the pods could not be read: {}".format(e)
        if state != WAITS or time.monotonic() > until:
            return state, text
        time.sleep(EVERY_S)


def _remove(canaries: Canaries) -> None:
    """Removes the pods, with retries. A pod that stays is never placed, and the next play removes it."""
    for _ in range(TRIES):
        if _removed(canaries):
            return
        time.sleep(BETWEEN_TRIES_S)


def _removed(canaries: Canaries) -> bool:
    try:
        canaries.remove("--wait=false")
    except OSError:
        return False
    return True


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"choices": ["proven", "absent"], "default": "proven"},
            "kubeconfig": {"type": "path", "required": True},
            "namespace": {"required": True},
            "schedulers": {"type": "list", "elements": "str", "default": []},
            "image": {"default": ""},
            "resources": {"type": "list", "elements": "str", "default": []},
            "seconds": {"type": "float", "default": 60.0},
        },
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("stopped"))  # so that the pods are removed
    given = module.params
    kubectl = Kubectl(given["kubeconfig"], given["namespace"])
    canaries = Canaries(kubectl, given["namespace"], given["schedulers"], given["image"], given["resources"])
    try:
        if given["state"] == "absent":
            canaries.remove("--wait=false")
            module.exit_json(changed=False)
        state, text = prove(canaries, given["seconds"])
    except OSError as e:
        module.fail_json(
            msg="the pod that tests whether kube-scheduler asks readygate failed in namespace {}: {}. The cause may be"
            " an admission policy, a quota, missing rights or an unreachable API server: allow the pod. {}".format(
                given["namespace"], e, SWITCH
            )
        )
    if state == OTHERS:
        module.warn(text)
    if state in (REFUSED, OTHERS):
        module.exit_json(changed=False, msg=text, proven=state == REFUSED)
    module.fail_json(msg=text)


if __name__ == "__main__":
    main()
