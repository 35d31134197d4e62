"""What stands for others where a real one cannot be made to show a fault on cue.

`api_server`: an API server on a loopback socket (`api_http` its connections, `api_store` its objects and their log).
`runtime`: a container runtime of which a test says what ends.

Guarantees: the fake behaves as the real one where it is not told otherwise (selectors, versions, 410, held events);
every fault hits the next matching request or the open watches, and every method may be called from any thread.
Every ring may import it. It imports `tests.kit` and the product's own words for what it stands for, never a test.
"""
