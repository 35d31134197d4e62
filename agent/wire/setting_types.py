"""Types of keys of the settings that more than one room has: each says what is allowed. Pure."""

from typing import Annotated

from msgspec import Meta

Port = Annotated[int, Meta(ge=1, le=65535, description="a port, 1 to 65535")]
NonEmpty = Annotated[str, Meta(min_length=1, description="text, not empty")]
