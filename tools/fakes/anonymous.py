"""A client that says nothing of who it is: plain HTTP, which no API server takes but ours."""

from collections.abc import Mapping


class Anonymous:
    """Credentials of nobody."""

    def headers(self, monotonic: float) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def refresh(self) -> None:
        return None
