"""The registry that the tests push to takes blobs as a client sends them: several at once."""

import hashlib
import http.client

from tests.hosts.registry import Registry


def begun(connection: http.client.HTTPConnection) -> str:
    """Where an upload goes on."""
    connection.request("POST", "/v2/readygate/blobs/uploads/")
    answer = connection.getresponse()
    answer.read()
    return str(answer.headers["Location"])


def sent(connection: http.client.HTTPConnection, method: str, path: str, data: bytes = b"") -> int:
    connection.request(method, path, data)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def ended(connection: http.client.HTTPConnection, path: str, data: bytes) -> int:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return sent(connection, "PUT", f"{path}?digest={digest.replace(':', '%3A')}")


def test_one_upload_that_ends_disturbs_no_other() -> None:
    with Registry() as registry:
        connection = http.client.HTTPConnection(registry.address, timeout=30)
        first, second = begun(connection), begun(connection)
        assert [202, 202] == [sent(connection, "PATCH", first, b"one"), sent(connection, "PATCH", second, b"two")]
        assert 201 == ended(connection, first, b"one")
        third = begun(connection)
        assert 202 == sent(connection, "PATCH", third, b"three")
        assert [201, 201] == [ended(connection, second, b"two"), ended(connection, third, b"three")]
        connection.close()
    assert {b"one", b"two", b"three"} == set(registry.blobs.values())
