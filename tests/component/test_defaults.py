"""Each default of the configuration files is a value that a file may give."""

import importlib
from collections.abc import Iterator
from typing import Any

import msgspec

from component.settings import Section

for module in ("agent.settings", "agent.opinion.settings", "agent.checks.catalogue", "extender.config.settings"):
    importlib.import_module(module)


def sections(root: type[Section] = Section) -> Iterator[type[Section]]:
    for section in root.__subclasses__():
        yield section
        yield from sections(section)


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


FIELDS = {
    f"{section.__module__}.{section.__name__}.{field.name}": field
    for section in sections()
    for field in msgspec.structs.fields(section)
    if not field.required
}


def refused(field: msgspec.structs.FieldInfo) -> str:
    """Why a file could not give the default; "" if it could."""
    default = default_of(field)
    if default is msgspec.UNSET:
        return ""
    try:
        msgspec.convert(msgspec.to_builtins(default, builtin_types=(set, frozenset)), field.type)
    except msgspec.ValidationError as e:
        return str(e)
    return ""


def test_each_default_is_a_value_that_the_file_may_give() -> None:
    assert {name: why for name, field in FIELDS.items() if (why := refused(field))} == {}


def test_there_are_defaults_to_look_at() -> None:
    assert len(FIELDS) > 100
