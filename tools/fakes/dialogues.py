"""What readygate and those it works with ask an API server, as dialogues.

    with Talk(Line(api.url), in_pages.__name__) as talk:
        in_pages(talk)
    assert records()["in_pages"] == talk.record

RECORDS holds what the real API server said; ring 2 holds each dialogue with it again
(`tests/plane/test_fake_is_true.py`, with READYGATE_RENEW_GOLDEN=1 it writes the records anew), and every run holds it
with the fake. What other versions say otherwise is in a file each, by dialogue and number of the answer.
"""

import json
from collections.abc import Callable, Iterable
from itertools import starmap
from pathlib import Path
from typing import Any

from tools.fakes.talk import JSON, MERGE, OPERATIONS, STRATEGIC, Talk, lease
from tools.testbed.shared.binaries import KUBERNETES_VERSION

RECORDS = Path(__file__).with_name("dialogues.json")
DIALOGUES: list[Callable[[Talk], None]] = []


def records(version: str = KUBERNETES_VERSION) -> dict[str, list[dict[str, Any]]]:
    """What the real one of that version said, by dialogue."""
    known = _read(RECORDS)
    for name, others in said_otherwise(version).items():
        known[name] = [others.get(str(number), entry) for number, entry in enumerate(known[name])]
    return known


def said_otherwise(version: str) -> dict[str, dict[str, dict[str, Any]]]:
    """What one of that version said otherwise than KUBERNETES_VERSION: by dialogue, by number of the answer."""
    return {} if version == KUBERNETES_VERSION else _read(_of(version))


def keep(name: str, record: list[dict[str, Any]], version: str = KUBERNETES_VERSION) -> None:
    """Writes what the real one said in a dialogue: one answer or event a line."""
    if version == KUBERNETES_VERSION:
        known = {**_read(RECORDS), name: record}
        _write(RECORDS, {each: _block("[", map(_line, entries), "]") for each, entries in known.items()})
        return
    usual = dict(enumerate(_read(RECORDS)[name]))
    others = {str(number): entry for number, entry in enumerate(record) if usual.get(number) != entry}
    differing = {each: lines for each, lines in {**said_otherwise(version), name: others}.items() if lines}
    _write(_of(version), {each: _block("{", starmap(_pair, lines.items()), "}") for each, lines in differing.items()})


def _of(version: str) -> Path:
    return RECORDS.with_name(f"dialogues-{version}.json")


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True)


def _pair(number: str, entry: dict[str, Any]) -> str:
    return f"{json.dumps(number)}: {_line(entry)}"


def _block(opening: str, lines: Iterable[str], closing: str) -> str:
    return opening + "\n" + ",\n".join(lines) + "\n" + closing


def _write(path: Path, texts: dict[str, str]) -> None:
    """Nothing to say: no file."""
    path.unlink(missing_ok=True)
    if texts:
        lines = (f"{json.dumps(name)}: {text}" for name, text in sorted(texts.items()))
        path.write_text(_block("{", lines, "}") + "\n")


def dialogue(hold: Callable[[Talk], None]) -> Callable[[Talk], None]:
    DIALOGUES.append(hold)
    return hold


def node(name: str) -> dict[str, Any]:
    status = {"conditions": [_condition("Ready", "True")], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "status": status}


def pod(name: str, *, on: str = "", grace_s: int = 30) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "registry.invalid/none:1"}],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": grace_s,
        "schedulerName": "nobody",
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {**spec, **({"nodeName": on} if on else {})},
    }


def _condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", **more}


@dialogue
def one_object(talk: Talk) -> None:
    talk.say("GET", talk.leases)
    talk.say("POST", talk.leases, lease("a", labels={"x": "1"}))
    talk.say("POST", talk.leases, lease("a"))
    talk.say("GET", f"{talk.leases}/a")
    talk.say("GET", talk.leases)
    talk.say("DELETE", f"{talk.leases}/a")
    talk.say("GET", f"{talk.leases}/a")
    talk.say("DELETE", f"{talk.leases}/a")
    talk.say("PUT", f"{talk.leases}/a", lease("a"))
    talk.say("PATCH", f"{talk.leases}/a", {"spec": {"holderIdentity": "b"}}, content_type=MERGE)


@dialogue
def what_is_wrong_with_a_request(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("a"))
    talk.say("POST", talk.leases, lease(""))
    talk.say("POST", f"{talk.leases}/a", lease("a"))
    talk.say("PUT", talk.leases, lease("a"))
    talk.say("PATCH", f"{talk.leases}/a", {"spec": {}}, content_type=JSON)
    talk.say("PATCH", f"{talk.leases}/a", b"{", content_type=MERGE)
    talk.say("POST", talk.leases, b"{")
    talk.say("GET", f"{talk.leases}/a/status")
    talk.say("GET", "/apis/coordination.k8s.io/v1/unknown")
    talk.say("GET", "/nowhere")
    talk.say("PUT", f"{talk.leases}/a", lease("b"))
    talk.say("GET", talk.leases, accept="text/html")
    talk.say("GET", talk.leases, query={"labelSelector": "a in (b"})
    talk.say("GET", talk.leases, query={"limit": "x"})


@dialogue
def strangers(talk: Talk) -> None:
    talk.say("GET", talk.leases, headers={"Authorization": "Bearer nobodys"})
    talk.line.forbid_next()
    refused = talk.say("GET", talk.leases, headers=talk.line.stranger)
    refused["message"] = "who may not do what"  # in each cluster's own names


@dialogue
def in_pages(talk: Talk) -> None:
    for name in "abcde":
        talk.say("POST", talk.leases, lease(name, labels={"odd": str(name in "ace").lower()}))
    first = talk.say("GET", talk.leases, query={"limit": 2})
    token = first["metadata"]["continue"]
    talk.say("POST", talk.leases, lease("bb"))  # a page is of the moment of the first
    second = talk.say("GET", talk.leases, query={"limit": 2, "continue": token})
    talk.say("GET", talk.leases, query={"limit": 2, "continue": token})
    talk.say("GET", talk.leases, query={"limit": 2, "continue": second["metadata"]["continue"]})
    talk.say("GET", talk.leases, query={"limit": 2, "labelSelector": "odd=true"})
    talk.say("GET", talk.leases, query={"limit": 6})
    talk.say("GET", talk.leases, query={"limit": 2, "continue": "!"})


@dialogue
def a_page_that_expired(talk: Talk) -> None:
    for name in "abc":
        talk.say("POST", talk.leases, lease(name))
    token = talk.say("GET", talk.leases, query={"limit": 1})["metadata"]["continue"]
    talk.put("c", "other")
    talk.restart()  # compaction alone is not enough: its cache has pages of a while ago
    again = talk.say("GET", talk.leases, query={"limit": 1, "continue": token})
    token = again["metadata"].get("continue")
    if token:  # it may go on with what is there now
        talk.say("GET", talk.leases, query={"limit": 1, "continue": token})


@dialogue
def selected(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("a", labels={"x": "1", "y": "1"}))
    talk.say("POST", talk.leases, lease("b", labels={"x": "2"}))
    talk.say("POST", talk.leases, lease("c"))
    for labels in ("x=1", "x==1", "x!=1", "x", "!x", "x in (1,2)", "x notin (1)", "x=1,y=1", "x=3"):
        talk.say("GET", talk.leases, query={"labelSelector": labels})
    talk.say("GET", talk.leases, query={"fieldSelector": "metadata.name=b"})
    talk.say("GET", talk.leases, query={"fieldSelector": "metadata.name!=b"})


@dialogue
def a_watch(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("a"))
    with talk.watching(talk.leases, resourceVersion=talk.list_version(talk.leases)) as stream:
        talk.say("POST", talk.leases, lease("b"))
        talk.put("a", "other")
        talk.say("PATCH", f"{talk.leases}/a", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)
        talk.say("PATCH", f"{talk.leases}/a", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)  # no change
        talk.say("DELETE", f"{talk.leases}/b")
        talk.say("DELETE", f"{talk.leases}/a")
        talk.say("POST", talk.leases, lease("a"))
        stream.hear(6)


@dialogue
def a_watch_from_anywhere(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("b"))
    talk.say("POST", talk.leases, lease("a"))
    for version in ({}, {"resourceVersion": "0"}):
        with talk.watching(talk.leases, **version) as stream:
            stream.hear(2)
            talk.put("a", f"other {len(version)}")
            stream.hear(1)


@dialogue
def a_watch_of_what_happened_before(talk: Talk) -> None:
    since = talk.say("POST", talk.leases, lease("a"))["metadata"]["resourceVersion"]
    talk.put("a", "other")
    talk.say("DELETE", f"{talk.leases}/a")
    with talk.watching(talk.leases, resourceVersion=since) as stream:
        stream.hear(2)


@dialogue
def a_watch_through_a_selector(talk: Talk) -> None:
    version = talk.list_version(talk.leases)
    with talk.watching(talk.leases, resourceVersion=version, labelSelector="x=1") as stream:
        talk.say("POST", talk.leases, lease("a"))
        for x in ("1", "1", "2", "1"):
            change = {"metadata": {"labels": {"x": x}, "annotations": {"n": f"{x} {len(talk.record)}"}}}
            talk.say("PATCH", f"{talk.leases}/a", change, content_type=MERGE)
        talk.say("DELETE", f"{talk.leases}/a")
        stream.hear(5)


@dialogue
def a_watch_of_one(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("a"))
    version = talk.list_version(talk.leases)
    with talk.watching(talk.leases, resourceVersion=version, fieldSelector="metadata.name=a") as stream:
        talk.say("POST", talk.leases, lease("b"))
        talk.put("a", "other")
        stream.hear(1)
    talk.say("GET", f"{talk.leases}/a", query={"watch": "1"})  # one that is named is not watched


@dialogue
def a_watch_that_ends(talk: Talk) -> None:
    with talk.watching(talk.leases, resourceVersion=talk.list_version(talk.leases), timeoutSeconds=1) as stream:
        stream.hear_end()


@dialogue
def a_bookmark(talk: Talk) -> None:
    elsewhere = talk.leases.replace(talk.namespace, "default")
    version = talk.list_version(talk.leases)
    # Two seconds before the end of a watch the real one sends one by itself, if there is something new to tell.
    with talk.watching(talk.leases, resourceVersion=version, allowWatchBookmarks="true", timeoutSeconds=4) as stream:
        talk.say("POST", elsewhere, lease(talk.name))
        talk.line.bookmark()
        stream.hear(1)
    talk.say("DELETE", f"{elsewhere}/{talk.name}")


@dialogue
def a_watch_from_too_long_ago(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("a"))
    old = talk.list_version(talk.leases)
    talk.put("a", "other")
    talk.restart()
    with talk.watching(talk.leases, resourceVersion=old) as stream:
        stream.hear(2)
    with talk.watching(talk.leases, resourceVersion="x"):
        pass


@dialogue
def conflicts(talk: Talk) -> None:
    old = talk.say("POST", talk.leases, lease("a"))["metadata"]
    talk.put("a", "other")
    talk.put("a", "third", resourceVersion=old["resourceVersion"])
    change = {"metadata": {"resourceVersion": old["resourceVersion"]}, "spec": {"holderIdentity": "fourth"}}
    talk.say("PATCH", f"{talk.leases}/a", change, content_type=MERGE)
    talk.put("a", "fifth", uid="another")
    talk.say("PUT", f"{talk.leases}/a", lease("a", "whatever it was"))
    talk.say("PATCH", f"{talk.leases}/a", {"metadata": {"uid": "another"}}, content_type=MERGE)
    for condition in ({"uid": "another"}, {"resourceVersion": old["resourceVersion"]}, {"uid": old["uid"]}):
        talk.say("DELETE", f"{talk.leases}/a", {"preconditions": condition})


@dialogue
def patches(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("a", labels={"x": "1", "y": "1"}))
    where = f"{talk.leases}/a"
    talk.say("PATCH", where, {"metadata": {"labels": {"x": None, "z": "1"}}}, content_type=MERGE)
    talk.say("PATCH", where, {"metadata": {"annotations": {"n": "1"}}}, content_type=STRATEGIC)
    talk.say("PATCH", where, {"metadata": {"annotations": {"n": None}}}, content_type=STRATEGIC)
    talk.say("PATCH", where, [{"op": "replace", "path": "/spec/holderIdentity", "value": "b"}], content_type=OPERATIONS)
    talk.say("PATCH", where, [{"op": "add", "path": "/metadata/labels/a~1b", "value": "1"}], content_type=OPERATIONS)
    talk.say("PATCH", where, [{"op": "test", "path": "/spec/holderIdentity", "value": "x"}], content_type=OPERATIONS)
    talk.say("PATCH", where, [{"op": "remove", "path": "/spec/nothing"}], content_type=OPERATIONS)


@dialogue
def a_node_and_its_status(talk: Talk) -> None:
    where = f"/api/v1/nodes/{talk.name}"
    talk.say("POST", "/api/v1/nodes", node(talk.name))
    try:
        change: dict[str, Any] = {"metadata": {"annotations": {"n": "1"}}, "status": {"phase": "ignored"}}
        talk.say("PATCH", where, change, content_type=STRATEGIC)
        change = {"status": {"conditions": [_condition("DiskPressure", "False")]}}
        talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
        change = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
        change = {"status": {"conditions": [{"$patch": "delete", "type": "DiskPressure"}]}}
        talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
        change = {"metadata": {"labels": {"x": "1"}}, "spec": {"unschedulable": True}, "status": {}}
        talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
        change = {"status": {"conditions": [_condition("Ready", "True")]}}
        talk.say("PATCH", f"{where}/status", change, content_type=MERGE)
    finally:
        talk.say("DELETE", where)


@dialogue
def a_pod_and_its_status(talk: Talk) -> None:
    where = f"{talk.pods}/a"
    talk.say("POST", talk.pods, pod("a", on="a-node") | {"status": {"phase": "Running"}})
    change: dict[str, Any] = {
        "status": {"phase": "Running", "conditions": [_condition("Ready", "False"), _condition("Other", "True")]}
    }
    talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
    change = {"status": {"conditions": [_condition("Ready", "True", reason="R", message="m")]}}
    talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
    talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
    change = {"metadata": {"uid": "another"}, "status": {"conditions": [_condition("Ready", "False")]}}
    talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
    change = {"metadata": {"labels": {"x": "1"}, "annotations": {"n": "1"}}, "status": {"message": "word"}}
    talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)
    talk.say("PATCH", where, {"status": {"phase": "Failed"}}, content_type=STRATEGIC)
    change = {"status": {"conditions": [{"$patch": "delete", "type": "Other"}]}}
    talk.say("PATCH", f"{where}/status", change, content_type=STRATEGIC)


@dialogue
def a_pod_that_is_bound_and_deleted(talk: Talk) -> None:
    version = talk.list_version(talk.pods)
    with talk.watching(talk.pods, resourceVersion=version) as stream:
        talk.say("POST", talk.pods, pod("a"))
        target = {"apiVersion": "v1", "kind": "Node", "name": "a-node"}
        binding = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "a"}, "target": target}
        talk.say("POST", f"{talk.pods}/a/binding", binding)
        talk.say("POST", f"{talk.pods}/a/binding", binding)
        talk.say("DELETE", f"{talk.pods}/a", {"gracePeriodSeconds": 7})
        talk.say("DELETE", f"{talk.pods}/a")  # not sooner, not later
        talk.say("DELETE", f"{talk.pods}/a", {"gracePeriodSeconds": 0})
        stream.hear(4)
        talk.say("POST", talk.pods, pod("b"))
        talk.say("DELETE", f"{talk.pods}/b")  # on no node: gone at once
        stream.hear(2)


@dialogue
def a_pod_that_finished_is_gone_at_once(talk: Talk) -> None:
    talk.say("POST", talk.pods, pod("a", on="a-node"))
    talk.say("PATCH", f"{talk.pods}/a/status", {"status": {"phase": "Succeeded"}}, content_type=STRATEGIC)
    talk.say("DELETE", f"{talk.pods}/a")
    talk.say("GET", f"{talk.pods}/a")


@dialogue
def metadata_only(talk: Talk) -> None:
    talk.say("POST", talk.leases, lease("a", labels={"x": "1"}))
    only = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    talk.say("GET", talk.leases, accept=only)
    one = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    talk.say("GET", f"{talk.leases}/a", accept=one)
    talk.say("GET", f"{talk.leases}/a", accept=f"{one},{JSON}")
    with talk.watching(talk.leases, accept=one) as stream:
        stream.hear(1)


@dialogue
def a_kubelet_renews_its_lease(talk: Talk) -> None:
    made = talk.say("POST", talk.leases, lease("a-node", "a-node"))
    for second in ("01", "02"):
        made["spec"]["renewTime"] = f"2026-01-01T00:00:{second}.000000Z"
        made = talk.say("PUT", f"{talk.leases}/a-node", made)


@dialogue
def names_made_up(talk: Talk) -> None:
    made = talk.say("POST", talk.leases, {**lease(""), "metadata": {"generateName": "made-"}})
    made["metadata"]["name"] = f"made-{len(made['metadata']['name'])}"  # five letters of chance
