"""What a container of the image gets, as the last stage of images/Containerfile says it. Pure.

`make image` reads it here and `docker build` by itself, so both say the same. Of the language only what is used there:
ARG with a value, ENV, LABEL, USER, WORKDIR and CMD in JSON, with lines that end in a backslash.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any


def config(text: str, arguments: Mapping[str, str]) -> dict[str, Any]:
    """User, Env, Labels, WorkingDir and Cmd. arguments: of ARGs, instead of their own values."""
    lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip() and not line.startswith("#")]
    starts = [number for number, line in enumerate(lines) if line.startswith("FROM ")]
    values: dict[str, str] = {}
    found: dict[str, Any] = {"Env": [], "Labels": {}}
    for line in lines[starts[-1] + 1 :]:
        word, _, rest = line.partition(" ")
        rest = re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], rest)
        if word == "ARG":
            name, _, value = rest.partition("=")
            values[name] = arguments.get(name, value)
        elif word == "ENV":
            found["Env"] += shlex.split(rest)
        elif word == "LABEL":
            found["Labels"] |= dict(one.split("=", 1) for one in shlex.split(rest))
        elif word in {"USER", "WORKDIR"}:
            found[{"USER": "User", "WORKDIR": "WorkingDir"}[word]] = rest
        elif word == "CMD":
            found["Cmd"] = json.loads(rest)
        elif word != "COPY":
            raise ValueError(f"{word} is not understood in the last stage: {line}")
    return found
