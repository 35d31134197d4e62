#!/usr/bin/python
"""Watches the roll-out of a DaemonSet with kubectl on a control plane host, and undoes it on request.

One call watches until the text changes or `seconds` are over. The action plugin of the same name calls it again and
shows the text.
"""

import calendar
import contextlib
import json
import re
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_objects.kubectl import Kubectl, warnings_of_pods
from ansible.module_utils.readygate_objects.lock import NAME, NAMESPACE, stamp
from ansible.module_utils.readygate_objects.rollout import (
    STALLED_S,
    Look,
    Verdict,
    hash_of,
    judge,
    limit_s,
    nodes_of,
    pod_of,
    previous,
    restored,
    short,
)

EVENT_AGE_S = 30  # an older refusal may belong to an earlier roll-out


class Watched:
    """One DaemonSet, its pods and their Events."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._kubectl = kubectl
        self.name = name
        self.selector = "--selector=app.kubernetes.io/name=" + name
        self.daemon_set = {}
        self._dead = (0.0, frozenset())  # type: tuple

    def look(self, monotonic: float, wall: float) -> Look:
        self.daemon_set = self._kubectl.get("daemonset", self.name)
        spec, status = self.daemon_set["spec"], self.daemon_set.get("status", {})
        observed = status.get("observedGeneration") == self.daemon_set["metadata"]["generation"]
        revisions = self.revisions()
        newest = sorted(revisions, key=lambda each: each["revision"])[-1:]
        on_pods = warnings_of_pods(self._kubectl)
        return Look(
            hash_of(newest[0]) if observed and newest else "",
            status.get("desiredNumberScheduled", 0),
            status.get("numberAvailable", 0),
            [pod_of(pod, on_pods) for pod in self._kubectl.get("pods", self.selector)["items"]],
            self._dead_nodes(monotonic),
            self._refused(wall),
            spec["updateStrategy"].get("rollingUpdate", {}).get("maxUnavailable", 1),
            spec.get("minReadySeconds", 0),
            len(revisions) == 1,
        )

    def revisions(self) -> list:
        return self._kubectl.get("controllerrevisions", self.selector)["items"]

    def set_max_unavailable(self, value: object) -> None:
        patch = {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": value}}}}
        arguments = ["--type=merge", "--field-manager=readygate-playbooks", "--patch=" + json.dumps(patch)]
        self._kubectl.run("patch", "daemonset", self.name, *arguments)

    def undo(self) -> str:
        """Applies the earlier revision again and returns its image; "" if there is none."""
        self.daemon_set = self._kubectl.get("daemonset", self.name)
        pods = [pod_of(pod, {}) for pod in self._kubectl.get("pods", self.selector)["items"]]
        revision = previous(self.revisions(), pods)
        if not revision:
            return ""
        wanted = restored(self.daemon_set, revision)
        apply = ["apply", "--server-side", "--force-conflicts", "--field-manager=readygate-playbooks", "--filename=-"]
        self._kubectl.run(*apply, stdin=json.dumps(wanted))
        return wanted["spec"]["template"]["spec"]["containers"][0]["image"]

    def clear(self) -> None:
        """Deletes its ConfigMaps that no revision of its history names.

        `kubectl rollout undo` may go back to any revision, whose pods would never start without their ConfigMap. A
        ConfigMap with another name belongs to an operator.
        """
        history = json.dumps([each["data"] for each in self.revisions()])
        found = [each["metadata"]["name"] for each in self._kubectl.get("configmaps", self.selector)["items"]]
        own = re.compile(re.escape(self.name) + "(-[0-9a-f]{10})?")
        gone = [name for name in found if own.fullmatch(name) and f'"{name}"' not in history]
        if history != "[]" and gone:
            self._kubectl.run("delete", "configmap", "--ignore-not-found", *gone)

    def _dead_nodes(self, monotonic: float) -> frozenset:
        if not self._dead[0] or monotonic - self._dead[0] > 8:
            path = '{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
            rows = [row.split() for row in self._kubectl.run("get", "nodes", "--output=jsonpath=" + path).splitlines()]
            self._dead = (monotonic, frozenset(row[0] for row in rows if row and row[1:] != ["True"]))
        return self._dead[1]

    def _refused(self, wall: float) -> str:
        """Why it cannot create pods, from its last Event; "" if there is no recent one."""
        about = "involvedObject.kind=DaemonSet,involvedObject.name=" + self.name
        message = ""
        for event in self._kubectl.get("events", f"--field-selector=reason=FailedCreate,{about}")["items"]:
            last = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
            if wall - _seconds(last) < EVENT_AGE_S:
                message = short(event.get("message", ""))
        return message


def _seconds(text: str) -> float:
    """RFC 3339 in UTC to seconds since the epoch."""
    return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))


def renew(kubectl: Kubectl, wall: float) -> None:
    """Renews the Lease of the run that this roll-out is part of, if there is one."""
    patch = json.dumps({"spec": {"renewTime": stamp(wall)}})
    try:
        kubectl.run("patch", "lease", NAME, "--type=merge", "--patch=" + patch)
    except OSError:  # no Lease, or no API server: the roll-out reports it itself
        return


def watch(watched: Watched, parameters: dict) -> dict:
    """Watches until the text changes or the time of this call is over."""
    memory, ends = parameters["memory"] or {}, time.monotonic() + parameters["seconds"]
    while True:
        try:
            seen = watched.look(time.monotonic(), time.time())
            memory.pop("silent", None)
        except (OSError, ValueError, KeyError) as e:
            silent_s = time.monotonic() - memory.setdefault("silent", time.monotonic())
            verdict = Verdict("failed" if silent_s > STALLED_S else "waits", f"kubectl does not work: {e}")
        else:
            # If the state before is unknown, a node that its agent has closed counts as closed before.
            memory.setdefault("already", sorted(pod.node for pod in seen.pods if pod.kind == "Closed"))
            seen = seen._replace(batch=memory.setdefault("batch", seen.batch))
            most_s = limit_s(parameters["timeout_seconds"], seen.desired, seen.batch, seen.min_ready_s)
            verdict = judge(seen, memory, parameters["min_available_percent"], most_s, time.monotonic())
            _steer(watched, memory, verdict)
            if verdict.state == "done":
                with contextlib.suppress(OSError):  # the nodes have the version; the next roll-out deletes the rest
                    watched.clear()
        if verdict.state != "waits" or verdict.text != parameters["shown"] or time.monotonic() > ends:
            return {"verdict": verdict.state, "text": verdict.text, "memory": memory}
        time.sleep(max(2.0, len(seen.pods) / 250.0) if "silent" not in memory else 5.0)


def _steer(watched: Watched, memory: dict, verdict: Verdict) -> None:
    """Sets maxUnavailable so that nodes that were not Ready before do not count in the batch; resets it at the end."""
    wanted = memory["batch"] if verdict.max_unavailable is None else verdict.max_unavailable
    current = memory.get("set", memory["batch"])
    desired = watched.daemon_set.get("status", {}).get("desiredNumberScheduled", 0)
    if wanted != current and (verdict.max_unavailable is None or wanted != nodes_of(current, desired)):
        watched.set_max_unavailable(wanted)
        memory["set"] = wanted


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"choices": ["before", "watch", "undo"], "required": True},
            "kubeconfig": {"type": "path", "required": True},
            "namespace": {"required": True},
            "daemonset": {"required": True},
            "memory": {"type": "dict", "default": {}},
            "shown": {"default": ""},
            "seconds": {"type": "float", "default": 20.0},
            "min_available_percent": {"type": "int", "default": 100},
            "timeout_seconds": {"type": "int", "default": 0},
        },
    )
    watched = Watched(Kubectl(module.params["kubeconfig"], module.params["namespace"]), module.params["daemonset"])
    try:
        if module.params["state"] == "before":
            try:
                seen = watched.look(time.monotonic(), time.time())
            except OSError as e:
                if "NotFound" not in str(e):
                    raise
                module.exit_json(changed=False, daemonset=watched.name, already=[])
            already = sorted({pod.node for pod in seen.pods if not pod.ready})
            module.exit_json(changed=False, daemonset=watched.name, already=already)
        if module.params["state"] == "undo":
            module.exit_json(changed=True, image=watched.undo())
        renew(Kubectl(module.params["kubeconfig"], NAMESPACE), time.time())  # once a call: every 20 s
        module.exit_json(changed=False, **watch(watched, module.params))
    except OSError as e:
        module.fail_json(msg=f"kubectl: {e}")


if __name__ == "__main__":
    main()
