#!/usr/bin/python
"""Watches the roll-out of a DaemonSet on a control plane host, by kubectl, and takes it back.

One call looks until there is something new to say, or `seconds` are over; the action of the same name calls again and
shows what was said.
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

EVENT_AGE_S = 30  # an older refusal may be of the roll-out before


class Watched:
    """One DaemonSet, its pods and what is said of them."""

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
        """Back to the revision before; its image, "" where there is none."""
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
        """Deletes its ConfigMaps that no revision of its history names: `kubectl rollout undo` may go back to any of
        these, and the pods of one whose ConfigMap is gone never start. What is called otherwise is somebody's own."""
        kept = json.dumps([each["data"] for each in self.revisions()])
        found = [each["metadata"]["name"] for each in self._kubectl.get("configmaps", self.selector)["items"]]
        ours = re.compile(re.escape(self.name) + "(-[0-9a-f]{10})?")
        gone = [name for name in found if ours.fullmatch(name) and f'"{name}"' not in kept]
        if kept != "[]" and gone:
            self._kubectl.run("delete", "configmap", "--ignore-not-found", *gone)

    def _dead_nodes(self, monotonic: float) -> frozenset:
        if not self._dead[0] or monotonic - self._dead[0] > 8:
            path = '{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
            rows = [row.split() for row in self._kubectl.run("get", "nodes", "--output=jsonpath=" + path).splitlines()]
            self._dead = (monotonic, frozenset(row[0] for row in rows if row and row[1:] != ["True"]))
        return self._dead[1]

    def _refused(self, wall: float) -> str:
        """Why it may make no pods, by the last event of it; "" if there is none of late."""
        about = "involvedObject.kind=DaemonSet,involvedObject.name=" + self.name
        said = ""
        for event in self._kubectl.get("events", f"--field-selector=reason=FailedCreate,{about}")["items"]:
            last = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
            if wall - _seconds(last) < EVENT_AGE_S:
                said = short(event.get("message", ""))
        return said


def _seconds(text: str) -> float:
    """RFC 3339 in UTC to seconds since the epoch."""
    return float(calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))


def renew(kubectl: Kubectl, wall: float) -> None:
    """The Lease of the run this roll-out is part of, which must not look dead in the meantime. Without one: nothing."""
    patch = json.dumps({"spec": {"renewTime": stamp(wall)}})
    try:
        kubectl.run("patch", "lease", NAME, "--type=merge", "--patch=" + patch)
    except OSError:  # no Lease, or no API server: the roll-out says so itself
        return


def watch(watched: Watched, parameters: dict) -> dict:
    """Looks until there is something new to say, or the time of this call is over."""
    memory, ends = parameters["memory"] or {}, time.monotonic() + parameters["seconds"]
    while True:
        try:
            seen = watched.look(time.monotonic(), time.time())
            memory.pop("silent", None)
        except (OSError, ValueError, KeyError) as e:
            silent_s = time.monotonic() - memory.setdefault("silent", time.monotonic())
            verdict = Verdict("failed" if silent_s > STALLED_S else "waits", f"kubectl does not work: {e}")
        else:
            # Without a word on what was before: a node that its agent has closed is no news.
            memory.setdefault("already", sorted(pod.node for pod in seen.pods if pod.kind == "Closed"))
            seen = seen._replace(batch=memory.setdefault("batch", seen.batch))
            most_s = limit_s(parameters["timeout_seconds"], seen.desired, seen.batch, seen.min_ready_s)
            verdict = judge(seen, memory, parameters["min_available_percent"], most_s, time.monotonic())
            _steer(watched, memory, verdict)
            if verdict.state == "done":
                with contextlib.suppress(OSError):  # nodes have it; what is left the next roll-out deletes
                    watched.clear()
        if verdict.state != "waits" or verdict.text != parameters["said"] or time.monotonic() > ends:
            return {"verdict": verdict.state, "text": verdict.text, "memory": memory}
        time.sleep(max(2.0, len(seen.pods) / 250.0) if "silent" not in memory else 5.0)


def _steer(watched: Watched, memory: dict, verdict: Verdict) -> None:
    """Nodes that were not well before take nothing of the batch; in the end the DaemonSet is as it was applied."""
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
            "said": {"default": ""},
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
