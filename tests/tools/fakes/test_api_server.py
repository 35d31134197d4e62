from tools.fakes.api_server import FakeApiServer

NODE = {"kind": "Node", "metadata": {"name": "n1"}}


def test_what_a_test_does_to_an_object_it_was_given_changes_nothing_there():
    api = FakeApiServer()
    for given in (api.put(NODE), api.put(NODE), api.get("Node", "n1"), *api.objects("Node")):
        given["metadata"]["name"] = "changed"
    assert api.get("Node", "n1")["metadata"]["name"] == "n1"
