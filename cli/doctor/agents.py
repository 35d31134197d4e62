"""What the agents' pods examine, and what they cannot. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from agent.checks.profiles import not_run
from agent.wire.condition import SPEAKER_NODE, speaker_of
from cli.doctor.facts import Agents
from cli.doctor.findings import Finding, note
from component.settings import SettingsError, document

AGENT_FILE, READER_FILE = "agent.yaml", "reader.yaml"
REMEDY = (
    "set readygate_agent_form: both, which runs an agent on each host too, or in the chart agent.reader.enabled for a "
    "part of them; or leave it so"
)


def agents_of(files: Mapping[str, str], annotations: Mapping[str, str]) -> Agents | None:
    """files: of the ConfigMap that the pods mount. None where there is no file of the agent that can be read."""
    settings = _mapping(files.get(AGENT_FILE, ""))
    if not settings:
        return None
    profile = settings.get("profile")
    name = profile.get("name") if isinstance(profile, dict) else profile
    checks = _mapping(files.get(READER_FILE, "")).get("checks")
    named = [one.get("name") for one in checks if isinstance(one, dict)] if isinstance(checks, list) else []
    return Agents(
        profile=name if isinstance(name, str) else "",
        service=speaker_of(annotations) == SPEAKER_NODE,
        beside=tuple(one for one in named if isinstance(one, str)),
    )


def of_agents(agents: Agents | None) -> Iterator[Finding]:
    """One note on what a pod cannot examine and nothing next to it does."""
    if agents is None or agents.service:
        return
    left = [name for name in not_run(agents.profile, "pod") if name not in agents.beside]
    if left:
        yield note(
            "not-examined",
            "agents in pods",
            f"a pod cannot run these checks of the list {agents.profile}: {', '.join(left)}",
            REMEDY,
        )


def _mapping(text: str) -> dict[str, Any]:
    """Of a YAML file; empty where it is none."""
    try:
        found = document(text)
    except SettingsError:
        return {}
    return found if isinstance(found, dict) else {}
