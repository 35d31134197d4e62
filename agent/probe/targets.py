"""Where a probe goes and what it says: ports, URLs, headers, commands. Pure. Mirrors pkg/probe, http/request.go."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from agent.model import Container, EnvVar, HttpGetAction
from component.text import expand

USER_AGENT = "kube-probe/1.36"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_VALID_PATH = re.compile(r"[-A-Za-z0-9_.~$&+,/:;=@!'()*\[\]%]*")  # net/url's validEncoded for a path
_PATH_SAFE = "/$&+,:;=@-_.~"  # what net/url leaves alone when it has to escape a path itself
_HOST_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\^`{|}/?#@]")
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~A-Za-z0-9]+")


class TargetError(Exception):
    """The spec names no place a probe could go to: the probe is errored, not failed."""


@dataclass(frozen=True, slots=True)
class Url:
    """`hostname` without brackets; `target` is what the request line says: path and query."""

    scheme: str
    hostname: str
    port: int
    target: str
    netloc: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.netloc}{self.target}"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`headers` by canonical name, without Host. `host` is the Host line; empty: that of the URL."""

    url: Url
    headers: Mapping[str, tuple[str, ...]]
    host: str = ""


def resolve_port(port: int | str, container: Container) -> int:
    """A number as it is; a name from the container's own ports, else as a decimal number. Raises TargetError."""
    number: object = port
    if isinstance(port, str):
        named = next((p.container_port for p in container.ports if p.name == port), None)
        if named is None and not re.fullmatch(r"[+-]?[0-9]+", port):
            raise TargetError(f'strconv.Atoi: parsing "{port}": invalid syntax')
        number = int(port) if named is None else named
    if isinstance(number, bool) or not isinstance(number, int):
        raise TargetError(f"intOrString had no kind: {port!r}")
    if not 0 < number < 65536:
        raise TargetError(f"invalid port number: {number}")
    return number


def join_host_port(host: str, port: int) -> str:
    """net.JoinHostPort: an address with a colon goes into brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_url(scheme: str, host: str, port: int, path: str) -> Url:
    """The URL of a probe. `path` may hold a query; one that does not parse is passed on as it is, escaped."""
    if _HOST_FORBIDDEN.search(host):
        raise TargetError(f'parse "{scheme}://{host}:{port}": invalid character in host name')
    return Url(scheme, host, port, _request_target(path), join_host_port(host, port))


def http_request(action: HttpGetAction, container: Container, pod_ip: str) -> HttpRequest:
    """What is sent for an httpGet probe. Raises TargetError for a port or host that cannot be used."""
    port = resolve_port(action.port, container)
    url = format_url(action.scheme.lower() or "http", action.host or pod_ip, port, action.path)
    headers = header_map(action.headers)
    if "User-Agent" not in headers:
        headers["User-Agent"] = (USER_AGENT,)
    if "Accept" not in headers:
        headers["Accept"] = ("*/*",)
    elif not headers["Accept"][0]:
        del headers["Accept"]
    host = headers.pop("Host", ("",))[0]
    return HttpRequest(url, headers, host)


def header_map(headers: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Canonical name -> values in order (v1HeaderToHTTPHeader)."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in headers:
        key = canonical_header(name)
        found[key] = (*found.get(key, ()), value)
    return found


def canonical_header(name: str) -> str:
    """FOO-bAR -> Foo-Bar; a name that is no token stays as it is."""
    if not _TOKEN.fullmatch(name):
        return name
    return "-".join(part[:1].upper() + part[1:].lower() for part in name.split("-"))


def expand_command(command: Iterable[str], env: Iterable[EnvVar]) -> tuple[str, ...]:
    """Puts the container's literal environment into $(NAME) references; unknown names stay, $$ is one dollar."""
    values = {variable.name: variable.value for variable in env}
    return tuple(expand(word, values) for word in command)


def is_address(host: str) -> bool:
    """Is it an IP address, so that no name has to be resolved?"""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _request_target(path: str) -> str:
    """The request line's path and query, as net/url parses and prints them."""
    rest, query = path, ""
    if _CONTROL.search(path):
        return _rooted(quote(path, safe=_PATH_SAFE))
    rest = rest.partition("#")[0]
    rest, mark, query = rest.partition("?")
    if rest.startswith("//") and not rest.startswith("///"):
        rest = rest[2:]
        rest = rest[rest.index("/") :] if "/" in rest else ""
    if _BAD_ESCAPE.search(rest) or (not rest.startswith("/") and ":" in rest.partition("/")[0]):
        return _rooted(quote(path, safe=_PATH_SAFE))
    if not _VALID_PATH.fullmatch(rest):
        rest = quote(unquote_to_bytes(rest), safe=_PATH_SAFE)
    return _rooted(rest) + mark + query


def _rooted(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
