"""Pure: the three kinds of patches, on plain dicts. Nothing given is changed."""

import copy

from tools.fakes.api_words import Object, Refused

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
_ORDER = "$setElementOrder/"
_NOT_APPLICABLE = Refused(422, "Invalid", "the server rejected our request due to an error in our request", {})


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
    """Kubernetes' own: as RFC 7386, but the lists of MERGE_KEYS are merged by key; `$patch: delete` and `replace`,
    `$setElementOrder`."""
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
    for name, value in change.items():
        if name.startswith(_ORDER):
            _put_in_order(merged, name.removeprefix(_ORDER), value)
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
        raise _NOT_APPLICABLE from None
    if verb == "test" and there != operation["value"]:
        raise _NOT_APPLICABLE
    if verb == "replace":
        place[where] = operation["value"]
    if verb == "remove":
        del place[where]


def _put_in_order(merged: Object, name: str, wanted: list[Object]) -> None:
    """Only where the directive names all items, as those of our programs do."""
    key = MERGE_KEYS.get(name)
    order = [item[key] for item in wanted] if key else []
    if order and sorted(order) == sorted(item.get(key) for item in merged.get(name) or ()):
        merged[name] = sorted(merged[name], key=lambda item: order.index(item[key]))


def _merge_list(base: list[Object], change: list[Object], key: str) -> list[Object]:
    """In the order of upstream's `mergeSortedSlice`: what the patch names comes before what it does not, unless both
    were there in the other order."""
    named = [item for item in change if key in item]  # not a `$patch: replace` marker or an order directive
    if any(item.get("$patch") == "replace" and key not in item for item in change):
        return named
    old = {item[key]: item for item in base if key in item}
    order = list(old)
    gone = {item[key] for item in named if item.get("$patch") == "delete"}
    patched = [strategic_merge(old.get(item[key], {}), item) for item in named if item[key] not in gone]
    patched.sort(key=lambda item: order.index(item[key]) if item[key] in old else -1)
    kept = [item for item in base if item.get(key) not in gone and item.get(key) not in {i[key] for i in patched}]
    merged = []
    while kept and patched:
        name = patched[0][key]
        first = kept if name in old and order.index(kept[0][key]) < order.index(name) else patched
        merged.append(first.pop(0))
    return [*merged, *kept, *patched]
