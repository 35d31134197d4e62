"""A connection of TLS is a handshake of its own: an earlier session would go on with a certificate of an earlier CA."""

import ssl

import pytest

from extender.serve import tls
from tests.extender.serve.test_tls import VERSIONS, Client, ours, settings, shake

__all__ = ["ours"]


@VERSIONS
def test_no_session_is_offered_to_the_client(ours, newest):
    client = Client(ours, (ours, "client"), newest=newest)
    shake(tls.Certificates(settings(ours)).stream(), client)
    assert client.tls.session is None or not client.tls.session.has_ticket


def test_a_session_is_not_resumed(ours):
    """With TLS 1.2 the server could also remember a session itself."""
    certificates = tls.Certificates(settings(ours))
    first = Client(ours, (ours, "client"), newest=ssl.TLSVersion.TLSv1_2)
    shake(certificates.stream(), first)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    again = Client(ours, newest=ssl.TLSVersion.TLSv1_2)
    again._incoming, again.outgoing = incoming, outgoing
    context = first.tls.context
    again.tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1", session=first.tls.session)
    shake(certificates.stream(), again)
    assert not again.tls.session_reused


@pytest.mark.parametrize("option", [ssl.OP_NO_TICKET, ssl.OP_NO_RENEGOTIATION, ssl.OP_NO_COMPRESSION])
def test_what_a_client_could_use_against_the_server_is_off(ours, option):
    assert tls.Certificates(settings(ours))._context.options & option
