"""What ring 3 says when it cannot do what was asked."""


class HostsError(Exception):
    """The hosts cannot do what was asked; str = cause and remedy, one line."""
