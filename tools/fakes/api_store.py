"""What the fake API server holds: objects with versions, the log of their changes, selectors.

Plain dicts in, plain dicts out; the caller holds the lock. As far as readygate can tell the difference it behaves as
the API server 1.36: one counter of versions, status as a subresource, graceful deletion of pods, uid and
resourceVersion as preconditions, selectors that turn a change into ADDED or DELETED.
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tools.fakes import api_words
from tools.fakes.api_words import CLUSTER_SCOPED, KINDS, WITH_GENERATION, Key, Object

TIME = "2026-01-01T00:00:00Z"


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
            raise api_words.not_found(key) from None

    def create(self, resource: str, namespace: str, given: Object, *, force: bool = False) -> Object:
        """force: everything is taken, the status of a pod too."""
        value = copy.deepcopy(given)
        meta = value.setdefault("metadata", {})
        if "generateName" in meta and not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{next(self._uids):05d}"
        if resource not in CLUSTER_SCOPED:
            meta["namespace"] = namespace or meta.get("namespace") or "default"
        key = (resource, meta.get("namespace", ""), meta.get("name", ""))
        if not key[2]:
            raise api_words.nameless(key)
        if key in self.objects:
            raise api_words.already_exists(key)
        api_version, kind = KINDS[resource]
        meta.setdefault("uid", f"uid-{next(self._uids)}")
        meta.setdefault("creationTimestamp", TIME)
        if resource in WITH_GENERATION:
            meta.setdefault("generation", 1)
        if not force:
            if resource == "pods":
                value["status"] = {"phase": "Pending"}
            if resource in ("pods", "nodes"):
                value.setdefault("spec", {})
        return self._write("ADDED", key, {"kind": kind, "apiVersion": api_version, **value})

    def update(
        self, key: Key, given: Object, *, subresource: str = "", force: bool = False, patched: bool = False
    ) -> Object:
        """Replace an object or, for subresource "status", its status. force: no preconditions, everything is taken.
        patched: `given` is what a patch made of it."""
        before = self.get(key)
        value = copy.deepcopy(given)
        meta = value.setdefault("metadata", {})
        old = before["metadata"]
        if not force:
            self._check(key, meta, old, patched=patched)
            if subresource == "status":
                value = {**copy.deepcopy(before), "status": value.get("status", {})}
                value["metadata"] = {name: v for name, v in old.items() if name not in ("labels", "annotations")}
                value["metadata"] |= {name: meta[name] for name in ("labels", "annotations") if meta.get(name)}
            elif "status" in before or "status" in value:
                value["status"] = copy.deepcopy(before.get("status", {}))
        meta = value["metadata"]
        for name in ("uid", "creationTimestamp", "deletionTimestamp", "generation"):
            if name in old:
                meta.setdefault(name, old[name])
        meta.update({name: old[name] for name in ("name", "namespace") if name in old})
        for name in ("labels", "annotations"):
            if not force and meta.get(name) == {}:
                del meta[name]
        value = {"kind": before["kind"], "apiVersion": before["apiVersion"], **value}
        if _without_version(value) == _without_version(before):
            return before  # the API server writes nothing, and no event follows
        return self._write("MODIFIED", key, value)

    @staticmethod
    def _check(key: Key, meta: Object, old: Object, *, patched: bool) -> None:
        if meta.get("uid") and meta["uid"] != old["uid"]:
            if patched:
                raise api_words.immutable_uid(key, meta["uid"])
            raise api_words.conflict(key, api_words.another_uid(key, meta["uid"], old["uid"]))
        if not meta.get("resourceVersion"):
            if key[0] in api_words.NO_BLIND_REPLACEMENT:
                raise api_words.unconditional(key)
        elif meta["resourceVersion"] != old["resourceVersion"]:
            raise api_words.conflict(key)

    def delete(
        self, key: Key, *, grace_s: int | None = None, uid: str | None = None, version: str | None = None
    ) -> Object:
        """What is answered. A pod that runs on a node is marked first and gone with grace 0; all else is gone at once.

        uid, version: preconditions.
        """
        before = self.get(key)
        meta = before["metadata"]
        for what, wanted, there in (("UID", uid, meta["uid"]), ("ResourceVersion", version, meta["resourceVersion"])):
            if wanted is not None and wanted != there:
                raise api_words.deletion_conflict(key, what, wanted, there)
        if key[0] != "pods":
            self._write("DELETED", key, copy.deepcopy(before))
            return api_words.success(details=api_words.details(key, uid=meta["uid"]))
        grace_s = _grace_s(before, grace_s)
        marked = copy.deepcopy(before)
        if "deletionTimestamp" not in meta:
            marked["metadata"]["generation"] = meta.get("generation", 1) + 1
        marked["metadata"]["deletionTimestamp"] = TIME
        marked["metadata"]["deletionGracePeriodSeconds"] = grace_s
        marked = self.update(key, marked, force=True)
        return self._write("DELETED", key, copy.deepcopy(marked)) if grace_s == 0 else marked

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


def _grace_s(pod: Object, asked_s: int | None) -> int:
    """Never longer than before; none on no node, or when it has finished."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    grace_s = spec.get("terminationGracePeriodSeconds", 30) if asked_s is None else asked_s
    return min(grace_s, pod["metadata"].get("deletionGracePeriodSeconds", grace_s))


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


def _without_version(value: Object) -> Object:
    meta = {name: v for name, v in value["metadata"].items() if name not in ("resourceVersion", "managedFields")}
    return {**value, "metadata": meta}


def _split(rules: str) -> list[str]:
    """At commas outside parentheses."""
    if rules.count("(") != rules.count(")"):
        raise api_words.bad_request("unable to parse requirement: found '', expected: ',' or ')'")
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
