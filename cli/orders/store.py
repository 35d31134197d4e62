"""Reads and writes the ConfigMap of the orders, with the user's own rights.

Each write names the resourceVersion that it is based on. After a conflict it is built again from the current entries.
Only the changed entry is sent, so the other entries stay as they are.
"""

from collections.abc import Callable, Mapping

import msgspec

from cli.shared.errors import EXIT_UNKNOWN, CommandError, api_problem
from extender.policy.orders import ENTRIES_MAX
from kube import contract, paths
from kube.client import Client
from kube.errors import AlreadyExists, Conflict, CredentialsInvalid, Forbidden, KubeError, NotFound
from kube.objects import UNREADABLE, ObjectMeta

TRIES = 8
OPERATOR = "readygate-operator"  # ClusterRole of the chart
Entries = Mapping[str, str | None]
Change = Callable[[Entries], Entries]


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] | None = None
    binary: dict[str, msgspec.Raw] | None = msgspec.field(default=None, name="binaryData")

    @property
    def entries(self) -> dict[str, str | None]:
        """The entries by id. None: a binary entry, as kubectl stores text that is not UTF-8."""
        return {**dict.fromkeys(self.binary or ()), **(self.data or {})}


class Store:
    """The ConfigMap of the orders."""

    def __init__(self, client: Client, namespace: str, name: str, *, tries: int = TRIES) -> None:
        self._tries = tries
        self._client = client
        self._namespace = namespace
        self._name = name
        self.where = f"configmap {name} in namespace {namespace}"

    def read(self) -> Entries:
        """Reads the entries; empty without the ConfigMap. Raises CommandError."""
        found = self._get(code=EXIT_UNKNOWN)
        return {} if found is None else found.entries

    def change(self, change: Change) -> Entries:
        """Writes the changes that `change` returns for the current entries, and returns them.

        Changes are values by id; None removes an entry. After a conflict `change` is called again. Raises CommandError.
        """
        for _ in range(self._tries):
            found = self._get(code=1)
            entries = {} if found is None else found.entries
            changes = change(entries)
            if not changes:
                return changes
            if len(entries.keys() | {key for key, value in changes.items() if value is not None}) > ENTRIES_MAX:
                raise CommandError(f"{self.where} has {len(entries)} orders, the limit is {ENTRIES_MAX}; lift some")
            try:
                self._write(found, changes)
            except Conflict:
                continue
            return changes
        raise CommandError(f"{self.where} was changed by others each time; try again")

    def _get(self, *, code: int) -> _ConfigMap | None:
        path = paths.config_map(self._namespace, self._name)
        try:
            return msgspec.json.decode(self._client.get(path), type=_ConfigMap)
        except NotFound:
            return None
        except (KubeError, CredentialsInvalid) as e:
            raise CommandError(self._problem(e, "get"), code=code) from e
        except UNREADABLE as e:
            raise CommandError(f"{self.where} cannot be read; check the server in the kubeconfig") from e

    def _write(self, found: _ConfigMap | None, changes: Entries) -> None:
        """Sends the changes. Raises Conflict, CommandError."""
        verb = "create" if found is None else "patch"
        try:
            if found is None:
                self._client.create(paths.config_maps(self._namespace), self._new(changes))
            else:
                path = paths.config_map(self._namespace, self._name)
                patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "data": changes}
                if found.binary:  # of binary entries only the removed ones change
                    patch["binaryData"] = {key: None for key in changes if key in found.binary}
                self._client.patch(path, msgspec.json.encode(patch))
        except (AlreadyExists, Conflict):
            raise
        except NotFound as e:
            if found is not None:  # deleted a moment ago
                raise Conflict(path=e.path) from e
            raise CommandError(
                f"there is no namespace {self._namespace}: install readygate, or name another "
                "one with --readygate-namespace"
            ) from e
        except (KubeError, CredentialsInvalid) as e:
            raise CommandError(self._problem(e, verb)) from e

    def _problem(self, error: Exception, verb: str) -> str:
        """Explains a refusal by RBAC or by the admission policy on orders, in one line with cause and remedy."""
        if isinstance(error, Forbidden):
            role = f"a RoleBinding to the ClusterRole {OPERATOR} in namespace {self._namespace}"
            return f"you may not {verb} {self.where}: ask for {role}, or another --context: {error.message}"
        return api_problem(error, f"{verb} {self.where}")

    def _new(self, changes: Entries) -> bytes:
        labels = {"app.kubernetes.io/part-of": "readygate", contract.LABEL_NAME: self._name}
        metadata = {"name": self._name, "namespace": self._namespace, "labels": labels}
        data = {key: value for key, value in changes.items() if value is not None}
        return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
