"""What is in the image, as a CycloneDX document. Pure.

Components: Debian's packages, the locked dependencies, readygate itself; each with version, package URL and the hash of
the file that it came in.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from images.deb import Deb
from images.oci import timestamp


@dataclass(frozen=True)
class Distribution:
    """A wheel that is installed. license: an SPDX expression or whatever its metadata say; "" for nothing."""

    name: str
    version: str
    license: str
    sha256: str


def document(
    product: Distribution, packages: Sequence[Deb], wheels: Sequence[Distribution], *, architecture: str, created_s: int
) -> bytes:
    """JSON, CycloneDX 1.5."""
    components = [*map(_of_deb, packages), *map(_of_wheel, sorted(wheels, key=lambda one: one.name))]
    main = _of_wheel(product) | {"type": "application"}
    main.pop("hashes")  # it was built from this very source
    references = [one["bom-ref"] for one in components]
    seed = json.dumps([main, components, architecture, created_s], sort_keys=True)
    found = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, seed)}",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(created_s),
            "component": main,
            "properties": [{"name": "readygate:architecture", "value": architecture}],
        },
        "components": components,
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": references}],
    }
    return (json.dumps(found, indent=1, sort_keys=True) + "\n").encode()


def distribution(metadata: str, sha256: str) -> Distribution:
    """By the METADATA of a wheel."""
    fields = _first(line.split(": ", 1) for line in metadata.partition("\n\n")[0].splitlines() if ": " in line)
    license_ = fields.get("License-Expression") or fields.get("License", "")
    return Distribution(fields["Name"].lower().replace("_", "-"), fields["Version"], license_, sha256)


def _first(fields: Iterable[Sequence[str]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in fields:
        found.setdefault(name, value)
    return found


def _of_deb(package: Deb) -> dict[str, Any]:
    name, version = quote(package.name, safe=""), quote(package.version, safe="")
    url = f"pkg:deb/debian/{name}@{version}?arch={package.architecture}"
    return _component(package.name, package.version, url, package.sha256)


def _of_wheel(wheel: Distribution) -> dict[str, Any]:
    url = f"pkg:pypi/{wheel.name}@{quote(wheel.version, safe='')}"
    found = _component(wheel.name, wheel.version, url, wheel.sha256)
    if wheel.license:
        found["licenses"] = [{"license": {"name": wheel.license}}]
    return found


def _component(name: str, version: str, url: str, sha256: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": url,
        "name": name,
        "version": version,
        "purl": url,
        "hashes": [{"alg": "SHA-256", "content": sha256}],
    }
