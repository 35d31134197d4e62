"""Sections of the extender's configuration for tests of anything else: what closes a node closes it, however many they
are, and it opens as soon as it is well.
"""

OFF = {"cap": False, "storm": False}
OFF_AT_GATE = {"damping": False}
OFF_YAML = "cap: off\nstorm: off\n"


def off(settings: dict[str, object]) -> dict[str, object]:
    """The sections given, and these."""
    gates = [OFF_AT_GATE | dict(gate) for gate in settings.get("gates") or [{}]]
    return OFF | settings | {"gates": gates}
