"""Writes what is made of the chart: deploy/, what the roles ship of it, its schema and README. `make manifests`. And
look.sh of the node role, with the program that reads the kubelet's files.

deploy/base is the chart with its defaults in the namespace readygate-system; deploy/monitoring is for clusters with the
Prometheus operator. Both are for `kubectl apply -k` and overlays: the image's name there is `readygate`. deploy/metrics
is a component for such an overlay: with it the extender listens for Prometheus at its host's address.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import yaml

from tests.charts import documents, overlays, profiles, schema
from tests.charts.rendering import CHART, ROOT, objects, rendered

VALUES = CHART / "values.yaml"
LOOK = ROOT / "playbooks" / "roles" / "readygate_node" / "files" / "look.sh"
FOLDERS = {"base": ("namespace", "agent", "extender"), "monitoring": ("monitoring",)}
MONITORED = {part: {"enabled": True} for part in ("podMonitors", "rules", "dashboard")}
BASE = ['image.repository="readygate"', "namespace.create=true"]
METRICS = 'extender.metrics.address="$(HOST_IP)"'
MONITORING = [*BASE, METRICS, f"monitoring={json.dumps(MONITORED)}"]
GIVEN = {"base": BASE, "monitoring": MONITORING}
_CONFIGURED = ("ConfigMap", "DaemonSet")
_SOURCE = re.compile(r"# Source: readygate/templates/(\w+)[/.].*\n")


def made() -> dict[Path, str]:
    """The text of each file, by its path from the root."""
    values = VALUES.read_text()
    readme = CHART / "README.md"
    return {
        (CHART / "values.schema.json").relative_to(ROOT): schema.schema(),
        readme.relative_to(ROOT): documents.readme(readme.read_text(), values),
        **{path.relative_to(ROOT): profiles.text() for path in profiles.FILES},
        LOOK.relative_to(ROOT): _with_its_reader(LOOK.read_text()),
        **_deployed(),
        Path("deploy", "metrics", "kustomization.yaml"): overlays.HEAD + _metrics(),
        **overlays.made(),
    }


def _with_its_reader(look: str) -> str:
    """The program that looks at a host comes as one file, as the host has nothing else of ours yet."""
    before, start, rest = look.partition("<<'PYTHON'\n")
    yaml_text, kubelet_files = (LOOK.with_name(f"{name}.py").read_text() for name in ("yaml_text", "kubelet_files"))
    without_import = re.sub(r"from yaml_text import .*\n\n", "", kubelet_files)
    return before + start + f"{yaml_text}\n\n{without_import}PYTHON\n" + rest.split("PYTHON\n", 1)[1]


def _deployed() -> dict[Path, str]:
    files: dict[Path, str] = {}
    for folder, names in FOLDERS.items():
        parts = _parts(GIVEN[folder])
        there = [name for name in names if name in parts]
        for name in there:
            files[Path("deploy", folder, f"{name}.yaml")] = overlays.HEAD + "---\n" + "---\n".join(parts[name])
        kustomization = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"{name}.yaml" for name in there],
        }
        files[Path("deploy", folder, "kustomization.yaml")] = overlays.HEAD + yaml.safe_dump(
            kustomization, sort_keys=False
        )
    assert set(_parts(MONITORING)) == {name for names in FOLDERS.values() for name in names}
    return files


def _parts(given: list[str]) -> dict[str, list[str]]:
    """The rendered objects by the folder of their templates."""
    parts: dict[str, list[str]] = {}
    for document in rendered(given=given).split("\n---\n"):
        text = document.removeprefix("---\n").strip("\n") + "\n"
        if found := _SOURCE.match(text):
            parts.setdefault(found[1], []).append(text[found.end() :])
    return parts


def _metrics() -> str:
    """The configuration cannot be changed in place: it gets the name that goes with its content."""
    before, after = (
        {key[0]: each for key, each in objects(given=given).items() if key[0] in _CONFIGURED and "extender" in key[2]}
        for given in (BASE, [*BASE, METRICS])
    )
    patches = [
        {
            "target": {"kind": kind, "name": before[kind]["metadata"]["name"]},
            **({"options": {"allowNameChange": True}} if kind == "ConfigMap" else {}),
            "patch": yaml.safe_dump(
                list(overlays.operations("", before[kind], after[kind])), sort_keys=False, width=10_000
            ),
        }
        for kind in _CONFIGURED
    ]
    component = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "patches": patches}
    return yaml.safe_dump(component, sort_keys=False, width=10_000)


def _there() -> list[Path]:
    folders = [ROOT / "deploy", *(ROOT / overlays.FOLDER.format(part.role) for part in overlays.PARTS)]
    return [path for folder in folders for path in folder.rglob("*.yaml")]


def differing() -> list[str]:
    """Which files are not as the chart says, and which are of no chart any more."""
    wanted = made()
    there = {path.relative_to(ROOT) for path in _there()}
    stale = {path for path, text in wanted.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != text}
    return sorted(map(str, stale | there - set(wanted)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.charts.manifests", description=__doc__)
    parser.parse_args()
    (CHART / "values.schema.json").unlink(missing_ok=True)  # an earlier one may not know the values of today
    for path in profiles.FILES:  # an earlier one may not know the kinds of today
        path.write_text(profiles.text())
    wanted = made()
    for path in _there():
        if path.relative_to(ROOT) not in wanted:
            path.unlink()
    for path, text in wanted.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
    print("\n".join(map(str, wanted)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
