"""Types of settings that several rooms use. Each type's description is the text of its error. Pure."""

from typing import Annotated

from msgspec import Meta

Port = Annotated[int, Meta(ge=1, le=65535, description="a port, 1 to 65535")]
NonEmpty = Annotated[str, Meta(min_length=1, description="text, not empty")]
