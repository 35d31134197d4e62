"""What stands for others where a real one cannot be made to show a fault on cue.

`api_server`: an API server on a loopback socket (`api_http` its connections, `api_requests` what they ask for,
`api_store` its objects and their log, `api_patches` and `api_words` as they say). `dialogues`, `talk`: what the real
one was asked and said, which the fake is held against. `runtime`: a container runtime of which a test says what ends.
`cri`: one behind a socket, a process of its own, of which a test says what it answers.

Guarantees: the fake says what the real one says where it is not told otherwise, word for word in each dialogue on
record; every fault hits the next matching request or the open watches, and every method may be called from any thread.
Every ring may import it. It imports `tools.kit` and the product's own words for what it stands for, never a test.
"""
