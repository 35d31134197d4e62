"""The page of `readygate doctor`: the headline, then one paragraph for each finding. Pure."""

from collections.abc import Sequence

from cli.doctor.facts import Facts
from cli.doctor.findings import Finding, Severity
from cli.shared.layout import EMPTY, Page, Style, count, line, span, wrapped

STYLES = {
    Severity.ERROR: Style.BAD,
    Severity.WARNING: Style.HELD,
    Severity.UNKNOWN: Style.HELD,
    Severity.NOTE: Style.FAINT,
}


def headline(facts: Facts, found: Sequence[Finding]) -> str:
    """The answer in one line."""
    numbers = {severity: sum(one.severity is severity for one in found) for severity in Severity}
    parts = [f"{number} {severity.value}{'s' if number > 1 else ''}" for severity, number in numbers.items() if number]
    read = sum(scheduler.loaded is not None for scheduler in facts.schedulers)
    checked = (
        f"checked {count(facts.nodes, 'node')}, {count(len(facts.replicas), 'extender')}, "
        f"the configuration of {read} of {len(facts.schedulers)} schedulers"
    )
    return f"{', '.join(parts).replace('unknowns', 'unknown') or 'No findings'}; {checked}."


def render(facts: Facts, found: Sequence[Finding], width: int) -> Page:
    page = wrapped(line(headline(facts, found)), width)
    for one in found:
        page.append(EMPTY)
        severity = span(one.severity.value.upper(), STYLES[one.severity])
        head = line(severity, " ", span(one.name, Style.STRONG), ": ", one.about)
        page += wrapped(head, width, hang=2)
        page += wrapped(line(span(one.evidence)), width, indent=2)
        if one.remedy:
            page += wrapped(line("remedy: ", span(one.remedy)), width, indent=2, hang=10)
    return page
