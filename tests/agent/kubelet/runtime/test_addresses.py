import pytest

from agent.kubelet.runtime.addresses import Addresses, NoAddressError


def test_the_first_address_is_the_nodes_and_pods_get_the_others_in_turn():
    addresses = Addresses("127.20.1.0/29")
    assert "127.20.1.1" == addresses.node
    assert ["127.20.1.2", "127.20.1.3", "127.20.1.2"] == [addresses.take(owner) for owner in ("a", "b", "a")]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        pytest.param("127.20.1.5", "127.20.1.5", id="free and ours"),
        pytest.param("127.20.1.1", "127.20.1.3", id="the node's own"),
        pytest.param("127.20.1.7", "127.20.1.3", id="the broadcast address"),
        pytest.param("127.20.1.2", "127.20.1.3", id="taken"),
        pytest.param("10.0.0.1", "127.20.1.3", id="of another block"),
        pytest.param("odd", "127.20.1.3", id="not an address"),
    ],
)
def test_a_wish_is_granted_when_it_can_be(wish, expected):
    addresses = Addresses("127.20.1.0/29")
    addresses.take("other")
    assert expected == addresses.take("a", wish)


def test_a_full_block_says_so_and_a_released_address_is_used_again():
    addresses = Addresses("127.20.1.0/30")
    addresses.take("a")
    with pytest.raises(NoAddressError, match=r"no free address in 127\.20\.1\.0/30"):
        addresses.take("b")
    addresses.release("a")
    assert addresses.take("b") == "127.20.1.2"


def test_a_block_must_have_room():
    with pytest.raises(ValueError, match="too small"):
        Addresses("127.0.0.1/32")
