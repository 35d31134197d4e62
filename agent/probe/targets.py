"""Where a probe goes and what it says: ports, URLs, headers, commands. Pure. Mirrors pkg/probe, http/request.go."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from agent.probe.go_quoting import quoted
from agent.probe.url import Url, UrlError, parse_url
from agent.wire.model import Container, EnvVar, HttpGetAction
from component.text import expand

VERSION = "1.36"
USER_AGENT = f"kube-probe/{VERSION}"
LONGEST_DIGITS = 20  # of 64 bits
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")


class TargetError(Exception):
    """The spec names no place a probe could go to: the probe is errored, not failed."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`headers` by canonical name. `host` is the Host line; empty: that of the URL. Texts hold one character a byte.
    `takes_gzip`: whoever asks takes an answer that is compressed, as Go's client does by itself."""

    url: Url
    headers: Mapping[str, tuple[str, ...]]
    host: str = ""
    takes_gzip: bool = False

    def __hash__(self) -> int:
        return hash((self.url.host, self.url.path, self.host))


def resolve_port(port: int | str, container: Container) -> int:
    """A number as it is; a name from the container's own ports, else as a decimal number. Raises TargetError."""
    number: object = port
    if isinstance(port, str):
        named = next((p.container_port for p in container.ports if p.name == port), None)
        number = _atoi(port) if named is None else named
    if isinstance(number, bool) or not isinstance(number, int):
        raise TargetError(f"intOrString had no kind: {port!r}")
    if not 0 < number < 65536:
        raise TargetError(f"invalid port number: {number}")
    return number


def _atoi(text: str) -> int:
    """As Go's, which reads digit by digit: too many are told before what stands behind them. Raises TargetError."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    rest = unsigned.lstrip("0123456789")
    bare = unsigned.removesuffix(rest).lstrip("0")
    too_many = len(bare) > LONGEST_DIGITS or int(bare or "0") >= 2**64
    if not too_many and (rest or not unsigned):
        raise TargetError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    number = 0 if too_many else int(bare or "0") * (-1 if text.startswith("-") else 1)
    if too_many or not -(2**63) <= number < 2**63:
        raise TargetError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return number


def join_host_port(host: str, port: int) -> str:
    """net.JoinHostPort: an address with a colon goes into brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_url(scheme: str, host: str, port: int, path: str) -> Url:
    """The URL of a probe. `path` may hold a query; one that does not parse is passed on as it is, escaped. Raises
    TargetError for a host that there cannot be."""
    path = bytes_text(path)
    try:
        url = parse_url(path)
    except UrlError:
        url = Url(path=path)
    text = str(replace(url, scheme=scheme, host=join_host_port(bytes_text(host), port)))
    try:
        return parse_url(text)
    except UrlError as e:
        raise TargetError(str(e)) from e


def bytes_text(text: str) -> str:
    """One character a byte."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


def http_request(action: HttpGetAction, container: Container, pod_ip: str, *, purpose: str = "probe") -> HttpRequest:
    """What is sent for an httpGet probe, or for another `purpose`. Raises TargetError for an unusable port or host."""
    port = resolve_port(action.port, container)
    url = format_url(action.scheme.lower() or "http", action.host or pod_ip, port, action.path)
    headers = header_map(action.headers)
    if "User-Agent" not in headers:
        headers["User-Agent"] = (f"kube-{purpose}/{VERSION}",)
    if "Accept" not in headers:
        headers["Accept"] = ("*/*",)
    elif not headers["Accept"][0]:
        del headers["Accept"]
    return HttpRequest(url, headers, headers.get("Host", ("",))[0], takes_gzip=purpose == "lifecycle")


def header_map(headers: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Canonical name -> values in order (v1HeaderToHTTPHeader)."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in headers:
        key = canonical(bytes_text(name))
        found[key] = (*found.get(key, ()), bytes_text(value))
    return found


def canonical(name: str) -> str:
    """FOO-bAR -> Foo-Bar; a name that is no token stays as it is."""
    if not _TOKEN.fullmatch(name):
        return name
    return "-".join(part[:1].upper() + part[1:].lower() for part in name.split("-"))


def has_token(values: list[str], token: str) -> bool:
    """Is it one of the words between the commas?"""
    return any(word.strip(" \t").lower() == token for value in values for word in value.split(","))


def expand_command(command: Iterable[str], env: Iterable[EnvVar]) -> tuple[str, ...]:
    """Puts the container's literal environment into $(NAME) references; unknown names stay, $$ is one dollar."""
    values = {variable.name: variable.value for variable in env}
    return tuple(expand(word, values) for word in command)


def is_address(host: str) -> bool:
    """Is it an IP address, so that no name has to be resolved? One of IPv6 may name its zone."""
    bare, percent, zone = host.partition("%")
    try:
        found = ipaddress.ip_address(bare)
    except ValueError:
        return False
    return not percent or (found.version == 6 and zone != "")
