"""Pure: what a request asks for: its target, its body, the shape of the answer. Raises Refused."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from tools.fakes import api_words
from tools.fakes.api_words import Key, Object


@dataclass(frozen=True)
class Request:
    """at: time.monotonic() of its arrival."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    headers: Mapping[str, str]
    at: float

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in ("1", "true")


@dataclass(frozen=True)
class Target:
    resource: str
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        return self.resource, self.namespace, self.name


def target(path: str) -> Target:
    parts = [unquote(part) for part in path.strip("/").split("/")]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    if not parts or parts[0] not in api_words.KINDS:
        raise api_words.no_such_resource()
    resource, name, subresource = [*parts, "", ""][:3]
    if subresource and resource not in api_words.SUBRESOURCES.get(subresource, ()):
        raise api_words.no_such_resource()
    return Target(resource, namespace, name, subresource)


def decoded(request: Request, resource: str) -> Object:
    if not request.body:
        return {}
    try:
        return json.loads(request.body)
    except ValueError as e:
        kind = api_words.KINDS[resource][1]
        seen = request.body[:64].decode(errors="replace")
        why = f"couldn't get version/kind; json parse error: {as_go_says(e)} ({seen})"
        raise api_words.bad_request(f"the object provided is unrecognized (must be of type {kind}): {why}") from None


def as_go_says(error: ValueError) -> str:
    at_end = isinstance(error, json.JSONDecodeError) and error.pos >= len(error.doc.rstrip())
    return "unexpected end of JSON input" if at_end else str(error)


def whole_number(text: str) -> int:
    if not text.isdecimal():
        raise api_words.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def shape(accept: str) -> Callable[[Object], Object]:
    """How the caller wants objects. There are no Tables here."""
    for kind in accept.split(",") if accept else ["*/*"]:
        words = [word.strip() for word in kind.split(";")]
        if words[0] not in ("application/json", "application/*", "*/*"):
            continue
        wanted = dict(word.partition("=")[::2] for word in words[1:])
        if not wanted.get("as"):
            return lambda value: value
        if wanted["as"] in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return lambda value: value if value.get("kind") == "Status" else api_words.metadata_only(value)
    raise api_words.not_acceptable()
