"""All findings of all facts, the worst first. Pure."""

from cli.doctor.facts import Facts
from cli.doctor.findings import Finding, Severity
from cli.doctor.gating import of_gating
from cli.doctor.schedulers import of_schedulers

_ORDER = list(Severity)


def examine(facts: Facts) -> list[Finding]:
    found = [*of_schedulers(facts), *of_gating(facts)]
    return sorted(found, key=lambda one: (_ORDER.index(one.severity), one.name, one.about))
