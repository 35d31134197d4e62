"""Names in other letters as name servers know them: what Go makes of them (idna.Lookup, by UTS 46), as far as Python's
own tables go: those are of Unicode 3.2, where newer letters count as unknown and stay. Pure.
"""

import re
import unicodedata
from encodings.idna import nameprep

_KEPT = re.compile("([\u00df\u03c2])")  # of old ss and sigma
_JOINERS = re.compile("[\u200c\u200d]")
_LETTERS = re.compile("[-a-z0-9]*")
_PREFIX = "xn--"
_WITH_PORT = re.compile(r"\[([^\[\]]*)\]:([^:\[\]]*)|([^:\[\]]*):([^:\[\]]*)")  # SplitHostPort of net/ipsock.go
_PART = r"\w(?:[-\w]{0,61}\w)?"
_DOMAIN = re.compile(rf"(?!.{{255}})(?!.{{254}}(?<!\.)\Z)(?=.*[-_a-zA-Z])(?:{_PART}\.)*{_PART}\.?", re.ASCII)


def to_ascii(name: str) -> str:
    """A name that has none stays as it is. Raises ValueError for what is no name."""
    if name.isascii():
        return name
    if _JOINERS.search(name):
        raise ValueError("a joiner out of place")
    mapped = "".join(part if _KEPT.fullmatch(part) else nameprep(part) for part in _KEPT.split(name))
    text = unicodedata.normalize("NFC", mapped.lower()).translate({ord(dot): "." for dot in "\u3002\uff0e\uff61"})
    return ".".join(map(_label, text.split(".")))


def punycode(name: str) -> str:
    """As a Host line has it, which Go neither maps nor looks at (idna.Punycode). Raises ValueError."""
    return name if name.isascii() else ".".join(map(_encoded, name.split(".")))


def punycode_with_port(host: str) -> str:
    """PunycodeHostPort of x/net/http/httpguts. Raises ValueError."""
    match = None if host.isascii() else _WITH_PORT.fullmatch(host)
    if match is None:
        return punycode(host)
    name, port = punycode(match[1] or match[3] or ""), match[2] or match[4]
    if not port:
        return name
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def is_domain_name(name: str) -> bool:
    """No name server is asked for any other (isDomainName of net/dnsclient.go)."""
    return name == "." or _DOMAIN.fullmatch(name) is not None


def _decoded(label: str) -> str:
    """Raises ValueError."""
    if not label.startswith(_PREFIX):
        return label
    text = label[len(_PREFIX) :].encode("ascii").decode("punycode")
    if text.isascii() and text:
        raise ValueError("a label in disguise")
    return text


def _encoded(label: str) -> str:
    text = _decoded(label)
    return text if text.isascii() else _PREFIX + text.encode("punycode").decode()


def _label(label: str) -> str:
    label = _decoded(label)
    data = label.encode()
    if (len(data) > 4 and data[2:4] == b"--") or label.startswith("-") or label.endswith("-"):
        raise ValueError("a hyphen out of place")
    if label and unicodedata.category(label[0]).startswith("M"):
        raise ValueError("a mark without a letter")
    if not _LETTERS.fullmatch("".join(filter(str.isascii, label))):
        raise ValueError("a character that no name has")
    return _encoded(label)
