"""For what the roles have kubectl make. Known to the tasks of this role, from where those of others are used too."""

import re
from collections.abc import Callable
from typing import Any

from ansible.plugins.filter.core import to_json


def readygate_objects_line(value: Any) -> str:  # noqa: ANN401
    """YAML on one line of printable ASCII, which nothing in it ends. JSON is that but for what is beyond 16 bits: its
    halves of a character are none in YAML."""
    text: str = to_json(value, sort_keys=True, ensure_ascii=False)
    return re.sub("[^ -~]", lambda found: f"\\U{ord(found[0]):08x}", text)


class FilterModule:
    """The name under which templates use it."""

    def filters(self) -> dict[str, Callable[..., str]]:
        return {"readygate_objects_line": readygate_objects_line}
