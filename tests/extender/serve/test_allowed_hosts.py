import pytest

from extender.serve.allowed_hosts import allowed_hosts, is_ours

LOOPBACK = allowed_hosts("127.0.0.1", 9376)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"127.0.0.1:9376", id="the address we listen on, as kube-scheduler and the kubelet's probes say"),
        pytest.param(b"127.0.0.1", id="without a port"),
        pytest.param(b"127.0.0.1:31999", id="another port, forwarded to ours"),
        pytest.param(b"127.1.2.3:9376", id="another address of the loopback"),
        pytest.param(b"localhost:9376", id="localhost"),
        pytest.param(b"LocalHost:9376", id="in capitals"),
        pytest.param(b"localhost.:9376", id="with the dot of the root"),
        pytest.param(b"[::1]:9376", id="the loopback of IPv6"),
        pytest.param(b"[::1]", id="IPv6 without a port"),
        pytest.param(b"[0:0:0:0:0:0:0:1]:9376", id="IPv6 in its long spelling"),
        pytest.param(b"[::ffff:127.0.0.1]:9376", id="IPv4 in IPv6"),
    ],
)
def test_ours(header):
    assert is_ours(header, LOOPBACK)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"evil.example.com:9376", id="a name that resolves to us"),
        pytest.param(b"evil.example.com", id="the name alone"),
        pytest.param(b"localhost.evil.example.com", id="a name that begins as ours"),
        pytest.param(b"127.0.0.1.evil.example.com", id="a name that begins as our address"),
        pytest.param(b"evil-localhost", id="a name that ends as ours"),
        pytest.param(b"localhost..", id="two dots"),
        pytest.param(b"192.0.2.1:9376", id="an address that is not ours"),
        pytest.param(b"0.0.0.0:9376", id="no address at all"),
        pytest.param(b"[::]:9376", id="no address at all, IPv6"),
        pytest.param(b"[2001:db8::1]:9376", id="an address of IPv6 that is not ours"),
        pytest.param(b"[::1%25lo]:9376", id="with a zone"),
        pytest.param(b"[127.0.0.1]:9376", id="IPv4 in brackets"),
        pytest.param(b"::1", id="IPv6 without brackets"),
        pytest.param(b"[::1", id="a bracket that does not close"),
        pytest.param(b"[::1]9376", id="no colon before the port"),
        pytest.param(b"localhost:", id="a colon without a port"),
        pytest.param(b"localhost:http", id="a port that is no number"),
        pytest.param(b"localhost:9376:1", id="two ports"),
        pytest.param(b"user@localhost", id="with a user"),
        pytest.param(b"2130706433:9376", id="an address as one number"),
        pytest.param(b"localhost\xff", id="a byte that is no ASCII"),
        pytest.param(b"*", id="the mark of all addresses"),
        pytest.param(b":9376", id="a port alone"),
        pytest.param(b"", id="empty"),
    ],
)
def test_not_ours(header):
    assert not is_ours(header, LOOPBACK)


def test_more_names_and_addresses_by_the_configuration():
    allowed = allowed_hosts("10.0.0.7", 9376, ["extender.example.com", "2001:db8::7"])
    asked = [b"EXTENDER.example.com.:443", b"[2001:0db8:0::7]:9376", b"10.0.0.7:9376", b"127.0.0.1", b"10.0.0.8"]
    assert [True, True, True, True, False] == [is_ours(header, allowed) for header in asked]


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_on_all_addresses_any_number_is_ours_and_no_name(address):
    """A pod's address is not known beforehand; a page comes by a name."""
    asked = [b"10.1.2.3:9376", b"[2001:db8::1]:9376", b"evil.example.com:9376", b"*"]
    assert [True, True, False, False] == [is_ours(header, allowed_hosts(address, 9376)) for header in asked]
