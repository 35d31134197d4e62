"""Two-way strategic merge patch of a pod status. Pure.

Mirrors CreateTwoWayMergePatch (k8s.io/apimachinery/pkg/util/strategicpatch) for the lists of PodStatus that merge by
key, and preparePatchBytesForPodStatus (pkg/util/pod/pod.go): the texts are upstream's, byte for byte.
"""

import json
from collections.abc import Mapping
from typing import Any

# core/v1 PodStatus: lists with patchStrategy merge and their keys. Every other list is replaced as a whole. Keys are
# spelled in `wire`; these few, the directives and the envelope below are the algorithm itself, which works on JSON.
MERGE_KEYS: Mapping[str, str] = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip"}

Json = dict[str, Any]


def status_patch(uid: str, old: Json, new: Json, *, sends_empty: bool = False) -> bytes | None:
    """The patch of the sub-resource `status` that turns `old` into `new`; None when there is nothing to send.

    Both are the JSON of a whole PodStatus. The patch carries the UID, so that a pod created anew under the same name
    refuses it. `sends_empty`: a patch without changes is sent, too, as of old.
    """
    changes = _diff(old, new)
    if not changes:
        return encode({"metadata": {"uid": uid}}) if sends_empty else None
    return encode({"metadata": {"uid": uid}, "status": changes})


def encode(patch: Json) -> bytes:
    """Compact JSON with sorted keys, as Go writes maps."""
    return json.dumps(patch, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _diff(old: Json, new: Json) -> Json:
    patch: Json = {}
    for key, value in new.items():
        if key not in old or type(old[key]) is not type(value):
            patch[key] = value
        elif isinstance(value, dict):
            changes = _diff(old[key], value)
            if changes:
                patch[key] = changes
        elif isinstance(value, list) and key in MERGE_KEYS:
            _diff_list(key, old[key], value, patch)
        elif old[key] != value:
            patch[key] = value
    patch.update(dict.fromkeys(old.keys() - new.keys()))
    return patch


def _diff_list(key: str, old: list[Json], new: list[Json], patch: Json) -> None:
    """By merge key: changed and new items in the order of `new`, then a delete directive for each that is gone."""
    merge_key = MERGE_KEYS[key]
    if not old:
        if new:
            patch[key] = new
        return
    before = {item[merge_key]: item for item in old}
    items: list[Json] = []
    for item in new:
        value = item[merge_key]
        if value not in before:
            items.append(item)
        elif changes := _diff(before[value], item):
            items.append({**changes, merge_key: value})
    wanted = [item[merge_key] for item in new]
    items += [{"$patch": "delete", merge_key: value} for value in sorted(before.keys() - set(wanted))]
    if items:
        patch[key] = items
    if items or [item[merge_key] for item in old] != wanted:
        patch[f"$setElementOrder/{key}"] = [{merge_key: value} for value in wanted]
