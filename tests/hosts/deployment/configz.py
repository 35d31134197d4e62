"""What /configz of a kube-scheduler says, by the names that a file has: up to Kubernetes 1.35 they are Go's."""

import json
import re
from typing import Any

# URLPrefix, QPS, Parallelism: of the first word all that is large.
_FIRST_WORD = re.compile(r'"[A-Z]+(?=":|[A-Z][a-z]\w*":)|"[A-Z](?=\w*":)')


def loaded(said: str) -> dict[str, Any]:
    """The one configuration in it."""
    (found,) = json.loads(_FIRST_WORD.sub(lambda word: word[0].lower(), said)).values()
    return dict(found)
