"""Over sockets: whatever happens in between, a store that has come to the server's version equals the server.

`tests/kube/test_reflector_property.py` takes many more steps without them.
"""

import hypothesis.strategies as st
from hypothesis import example, given, settings

from tests.scripted.following import following, node
from tools.fakes.api_server import FakeApiServer
from tools.kit.waiting import wait_until

NAMES = st.sampled_from(["a", "b", "c", "d"])
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("poison"), NAMES),
    st.tuples(st.just("bookmark")),
    st.tuples(st.just("end")),
    st.tuples(st.just("cut"), st.booleans()),
    st.tuples(st.just("half line")),
    st.tuples(st.just("error"), st.sampled_from([(410, "Expired"), (429, "TooManyRequests"), (500, "InternalError")])),
    st.tuples(st.just("compact")),
    st.tuples(st.just("hold")),
    st.tuples(st.just("release")),
    st.tuples(st.just("refused next"), st.sampled_from([403, 410, 429, 500]), st.booleans()),
    st.tuples(st.just("reset next"), st.booleans()),
    st.tuples(st.just("garbage"), st.sampled_from([b"{\n", b"null\n", b"\n\n", b'{"type":"ADDED","object":{}}\n'])),
)


def act(api: FakeApiServer, verb: str, *arguments) -> None:
    if verb == "put":
        name, generation = arguments
        api.put(node(name, text=generation))
    elif verb == "poison":
        api.put(node(arguments[0], spec={"unschedulable": "yes"}))
    elif verb == "delete":
        if api.get("Node", arguments[0]):
            api.delete("Node", arguments[0])
    elif verb == "cut":
        api.cut_watches(reset=arguments[0])
    elif verb == "half line":
        api.emit_bytes(None, b'{"type":"ADDED","obj')
        api.cut_watches()
    elif verb == "error":
        api.error_watches(*arguments[0])
    elif verb == "refused next":
        api.answer_next(arguments[0], watch=arguments[1])
    elif verb == "reset next":
        api.reset_next(watch=arguments[0])
    elif verb == "garbage":
        api.emit_bytes(None, arguments[0])
    else:
        {
            "bookmark": api.bookmark,
            "end": api.end_watches,
            "compact": api.compact,
            "hold": api.hold_events,
            "release": api.release_events,
        }[verb]()


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=25))
@example([("put", "a", 0), ("hold",), ("put", "b", 0), ("delete", "a"), ("bookmark",)])
@example([("hold",), ("put", "a", 0), ("hold",)])
def test_in_the_end_the_store_equals_the_server(steps):
    with FakeApiServer() as api, following(api, pause_s=0.001) as it:
        for step in steps:
            act(api, *step)
        api.release_events()
        for item in api.objects("Node"):  # what stays undecodable has no true state to compare
            if "spec" in item:
                api.put(node(item["metadata"]["name"]))
        api.put(node("last"))

        def truth() -> dict[str, str]:
            return {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in api.objects("Node")}

        wait_until(lambda: it.store.versions == truth(), f"the store to equal {truth()}")
        assert truth() == it.store.versions
