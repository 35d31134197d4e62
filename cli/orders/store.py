"""The ConfigMap of the orders, with the user's own rights.

Each write names the version it was made for; if somebody else was quicker it is made anew from what is there then. Only
the one entry is sent, so no other is lost or mended.
"""

from collections.abc import Callable, Mapping

import msgspec

from cli.shared.errors import CANNOT_KNOW, CommandError, api_problem
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
        """None is no text: kubectl keeps apart what is not UTF-8."""
        return {**dict.fromkeys(self.binary or ()), **(self.data or {})}


class Store:
    """One ConfigMap."""

    def __init__(self, client: Client, namespace: str, name: str, *, tries: int = TRIES) -> None:
        self._tries = tries
        self._client = client
        self._namespace = namespace
        self._name = name
        self.where = f"configmap {name} in namespace {namespace}"

    def read(self) -> Entries:
        """Its entries; none if it is not there. Raises CommandError."""
        found = self._get(code=CANNOT_KNOW)
        return {} if found is None else found.entries

    def change(self, change: Change) -> Entries:
        """Writes what `change` makes of the entries: id -> value, None takes one out. Gives that back. It is called
        again when somebody else was quicker. Raises CommandError."""
        for _ in range(self._tries):
            found = self._get(code=1)
            entries = {} if found is None else found.entries
            changes = change(entries)
            if not changes:
                return changes
            if len(entries.keys() | {key for key, value in changes.items() if value is not None}) > ENTRIES_MAX:
                raise CommandError(f"{self.where} has {len(entries)} orders, of {ENTRIES_MAX} that are read; lift some")
            try:
                self._write(found, changes)
            except Conflict:
                continue
            return changes
        raise CommandError(f"others write {self.where} all the time; try again")

    def _get(self, *, code: int) -> _ConfigMap | None:
        path = paths.config_map(self._namespace, self._name)
        try:
            return msgspec.json.decode(self._client.get(path), type=_ConfigMap)
        except NotFound:
            return None
        except (KubeError, CredentialsInvalid) as e:
            raise CommandError(self._problem(e, "get"), code=code) from e
        except UNREADABLE as e:
            raise CommandError(f"{self.where} cannot be read; is the kubeconfig's server an API server?") from e

    def _write(self, found: _ConfigMap | None, changes: Entries) -> None:
        """Raises Conflict."""
        verb = "create" if found is None else "patch"
        try:
            if found is None:
                self._client.create(paths.config_maps(self._namespace), self._new(changes))
            else:
                path = paths.config_map(self._namespace, self._name)
                patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "data": changes}
                if found.binary:  # in it nothing but what is taken out changes
                    patch["binaryData"] = {key: None for key in changes if key in found.binary}
                self._client.patch(path, msgspec.json.encode(patch))
        except (AlreadyExists, Conflict):
            raise
        except NotFound as e:
            if found is not None:  # deleted a moment ago
                raise Conflict(path=e.path) from e
            raise CommandError(
                f"there is no namespace {self._namespace}: is readygate deployed in this cluster, or elsewhere "
                "(--readygate-namespace)?"
            ) from e
        except (KubeError, CredentialsInvalid) as e:
            raise CommandError(self._problem(e, verb)) from e

    def _problem(self, error: Exception, verb: str) -> str:
        """One line with the cause and the remedy. RBAC refuses, or the admission policy on the orders does."""
        if isinstance(error, Forbidden):
            role = f"a RoleBinding to the ClusterRole {OPERATOR} in namespace {self._namespace}"
            return f"you may not {verb} {self.where}: ask for {role}, or another --context: {error.message}"
        return api_problem(error, f"{verb} {self.where}")

    def _new(self, changes: Entries) -> bytes:
        labels = {"app.kubernetes.io/part-of": "readygate", contract.LABEL_NAME: self._name}
        metadata = {"name": self._name, "namespace": self._namespace, "labels": labels}
        data = {key: value for key, value in changes.items() if value is not None}
        return msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
