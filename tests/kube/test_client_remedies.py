"""What is to be done where TLS fails: by the alert that the server has sent, if it has sent any."""

import ssl

import pytest

from kube.client import _remedy

OURS = "the server refuses the client certificate: none sent, expired, or of another authority"
THEIRS = "compare certificate-authority and address"


def failed(reason: str) -> Exception:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("causes", "expected"),
    [
        pytest.param([failed("TLSV1_ALERT_UNKNOWN_CA")], OURS, id="ours is of an authority that it does not know"),
        pytest.param([failed("SSLV3_ALERT_CERTIFICATE_EXPIRED")], OURS, id="ours has expired"),
        pytest.param([failed("SSLV3_ALERT_BAD_CERTIFICATE")], OURS, id="ours is bad"),
        pytest.param([failed("TLSV13_ALERT_CERTIFICATE_REQUIRED")], OURS, id="it wants one, and we sent none"),
        pytest.param([OSError("outer"), failed("TLSV1_ALERT_ACCESS_DENIED")], OURS, id="the cause of another error"),
        pytest.param([failed("TLSV1_ALERT_PROTOCOL_VERSION")], THEIRS, id="an alert of the version"),
        pytest.param([failed("SSLV3_ALERT_HANDSHAKE_FAILURE")], THEIRS, id="an alert of no cipher in common"),
        pytest.param([failed("CERTIFICATE_VERIFY_FAILED")], THEIRS, id="its own is not to be believed"),
        pytest.param([OSError("EOF")], THEIRS, id="no word of TLS"),
    ],
)
def test_the_remedy(causes: list[Exception], expected: str) -> None:
    assert expected == _remedy(causes)
