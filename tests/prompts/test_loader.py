from __future__ import annotations

from importlib import resources

import pytest

from auditor.errors import ConfigError
from auditor.prompts import fill_placeholders, load_prompt
from auditor.prompts.loader import parse_prompt

FILE = "---\nid: x\nversion: 1\npurpose: p\nfields: [a]\n---\n[system]\nS {a}\n[user]\nU\n"


def test_every_template_loads() -> None:
    files = (resources.files("auditor.prompts") / "en").iterdir()
    names = [f.name.removesuffix(".md") for f in files if f.name.endswith(".md")]
    assert {"direct.structured", "direct.text", "review", "semantic.answer.text"} <= set(names)
    for name in names:
        assert load_prompt(name).id == name


def test_values_are_filled_in_one_pass() -> None:
    assert fill_placeholders("{a} {b}", {"a": "{b}", "b": "x"}) == "{b} x"
    messages = parse_prompt(FILE, "en", source="x").render(preamble="P", a='{"norms": {a}}')
    assert [m.content for m in messages] == ['P\n\nS {"norms": {a}}', "U"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("fields: [a]", "fields: [a, b]"), "declares the fields"),
        (("S {a}", "S"), "declares the fields"),
        (("[user]", "[human]"), "front matter"),
        (("version: 1\n", ""), "the front matter has fields, id, purpose"),
    ],
)
def test_a_broken_template_is_an_error_when_it_is_loaded(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_prompt(FILE.replace(*change), "en", source="prompts/en/x.md")


def test_wrong_values_are_an_error() -> None:
    with pytest.raises(ValueError, match="takes"):
        parse_prompt(FILE, "en", source="x").render(b="1")


def test_an_unknown_prompt_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no prompt 'direct' in the language 'xx'"):
        load_prompt("direct", "xx")
