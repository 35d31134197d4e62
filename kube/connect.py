"""The connection to the API server, by the settings."""

from dataclasses import replace
from pathlib import Path

from kube.auth import Connection, by_files, in_cluster


def connect(
    kubeconfig: str | None, *, server: str | None = None, token_file: str | None = None, ca_file: str | None = None
) -> Connection:
    """Returns the connection by a kubeconfig file, or by the pod's service account for None; `server` overrides the
    address.

    token_file, ca_file: instead of both, with a server. Raises CredentialsInvalid, whose text is one line with cause
    and remedy.
    """
    if server is not None and token_file is not None and ca_file is not None:
        return by_files(server, token_file=Path(token_file), ca_file=Path(ca_file))
    if kubeconfig is None:
        connection = in_cluster()
    else:
        from kube import kubeconfig as by_kubeconfig  # late: the package behind it costs 20 MiB

        connection = by_kubeconfig.load(kubeconfig)
    return connection if server is None else replace(connection, server=server)
