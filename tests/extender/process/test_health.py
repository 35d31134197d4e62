"""What the worker says of itself at /readyz."""

import json
from types import SimpleNamespace

from extender.process.worker import _Health


class Cache:
    """Its lag is that of news that become too old to be told right after the first look."""

    synced = True

    def __init__(self):
        self._lags_s = [10.13, None]

    @property
    def lag_s(self):
        return self._lags_s.pop(0)

    def age_s(self, _monotonic):
        return 0.5


def test_news_that_grow_old_while_they_are_told_of_are_no_bug():
    services = SimpleNamespace(why_not=lambda: "", monotonic=lambda: 1.0, caches={"leases": Cache()})
    ready, said = _Health(services, ()).ready()
    shown = json.loads(said)["caches"]
    assert (True, {"leases": {"synced": True, "ageSeconds": 0.5, "lagSeconds": 10.13}}) == (ready, shown)
