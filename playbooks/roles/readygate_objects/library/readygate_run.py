#!/usr/bin/python
"""Begins or ends a run of the playbooks. If another run has not ended, this one fails before it changes anything."""

import json
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.readygate_objects.kubectl import Kubectl
from ansible.module_utils.readygate_objects.lock import (
    FREE,
    HELD,
    NAME,
    NAMESPACE,
    OWN,
    SILENT_S,
    explained,
    state_of,
    taken,
)

TRIES = 3


def begin(kubectl: Kubectl, holder: str, dead: str, seconds: int) -> dict:
    """Takes the lock. Returns {}, or the Lease of another run. dead: a holder whose process has ended."""
    for _ in range(TRIES):
        wall, lease = time.time(), _read(kubectl)
        if state_of(lease, holder, wall, dead) == HELD:
            return lease
        try:
            kubectl.run(
                "replace" if lease else "create", "--filename=-", stdin=json.dumps(taken(lease, holder, wall, seconds))
            )
            return {}
        except OSError as e:  # another run was faster
            if "AlreadyExists" not in str(e) and "Conflict" not in str(e) and "modified" not in str(e):
                raise
    return _read(kubectl)


def end(kubectl: Kubectl, holder: str) -> None:
    if state_of(_read(kubectl), holder, time.time()) in (OWN, FREE):
        kubectl.run("delete", "lease", NAME, "--ignore-not-found")


def _read(kubectl: Kubectl) -> dict:
    text = kubectl.run("get", "lease", NAME, "--ignore-not-found", "--output=json")
    return json.loads(text) if text.strip() else {}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"choices": ["begin", "end"], "required": True},
            "kubeconfig": {"type": "path", "required": True},
            "holder": {"required": True},
            "dead": {"default": ""},
            "take_over": {"type": "bool", "default": False},
            "seconds": {"type": "int", "default": SILENT_S},
        },
    )
    holder = module.params["holder"]
    kubectl = Kubectl(module.params["kubeconfig"], NAMESPACE)
    try:
        if module.params["state"] == "end":
            end(kubectl, holder)
            module.exit_json(changed=False)
        seconds = module.params["seconds"]
        other = begin(kubectl, holder, module.params["dead"], seconds)
        if other and module.params["take_over"]:
            other = begin(kubectl, holder, other["spec"].get("holderIdentity", ""), seconds)
    except OSError as e:
        module.fail_json(msg=f"kubectl with {module.params['kubeconfig']}: {e}")
    if other:
        module.fail_json(msg=explained(other, time.time()), holder=other["spec"].get("holderIdentity", ""))
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
