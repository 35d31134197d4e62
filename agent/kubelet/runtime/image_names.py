"""Names of images. Pure. Mirrors ParseNormalizedNamed of github.com/distribution/reference v0.6.0, as the kubelet's
ParseImageName (pkg/util/parsers) and applyDefaultImageTag (pkg/kubelet/images) of v1.36.3 ask it."""

import re

from agent.probe.go_quoting import quoted

LONGEST_PATH = 255
DEFAULT_DOMAIN, OFFICIAL = "docker.io", "library/"
DEFAULT_TAG = "latest"
_COMPONENT = r"(?:[0-9a-zA-Z]|[0-9a-zA-Z][0-9a-zA-Z-]*[0-9a-zA-Z])"
_DOMAIN = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
# What looks like a domain and is none, as a.b_c, is a part of the path.
_NAME = re.compile(rf"(?:({_DOMAIN})/)?({_PART}(?:/{_PART})*)(?::(\w[\w.-]{{0,127}}))?(?:@({_DIGEST}))?", re.ASCII)
_HEXADECIMAL = re.compile(r"[a-f0-9]{64}")
_ALGORITHM = re.compile(r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-zA-Z=_-]+")
_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}
_INVALID = "invalid reference format"


def with_tag(image: str) -> str:
    """The image, with the tag that is meant where it has neither one nor a digest. Raises ValueError for what is no
    name of an image, with the kubelet's words."""
    if why := _why_none(image):
        raise ValueError(f"couldn't parse image name {quoted(image)}: {why}")
    domain, rest = _split(image)
    match = _NAME.fullmatch(f"{domain}/{rest}")
    if match is None or match[3] or match[4] or image.endswith(f":{DEFAULT_TAG}"):
        return image
    return f"{image}:{DEFAULT_TAG}"


def _why_none(image: str) -> str:
    if _HEXADECIMAL.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    domain, rest = _split(image)
    remote = rest.partition(":")[0]
    if remote.lower() != remote:
        return f"{_INVALID}: repository name ({remote}) must be lowercase"
    match = _NAME.fullmatch(f"{domain}/{rest}")
    if match is None:
        lower = _NAME.fullmatch(f"{domain}/{rest}".lower())
        return _INVALID if lower is None else "repository name must be lowercase"
    if len(match[2]) > LONGEST_PATH:
        return f"repository name must not be more than {LONGEST_PATH} characters"
    return _why_no_digest(match[4]) if match[4] else ""


def _split(image: str) -> tuple[str, str]:
    """Where the image is, and its name there (splitDockerDomain)."""
    first, slash, rest = image.partition("/")
    if not slash:
        return DEFAULT_DOMAIN, OFFICIAL + image
    if first == f"index.{DEFAULT_DOMAIN}":
        domain, name = DEFAULT_DOMAIN, rest
    elif first == "localhost" or "." in first or ":" in first or first.lower() != first:
        domain, name = first, rest
    else:
        domain, name = DEFAULT_DOMAIN, image
    return domain, f"{OFFICIAL}{name}" if domain == DEFAULT_DOMAIN and "/" not in name else name


def _why_no_digest(digest: str) -> str:
    """Validate of github.com/opencontainers/go-digest v1.0.0."""
    algorithm, _, encoded = digest.partition(":")
    digits = _DIGITS.get(algorithm)
    if digits is None:
        known = _ALGORITHM.fullmatch(digest)
        return "unsupported digest algorithm" if known else "invalid checksum digest format"
    if len(encoded) != digits:
        return "invalid checksum digest length"
    return "" if encoded == encoded.lower() else "invalid checksum digest format"
