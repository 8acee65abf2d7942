"""The keys of a configuration as its sections declare them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from auditor.config import AuditConfig, Probes


class ConfigField(NamedTuple):
    section: type[BaseModel]
    name: str
    info: FieldInfo


def iterate_fields() -> Iterator[ConfigField]:
    """Yield every key of the configuration, section by section."""
    sections: list[type[BaseModel]] = []
    _collect_sections(AuditConfig, sections)
    for section in sections:
        for name, info in section.model_fields.items():
            yield ConfigField(section, name, info)


def _collect_sections(annotation: Any, sections: list[type[BaseModel]]) -> None:
    """Append the sections that a type consists of, each once."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in sections:
        sections.append(annotation)
        for info in annotation.model_fields.values():
            _collect_sections(info.annotation, sections)
        for section in annotation.list_further_fields().values() if annotation is Probes else ():
            _collect_sections(section, sections)
    for part in get_args(annotation):
        _collect_sections(part, sections)
