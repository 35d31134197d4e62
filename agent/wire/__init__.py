"""Kubernetes JSON to `agent.model` and back.

    pod      Pod: spec and metadata, read only
    status   PodStatus: read, and written with the fields that Go writes

Guaranteed: fields we do not model survive a merge (`PodStatus.extra`); a wrong type raises msgspec.DecodeError and
nothing else. Keys are spelled here and nowhere else.

Imported by `pods`, `status` and `modes`; imports `model` and `kube` only.
"""
