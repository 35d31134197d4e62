"""Types of keys of the configuration file that more than one part of it has: each says what is allowed. Pure."""

from typing import Annotated

from msgspec import Meta

DnsLabel = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z", description="a DNS label")]
DnsName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z", description="a DNS name")]
Seconds = Annotated[float, Meta(ge=0, le=86400, description="seconds, 0 to 86400")]
Text = Annotated[str, Meta(min_length=1, description="text that is not empty")]
