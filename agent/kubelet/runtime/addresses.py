"""Addresses of pods: each its own out of the node's block. Not thread-safe: the runtime's lock guards it."""

import ipaddress


class NoAddressError(Exception):
    """The node's block has no free address. str() says which block."""


class Addresses:
    """Hands out host addresses of `block`; the first one is the node's own."""

    def __init__(self, block: str) -> None:
        """Raises ValueError if `block` is not an IPv4 or IPv6 network with room for the node and a pod."""
        self._block = ipaddress.ip_network(block)
        if self._block.num_addresses < 4:
            raise ValueError(f"{block} is too small: it must hold at least 4 addresses")
        self._taken: dict[str, str] = {}

    @property
    def node(self) -> str:
        return str(self._block.network_address + 1)

    def take(self, owner: str, wish: str = "") -> str:
        """The owner's address: the one it has, else `wish` if that is free and ours, else the lowest free one."""
        if owner in self._taken:
            return self._taken[owner]
        used = set(self._taken.values())
        address = wish if wish and wish not in used and self._is_for_pods(wish) else self._lowest(used)
        self._taken[owner] = address
        return address

    def release(self, owner: str) -> None:
        self._taken.pop(owner, None)

    def _is_for_pods(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        if address not in self._block:
            return False
        return int(address) - int(self._block.network_address) >= 2 and address != self._block.broadcast_address

    def _lowest(self, used: set[str]) -> str:
        for offset in range(2, min(self._block.num_addresses - 1, 1 << 16)):
            address = str(self._block.network_address + offset)
            if address not in used:
                return address
        raise NoAddressError(f"no free address in {self._block}")
