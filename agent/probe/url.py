"""URLs as Go's net/url takes them apart and puts them together. Pure. Texts hold one character a byte (latin-1).

What Go refuses is refused, and what it escapes is escaped: else a probe asks for another path than the kubelet's.
"""

import ipaddress
import re
import string
from dataclasses import dataclass, replace

from agent.probe.go_quoting import quoted_bytes

_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-_.~")
# What is not escaped in each part of a URL, beside the unreserved.
_PLAIN = {
    "path": _UNRESERVED | frozenset("$&+,/:;=@"),
    "host": _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\""),
    "user": _UNRESERVED | frozenset("$&+,;="),
    "fragment": _UNRESERVED | frozenset("$&+,/:;=?@!()*"),
}
_VALID_ENCODED = frozenset("!$&'()*+,;=:@[]%")
_USERINFO = re.compile(r"[-A-Za-z0-9._:~!$&'()*+,;=%@]*")
_SCHEME = re.compile(r"([A-Za-z][-+.A-Za-z0-9]*):(.*)", re.DOTALL)
_PORT = re.compile(r"(:[0-9]*)?")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")


class UrlError(Exception):
    """Go refuses it; the text says why."""


@dataclass(frozen=True, slots=True)
class Url:
    """`user`: name, or name and password. `raw_path`, `raw_fragment`: as given where Go would write it otherwise."""

    scheme: str = ""
    opaque: str = ""
    user: tuple[str, ...] | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    omit_host: bool = False
    force_query: bool = False
    query: str = ""
    fragment: str = ""
    raw_fragment: str = ""

    @property
    def hostname(self) -> str:
        return _split_host(self.host)[0]

    @property
    def port(self) -> str:
        """Digits, or empty."""
        return _split_host(self.host)[1]

    @property
    def escaped_path(self) -> str:
        if self.raw_path and _valid_encoded(self.raw_path, "path") and _unescape(self.raw_path, "path") == self.path:
            return self.raw_path
        return "*" if self.path == "*" else _escape(self.path, "path")

    @property
    def request_uri(self) -> str:
        """What the request line says."""
        uri = self.opaque or self.escaped_path or "/"
        if self.opaque.startswith("//"):
            uri = f"{self.scheme}:{uri}"
        return f"{uri}?{self.query}" if self.force_query or self.query else uri

    def with_path(self, escaped: str) -> "Url":
        """Raises UrlError for a broken escape."""
        path = _unescape(escaped, "path")
        return replace(self, path=path, raw_path="" if _escape(path, "path") == escaped else escaped)

    def without_password(self) -> str:
        """As texts show it (stripPassword of net/http)."""
        if self.user is None or len(self.user) == 1:
            return str(self)
        return str(self).replace(self.userinfo(), f"{self.user[0]}:***@", 1)

    def userinfo(self) -> str:
        """With the @; empty without a user."""
        return "" if self.user is None else ":".join(_escape(part, "user") for part in self.user) + "@"

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            text += self._hierarchy()
            path = self.escaped_path
            if path and not path.startswith("/") and self.host:
                text += "/"
            if not text and ":" in path.partition("/")[0]:
                text += "./"
            text += path
        if self.force_query or self.query:
            text += f"?{self.query}"
        return f"{text}#{self._escaped_fragment()}" if self.fragment else text

    def _hierarchy(self) -> str:
        if not (self.scheme or self.host or self.user is not None):
            return ""
        if self.omit_host and not self.host and self.user is None:
            return ""
        slashes = "//" if self.host or self.path or self.user is not None else ""
        return slashes + self.userinfo() + _escape(self.host, "host")

    def _escaped_fragment(self) -> str:
        raw = self.raw_fragment
        if raw and _valid_encoded(raw, "fragment") and _unescape(raw, "fragment") == self.fragment:
            return raw
        return _escape(self.fragment, "fragment")

    def resolve(self, text: str) -> "Url":
        """A reference, seen from here (RFC 3986, 5.2). Raises UrlError."""
        ref = parse_url(text)
        url = ref if ref.scheme else replace(ref, scheme=self.scheme)
        if ref.scheme or ref.host or ref.user is not None:
            return url.with_path(_resolve_path(ref.escaped_path, ""))
        if ref.opaque:
            return replace(url, user=None, host="", path="")
        if not ref.path and not ref.force_query and not ref.query:
            url = replace(url, query=self.query)
            if not ref.fragment:
                url = replace(url, fragment=self.fragment, raw_fragment=self.raw_fragment)
        if not ref.path and self.opaque:
            return replace(url, opaque=self.opaque, user=None, host="", path="")
        url = replace(url, host=self.host, user=self.user)
        return url.with_path(_resolve_path(self.escaped_path, ref.escaped_path))


def parse_url(text: str) -> Url:
    """url.Parse. Raises UrlError."""
    rest, _, fragment = text.partition("#")
    refused = rest
    try:
        url = _parse(rest)
        refused = text
        plain = _unescape(fragment, "fragment")
    except UrlError as e:
        raise UrlError(f"parse {quoted_bytes(refused)}: {e}") from None
    if not fragment:
        return url
    return replace(url, fragment=plain, raw_fragment="" if _escape(plain, "fragment") == fragment else fragment)


def _parse(text: str) -> Url:
    if any(c < " " or c == "\x7f" for c in text):
        raise UrlError("net/url: invalid control character in URL")
    if text == "*":
        return Url(path="*")
    scheme, rest = _scheme(text)
    force_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    url = Url(scheme=scheme, force_query=force_query, query=query)
    if not rest.startswith("/"):
        if scheme:
            return replace(url, opaque=rest)
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        user, host = _authority(scheme, authority)
        return replace(url, user=user, host=host).with_path(slash + path)
    return replace(url, omit_host=bool(scheme) and rest.startswith("/")).with_path(rest)


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.fullmatch(text)
    return (match[1].lower(), match[2]) if match else ("", text)


def _authority(scheme: str, authority: str) -> tuple[tuple[str, ...] | None, str]:
    userinfo, at, host = authority.rpartition("@")
    host = _parse_host(scheme, host)
    if not at:
        return None, host
    if not _USERINFO.fullmatch(userinfo):
        raise UrlError("net/url: invalid userinfo")
    return tuple(_unescape(part, "user") for part in userinfo.split(":", 1)), host


def _parse_host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        return _parse_literal(host)
    if ":" in host:
        first = host.index(":") if scheme in ("http", "https") else host.rindex(":")
        _check_port(host[first:])
    return _unescape(host, "host")


def _parse_literal(host: str) -> str:
    end = host.rfind("]")
    if end < 0:
        raise UrlError("missing ']' in host")
    _check_port(host[end + 1 :])
    name = host[1:end]
    zone = name.find("%25")
    name = _unescape(name, "host") if zone < 0 else _unescape(name[:zone], "host") + _unescape(name[zone:], "zone")
    address, percent, scope = name.partition("%")
    try:
        ipaddress.IPv6Address(address)
    except ValueError as e:
        raise UrlError(f"invalid host: {e}") from e
    if percent and not scope:
        raise UrlError("invalid host: zone must be a non-empty string")
    return f"[{name}]{host[end + 1 :]}"


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise UrlError(f"invalid port {quoted_bytes(text)} after host")


def _split_host(host: str) -> tuple[str, str]:
    colon = host.rfind(":")
    name, port = host, ""
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        name, port = host[:colon], host[colon + 1 :]
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name, port


def _escape(text: str, part: str) -> str:
    plain = _PLAIN[part]
    if plain.issuperset(text):
        return text
    return "".join(c if c in plain else f"%{ord(c):02X}" for c in text)


def _unescape(text: str, part: str) -> str:
    for index, c in enumerate(text):
        if c == "%":
            match = _ESCAPE.match(text, index)
            if match is None:
                raise UrlError(f"invalid URL escape {quoted_bytes(text[index : index + 3])}")
            _check_escape(match[0], part)
        elif part in ("host", "zone") and c < "\x80" and c not in _PLAIN["host"]:
            # What follows the % of an escape is hexadecimal, so plain.
            raise UrlError(f"invalid character {quoted_bytes(c)} in host name")
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _check_escape(escape: str, part: str) -> None:
    value = chr(int(escape[1:], 16))
    if part == "host" and value < "\x80" and escape != "%25":
        raise UrlError(f'invalid URL escape "{escape}"')
    if part == "zone" and escape != "%25" and value != " " and value not in _PLAIN["host"]:
        raise UrlError(f'invalid URL escape "{escape}"')


def _valid_encoded(text: str, part: str) -> bool:
    return all(c in _VALID_ENCODED or c in _PLAIN[part] for c in text)


def _resolve_path(base: str, ref: str) -> str:
    """Without the segments . and .., as Go writes it."""
    full = base if not ref else ref if ref.startswith("/") else base[: base.rfind("/") + 1] + ref
    if not full:
        return ""
    first, remaining, found = True, full, True
    text = "/"
    while found:
        element, slash, remaining = remaining.partition("/")
        found = bool(slash)
        if element == ".":
            first = False
            continue
        if element == "..":
            text = "/" + text[1:].rpartition("/")[0]
            first = text == "/"
        else:
            text += element if first else f"/{element}"
            first = False
    if element in (".", ".."):
        text += "/"
    return text[1:] if text[1:].startswith("/") else text
