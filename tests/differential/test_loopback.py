"""What of the network a history meets: nobody outside is asked for anything."""

import pytest

from tests.differential.targets import handlers


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "localhost"])
def test_what_the_c_library_knows_by_itself_is_found_as_on_any_machine(host: str) -> None:
    """Else an agent that takes 127.1 for an address would be taken for one that does not."""
    assert "127.0.0.1" in {address[0] for *_, address in handlers._looked_up(host)}


@pytest.mark.parametrize("host", ["nobody.invalid", "a b", "127.0.0.1:80"])
def test_a_name_is_not_found(host: str) -> None:
    with pytest.raises(OSError, match="not known"):
        handlers._looked_up(host)
