"""The chart, rendered by the helm that the testbed builds."""

import hashlib
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tools.testbed.shared.tools import HELM, built

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "readygate"
NAMESPACE = "readygate-system"
RELEASE = "readygate"
SUPPORTED = {path.name.removesuffix("-values.yaml"): path for path in sorted((CHART / "ci").glob("*-values.yaml"))}
_HELM_LIMIT_S = 60
Object = dict[str, Any]
Objects = dict[tuple[str, str, str], Object]


class Refused(Exception):  # noqa: N818 - the name says what is the matter
    """helm did not render it; str = its words."""


def helm(*arguments: str, environ: dict[str, str] | None = None, limit_s: float = _HELM_LIMIT_S) -> str:
    """What it writes. Raises Refused."""
    done = subprocess.run(
        [built(HELM), *arguments], capture_output=True, text=True, timeout=limit_s, env=environ, check=False
    )
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout


def rendered(
    *values: Path, given: Sequence[str] = (), namespace: str = NAMESPACE, release: str = RELEASE, hooks: bool = False
) -> str:
    """The chart's YAML with these files of values. given: as `agent.profile=fast`. helm runs once for the same wishes.
    Raises Refused."""
    return _rendered(tuple((path, path.read_bytes()) for path in values), tuple(given), namespace, release, hooks)


@cache
def _rendered(
    values: tuple[tuple[Path, bytes], ...], given: tuple[str, ...], namespace: str, release: str, hooks: bool
) -> str:
    """values: files and their content, by which a file that has changed is another wish."""
    files = [f"--values={path}" for path, _ in values]
    also = [f"--set-json={one}" for one in given]
    return helm(
        "template", release, str(CHART), f"--namespace={namespace}", *files, *also, *([] if hooks else ["--no-hooks"])
    )


def documents(text: str) -> list[Object]:
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def keyed(found: Sequence[Object]) -> Objects:
    """By kind, namespace and name, none of which are there twice."""
    objects = {(d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]): d for d in found}
    assert len(objects) == len(found)
    return objects


def objects(*values: Path, **how: Any) -> Objects:
    return keyed(documents(rendered(*values, **how)))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
