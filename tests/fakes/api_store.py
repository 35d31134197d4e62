"""What the fake API server holds: objects with versions, the log of their changes, selectors and patches.

Plain dicts in, plain dicts out; the caller holds the lock. As far as readygate can tell the difference it behaves as
the API server 1.36: one counter of versions, status as a subresource, graceful deletion of pods, uid and
resourceVersion as preconditions, selectors that turn a change into ADDED or DELETED.
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Object = dict
Key = tuple[str, str, str]  # resource, namespace, name

KINDS = {
    "pods": ("v1", "Pod"),
    "nodes": ("v1", "Node"),
    "events": ("v1", "Event"),
    "namespaces": ("v1", "Namespace"),
    "configmaps": ("v1", "ConfigMap"),
    "services": ("v1", "Service"),
    "leases": ("coordination.k8s.io/v1", "Lease"),
    "daemonsets": ("apps/v1", "DaemonSet"),
}
RESOURCES = {kind: resource for resource, (_, kind) in KINDS.items()}
CLUSTER_SCOPED = frozenset({"nodes", "namespaces"})

# Lists that a strategic merge patch merges by a key; all others it replaces.
MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "addresses": "type",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "hostIPs": "ip",
    "tolerations": None,
}


class Refused(Exception):  # noqa: N818 - what is done, not an error
    """code, reason, message of the Status to answer with."""

    def __init__(self, code: int, reason: str, message: str = "") -> None:
        self.code, self.reason, self.message = code, reason, message


@dataclass(frozen=True)
class Change:
    """One entry of the log. before: the object as it was, None for ADDED; after: as the event shows it."""

    version: int
    type: str
    key: Key
    before: Object | None
    after: Object


class ApiStore:
    """on_change is called with each Change, in order."""

    def __init__(self, *, on_change: Callable[[Change], None], first_version: int = 1000) -> None:
        self.version = first_version
        self.objects: dict[Key, Object] = {}
        self.log: list[Change] = []
        self.floor = first_version  # changes up to here are no longer in the log
        self._on_change = on_change
        self._uids = itertools.count(1)

    def select(self, resource: str, namespace: str, matches: Callable[[Object], bool]) -> list[Object]:
        """Sorted by namespace and name, as the API server lists. namespace "" is all of them."""
        found = (
            (key, found) for key, found in self.objects.items() if key[0] == resource and namespace in ("", key[1])
        )
        return [value for _, value in sorted(found, key=lambda pair: pair[0]) if matches(value)]

    def get(self, key: Key) -> Object:
        try:
            return self.objects[key]
        except KeyError:
            raise Refused(404, "NotFound", f'{key[0]} "{key[2]}" not found') from None

    def create(self, resource: str, namespace: str, given: Object) -> Object:
        value = copy.deepcopy(given)
        meta = value.setdefault("metadata", {})
        if "generateName" in meta and not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{next(self._uids):05d}"
        if not meta.get("name"):
            raise Refused(422, "Invalid", "metadata.name: Required value")
        if resource not in CLUSTER_SCOPED:
            meta["namespace"] = namespace or meta.get("namespace") or "default"
        key = (resource, meta.get("namespace", ""), meta["name"])
        if key in self.objects:
            raise Refused(409, "AlreadyExists", f'{resource} "{meta["name"]}" already exists')
        api_version, kind = KINDS[resource]
        meta.setdefault("uid", f"uid-{next(self._uids)}")
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        meta.setdefault("generation", 1)
        return self._write("ADDED", key, {"kind": kind, "apiVersion": api_version, **value})

    def update(self, key: Key, given: Object, *, subresource: str = "", force: bool = False) -> Object:
        """Replace an object or, for subresource "status", its status. force: no preconditions, everything is taken."""
        before = self.get(key)
        value = copy.deepcopy(given)
        meta = value.setdefault("metadata", {})
        old = before["metadata"]
        if not force:
            for name in ("uid", "resourceVersion"):
                if meta.get(name) and meta[name] != old[name]:
                    raise Refused(409, "Conflict", f"precondition failed: {name} {meta[name]} is not {old[name]}")
            if subresource == "status":
                value = {**copy.deepcopy(before), "status": value.get("status", {})}
                value["metadata"] = {**old, "annotations": meta.get("annotations", old.get("annotations"))}
                if value["metadata"]["annotations"] is None:
                    del value["metadata"]["annotations"]
            elif "status" in before or "status" in value:
                value["status"] = copy.deepcopy(before.get("status", {}))
        meta = value["metadata"]
        for name in ("uid", "creationTimestamp", "deletionTimestamp", "generation"):
            if name in old:
                meta.setdefault(name, old[name])
        meta.update({name: old[name] for name in ("name", "namespace") if name in old})
        value = {"kind": before["kind"], "apiVersion": before["apiVersion"], **value}
        if _without_version(value) == _without_version(before):
            return before  # the API server writes nothing, and no event follows
        return self._write("MODIFIED", key, value)

    def delete(self, key: Key, *, grace_s: int | None = None, uid: str | None = None) -> Object:
        """A pod that is bound to a node is first marked, and gone with grace 0; everything else is gone at once."""
        before = self.get(key)
        if uid is not None and uid != before["metadata"]["uid"]:
            raise Refused(409, "Conflict", "Precondition failed: UID in precondition is not that of the object")
        spec = before.get("spec") or {}
        if key[0] == "pods" and spec.get("nodeName"):
            grace = spec.get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
            if grace > 0:
                marked = copy.deepcopy(before)
                marked["metadata"].setdefault("deletionTimestamp", "2026-01-01T00:00:00Z")
                marked["metadata"]["deletionGracePeriodSeconds"] = grace
                return self.update(key, marked, force=True)
        return self._write("DELETED", key, copy.deepcopy(before))

    def compact(self) -> None:
        """Forget the log: whoever asks for a change from before now gets 410."""
        self.version += 1
        self.floor = self.version
        self.log.clear()

    def changes(self, after: int) -> Iterator[Change]:
        return (change for change in self.log if change.version > after)

    def _write(self, kind: str, key: Key, value: Object) -> Object:
        self.version += 1
        before = self.objects.get(key)
        value["metadata"]["resourceVersion"] = str(self.version)
        if kind == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = value
        change = Change(self.version, kind, key, before, value)
        self.log.append(change)
        self._on_change(change)
        return value


def event_for(change: Change, matches: Callable[[Object], bool]) -> tuple[str, Object] | None:
    """Type and object of the event that a watcher with this selector gets for a change; None for none."""
    was = change.before is not None and matches(change.before)
    if change.type == "DELETED":
        return ("DELETED", change.after) if was else None
    if matches(change.after):
        return ("MODIFIED" if was else "ADDED"), change.after
    if not was:
        return None
    assert change.before is not None
    gone = copy.deepcopy(change.before)  # the state that still matched, with the version of the change
    gone["metadata"]["resourceVersion"] = str(change.version)
    return "DELETED", gone


def selector(labels: str, fields: str) -> Callable[[Object], bool]:
    """labels: `a=b,c!=d,e,!f,g in (h,i)`; fields: `metadata.name=x,spec.nodeName!=y`."""
    wanted = [_label_rule(rule) for rule in _split(labels)]
    wanted_fields = [_field_rule(rule) for rule in _split(fields)]

    def matches(value: Object) -> bool:
        have = value["metadata"].get("labels") or {}
        return all(rule(have) for rule in wanted) and all(rule(value) for rule in wanted_fields)

    return matches


def merge(base: Object, change: Object) -> Object:
    """RFC 7386."""
    merged = dict(base)
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            inner = merged.get(name)
            merged[name] = merge(inner if isinstance(inner, dict) else {}, value)
        else:
            merged[name] = value
    return merged


def strategic_merge(base: Object, change: Object) -> Object:
    """Kubernetes' own: as RFC 7386, but the lists of MERGE_KEYS are merged by key; `$patch: delete` and `replace`."""
    if change.get("$patch") == "replace":
        return {name: value for name, value in change.items() if name != "$patch"}
    merged = dict(base)
    for name, value in change.items():
        if name.startswith("$"):
            continue
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            inner = merged.get(name)
            merged[name] = strategic_merge(inner if isinstance(inner, dict) else {}, value)
        elif isinstance(value, list) and MERGE_KEYS.get(name):
            merged[name] = _merge_list(merged.get(name) or [], value, MERGE_KEYS[name] or "")
        else:
            merged[name] = value
    return merged


def json_patch(base: Object, operations: list[Object]) -> Object:
    """RFC 6902: add, replace, remove, test."""
    value = copy.deepcopy(base)
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        place = value
        for part in way:
            place = place[int(part)] if isinstance(place, list) else place[part]
        _apply_operation(place, last, operation)
    return value


def _apply_operation(place, last: str, operation: Object) -> None:
    verb = operation["op"]
    where = (len(place) if last == "-" else int(last)) if isinstance(place, list) else last
    if verb == "add":
        if isinstance(place, list):
            place.insert(where, operation["value"])
        else:
            place[where] = operation["value"]
        return
    try:
        there = place[where]
    except (KeyError, IndexError):
        raise Refused(422, "Invalid", f"{verb} of a path that does not exist: {operation['path']}") from None
    if verb == "test" and there != operation["value"]:
        raise Refused(422, "Invalid", f"testing value {operation['path']} failed")
    if verb == "replace":
        place[where] = operation["value"]
    if verb == "remove":
        del place[where]


def _merge_list(base: list[Object], change: list[Object], key: str) -> list[Object]:
    merged = [dict(item) for item in base]
    for item in change:
        if key not in item:
            continue  # a `$patch: replace` marker or an order directive
        at = next((i for i, old in enumerate(merged) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            if at is not None:
                del merged[at]
        elif at is None:
            merged.append(item)
        else:
            merged[at] = strategic_merge(merged[at], item)
    if any(item.get("$patch") == "replace" and key not in item for item in change):
        return [item for item in change if key in item]
    return merged


def _without_version(value: Object) -> Object:
    meta = {name: v for name, v in value["metadata"].items() if name not in ("resourceVersion", "managedFields")}
    return {**value, "metadata": meta}


def _split(rules: str) -> list[str]:
    """At commas outside parentheses."""
    parts, depth, part = [], 0, ""
    for c in rules:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p.strip() for p in [*parts, part] if p.strip()]


def _label_rule(rule: str) -> Callable[[Object], bool]:
    for word, keep in ((" notin ", False), (" in ", True)):
        if word in rule:
            name, values = rule.split(word, 1)
            among = {v.strip() for v in values.strip().strip("()").split(",")}
            return lambda have: (have.get(name.strip()) in among) is keep
    if "!=" in rule:
        name, value = rule.split("!=", 1)
        return lambda have: have.get(name) != value
    if "=" in rule:
        name, value = rule.replace("==", "=").split("=", 1)
        return lambda have: have.get(name) == value
    if rule.startswith("!"):
        return lambda have: rule[1:] not in have
    return lambda have: rule in have


def _field_rule(rule: str) -> Callable[[Object], bool]:
    keep = "!=" not in rule
    name, value = rule.replace("!=", "=").replace("==", "=").split("=", 1)

    def matches(item: Object) -> bool:
        place = item
        for part in name.split("."):
            place = (place or {}).get(part)
        return (str(place or "") == value) is keep

    return matches
