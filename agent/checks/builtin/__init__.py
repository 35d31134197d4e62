"""The kinds of checks, one file each, named as in the settings.

Each file holds the same names: `Settings` (a Section: the keys), `Check(settings, timeout_s)` (a call of it makes one
run and returns a Finding), `DOC` (one line of docs/configuration.md: what has to be so that it passes) and `RIGHTS`
(what it takes beyond an ordinary container). Its docstring is its page in docs/checks.md and of `--explain`, for
operators. With a row in `agent.checks.catalogue` that is all of a new check.

A Check may have `descriptor()`: of what it reads, or None; the kernel's news there make it run at once.

Guaranteed: making a Check does nothing yet; a run is back by `timeout_s` where the machine allows, changes nothing on
the node but what `RIGHTS` says, and waits for no lock of others; a finding is passed, warned, failed with the cause,
hung, or unknown when it could not look; its output is for people, with the numbers, without secrets, in any length.

A check imports `probe`, `processes` and what a Finding is, no other check. Imported by `agent.checks.catalogue` only.
"""
