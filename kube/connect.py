"""Where the API server is and who we are there: one call for both halves, by whatever the settings name."""

from dataclasses import replace

from kube.auth import Connection, in_cluster


def connect(kubeconfig: str | None, *, server: str | None = None) -> Connection:
    """The connection by a kubeconfig file, or by the pod's service account for None; `server` overrides the address.

    Raises CredentialsInvalid, whose text is one line with cause and remedy.
    """
    if kubeconfig is None:
        connection = in_cluster()
    else:
        from kube import kubeconfig as by_kubeconfig  # late: the package behind it costs 20 MiB

        connection = by_kubeconfig.load(kubeconfig)
    return connection if server is None else replace(connection, server=server)
