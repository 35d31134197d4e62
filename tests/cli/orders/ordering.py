"""Helpers for tests of orders: run a command, read and write the ConfigMap."""

import json

from cli.__main__ import main
from kube.times import parse_time

NAMESPACE = "readygate-system"
NAME = "readygate-orders"
WALL = parse_time("2026-11-22T12:00:00Z")


def ordered(api):
    found = api.get("ConfigMap", NAME, NAMESPACE)
    return {} if found is None else {id_: json.loads(value) for id_, value in found["data"].items()}


def put(api, **data):
    api.put({"kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE}, "data": data})


def run(capsys, *argv):
    """(exit code, standard output, standard error)."""
    code = main(list(argv))
    return code, *capsys.readouterr()
