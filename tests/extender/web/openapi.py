"""docs/openapi.yaml as a test reads it: which paths there are, and whether an answer is what it says."""

import re
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

DOCUMENT = yaml.safe_load((Path(__file__).parents[3] / "docs" / "openapi.yaml").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]
URI = "urn:openapi"


def strict(schema):
    """The document lets later releases say more; an answer of this one has what stands there, and no more."""
    if isinstance(schema, dict):
        closed = {"additionalProperties": False} if schema.get("type") == "object" else {}
        return {key: strict(value) for key, value in schema.items()} | closed
    return [strict(one) for one in schema] if isinstance(schema, list) else schema


def _registry():
    contents = {"components": {"schemas": {name: strict(schema) for name, schema in SCHEMAS.items()}}}
    return Registry().with_resource(URI, Resource(contents, DRAFT202012))


def validator(name):
    return Draft202012Validator({"$ref": f"{URI}#/components/schemas/{name}"}, registry=_registry())


VALIDATORS = {name: validator(name) for name in SCHEMAS}


def operation_of(path):
    """(template, operation) of the path without its query."""
    for template, item in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path.partition("?")[0]):
            return template, item["get"]
    return None, None


def check(path, response):
    """The template of the path. Raises AssertionError for an answer that the document does not have."""
    template, operation = operation_of(path)
    described = {} if operation is None else operation["responses"]
    found = described.get(str(response.status_code))
    assert found is not None, f"{path}: {response.status_code} is not in the document"
    if "content" not in found:
        assert (b"", None) == (response.data, response.headers.get("Content-Type"))
        return template
    ((content_type, content),) = found["content"].items()
    assert content_type == response.headers["Content-Type"]
    name = content["schema"]["$ref"].rpartition("/")[2]
    errors = [f"{path}: {error.json_path}: {error.message}" for error in VALIDATORS[name].iter_errors(response.json)]
    assert errors == []
    return template
