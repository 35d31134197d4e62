"""A filter for the templates that kubectl kustomize reads. The tasks of this role use it, also for other roles."""

import re
from collections.abc import Callable
from typing import Any

from ansible.plugins.filter.core import to_json


def readygate_objects_line(value: Any) -> str:  # noqa: ANN401
    """The value as YAML on one line of printable ASCII. It is JSON, except for characters beyond 16 bits.

    JSON writes such a character as two surrogates, which YAML does not allow.
    """
    text: str = to_json(value, sort_keys=True, ensure_ascii=False)
    return re.sub("[^ -~]", lambda found: f"\\U{ord(found[0]):08x}", text)


class FilterModule:
    """The filter by its name in templates."""

    def filters(self) -> dict[str, Callable[..., str]]:
        return {"readygate_objects_line": readygate_objects_line}
