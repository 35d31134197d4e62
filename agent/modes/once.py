"""Each check once, for people: at a terminal, before it is put to work. Nothing is published and nothing is kept."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from agent.checks.catalogue import KINDS, check_spec
from agent.checks.engine import CheckEngine
from agent.checks.health import NodeHealth
from agent.checks.pages import check_text, checks_json, checks_table, kind_text
from agent.checks.state import CheckState, Thresholds
from agent.modes.pod_network import for_once
from agent.settings import Settings
from component.settings import SettingsError

LOOK_AGAIN_S = 0.02
TOLD_AFTER_S, TOLD_AGAIN_S = 2.0, 0.5


def run_once(
    settings: Settings,
    *,
    as_json: bool = False,
    given_up: Callable[[], bool] = lambda: False,
    waiting: Callable[[str], None] = lambda _text: None,
) -> tuple[NodeHealth, str]:
    """The health that follows from one run of each check, all at once, and the page that says it. Comes back when the
    slowest has ended or is late, or when `given_up`. `waiting` is told for whom where that takes long, and at the end
    nothing. Raises SettingsError where there are no checks."""
    if not settings.checks:
        allowed = "with mode: pod or node" if settings.mode == "kubelet" else "with checks, or a profile, in the file"
        raise SettingsError(f"--once: mode {settings.mode} has no checks, allowed: {allowed}")
    alone = Thresholds(success=1, failure=1, keep_runs=0)
    around = for_once(settings)
    specs = [
        replace(check_spec(check, around=around), initial_delay_s=0.0, thresholds=alone) for check in settings.checks
    ]
    logging.disable()  # what the log would say is on the page
    engine = CheckEngine(specs)
    try:
        engine.start()
        began = time.monotonic()
        tell_at = began + TOLD_AFTER_S
        while not given_up() and (open_ones := _running(engine)):
            if (now := time.monotonic()) >= tell_at:
                waiting(f"waiting for {', '.join(open_ones)}: {now - began:.0f} s")
                tell_at = now + TOLD_AGAIN_S
            time.sleep(LOOK_AGAIN_S)
        if tell_at > began + TOLD_AFTER_S:
            waiting("")
        health, shown = engine.node_health(), engine.shown()
    finally:
        engine.stop()
        logging.disable(logging.NOTSET)
    return health, checks_json(health, shown) if as_json else checks_table(health, shown)


def _running(engine: CheckEngine) -> list[str]:
    """Names of the checks that have said nothing yet."""
    return [one.status.name for one in engine.shown() if one.status.state is CheckState.STARTING]


def explained(settings: Settings, name: str) -> str:
    """What the check of that name is about, or the kind where no check has the name. Raises SettingsError."""
    for check in settings.checks:
        if check.name == name:
            spec = check_spec(check)
            return check_text(check, spec, KINDS[spec.kind])
    if name in KINDS:
        return kind_text(name, KINDS[name])
    names = ", ".join([*(check.name for check in settings.checks), *KINDS])
    raise SettingsError(f"--explain: there is no check {name}, allowed: {names}")
