"""The line of a configuration file that a key is on, for the errors of the settings. Pure."""

import re

import yaml

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def line_of(text: bytes, key: str) -> int | None:
    """Of a key as `checks[1].kernelLog.path`, or, where it is missing, of what it is in. None: nothing of it is there.

    `text` must be YAML.
    """
    node, found = yaml.compose(text, Loader=yaml.SafeLoader), None
    for name, place in _STEP.findall(key):
        if isinstance(node, yaml.MappingNode):
            values = {each.value: (each, value) for each, value in node.value}
            if name not in values:
                break
            at, node = values[name]
        elif isinstance(node, yaml.SequenceNode) and place and int(place) < len(node.value):
            at = node = node.value[int(place)]
        else:
            break
        found = at.start_mark.line + 1
    return found
