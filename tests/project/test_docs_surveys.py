"""Configs, mappings and commands in docs/surveys.md match the program."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic import BaseModel
from typer.main import get_command

from auditor.cli.surveys import app
from auditor.config import AuditConfig
from auditor.surveys import builtin_groupings, builtin_mappings, load_mapping
from auditor.surveys.mapping import (
    AnswerChoice,
    GroupBand,
    GroupCodes,
    GroupDimension,
    MappingColumns,
    NonresponseKind,
    SurveyMapping,
    SurveyScale,
    TopicColumn,
)

TEXT = (Path(__file__).parents[2] / "docs" / "surveys.md").read_text(encoding="utf-8")
BASE = {"name": "a", "survey": {"source": "x"}, "judges": [], "models": [{"name": "m", "model": "openai/gpt-4o"}]}


def blocks(*, of_config: bool) -> list[str]:
    """Contents of the page's TOML blocks: those that are part of an audit's configuration, or the others."""
    matches = re.findall(r"(<!-- part of audit\.toml -->\n)?^```toml\n(.*?)^```", TEXT, flags=re.DOTALL | re.MULTILINE)
    return [block for mark, block in matches if bool(mark) is of_config]


def test_every_config_section_loads() -> None:
    sections = blocks(of_config=True)
    assert len(sections) >= 4
    for section in sections:
        AuditConfig.model_validate(BASE | tomllib.loads(section))


def test_the_mappings_load(tmp_path: Path) -> None:
    mappings = []
    for number, mapping in enumerate(blocks(of_config=False)):
        path = tmp_path / f"{number}.toml"
        path.write_text(mapping, encoding="utf-8")
        mappings.append(load_mapping(path))
    assert [set(mapping.topic_by_column.values()) for mapping in mappings] == [
        {"divorce", "suicide"}, {"gay men and lesbians"}, {"divorce", "trust in people"},
    ]  # fmt: skip


def test_every_key_of_a_mapping_is_explained() -> None:
    sections: list[type[BaseModel]] = [
        SurveyMapping, MappingColumns, SurveyScale, AnswerChoice, NonresponseKind, GroupDimension, GroupCodes,
        GroupBand, TopicColumn,
    ]  # fmt: skip
    keys = {field.alias or name for section in sections for name, field in section.model_fields.items()}
    reference = TEXT[TEXT.index("Keys above the first table") : TEXT.index("Labels are compared")]
    tables = {"columns", "countries", "keep", "topics", "answers", "choices", "nonresponse"}
    assert {key for key in keys - tables - {"groups"} if f"`{key}`" not in reference} == {"asked"}
    assert "`asked = false`" in reference
    assert all(f"`[{table}]`" in reference for table in tables)


def test_commands_mappings_and_groupings_are_documented() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    shown_commands = re.findall(r"auditor surveys (\w+)", TEXT)
    assert set(shown_commands) <= set(commands)
    assert len(shown_commands) >= 5
    for name in (*builtin_mappings(), *builtin_groupings()):
        assert f"`{name}`" in TEXT, name
