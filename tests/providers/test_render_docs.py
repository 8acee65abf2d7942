"""docs/providers.md says what the tests of providers show, and what `auditor init` writes."""

from __future__ import annotations

import tomllib

import pytest

from auditor.config.providers import PROVIDER_BY_NAME, Provider
from tests.providers.render_docs import PAGE, load_pages, page_with, render
from tests.support.docs_blocks import blocks

MIN_DOCUMENTED_PROVIDERS = 21


def test_the_page_is_up_to_date() -> None:
    expected_page = page_with(render())
    assert PAGE.read_text(encoding="utf-8") == expected_page, "python -m tests.providers.render_docs"


def test_the_page_has_every_provider_of_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(PROVIDER_BY_NAME.values()) >= MIN_DOCUMENTED_PROVIDERS
    for setup in PROVIDER_BY_NAME.values():
        assert f"\n### {setup.title}\n" in page


def test_the_lines_of_each_provider_are_those_that_are_tested() -> None:
    entries = [tomllib.loads(block.text)["models"] for block in blocks(PAGE, "toml")]
    pages = load_pages()
    assert len(entries) == len(pages)
    for [entry], page in zip(entries, pages, strict=True):
        tested = page.section.model_dump(exclude_unset=True)
        assert entry == {**tested, "name": page.setup.name} or entry == {
            **{key: value for key, value in tested.items() if key != "api_key"},
            "name": page.setup.name,
        }


@pytest.mark.parametrize("setup", PROVIDER_BY_NAME.values(), ids=lambda setup: setup.name)
def test_a_provider_is_tested_as_init_writes_it(setup: Provider) -> None:
    [page] = [page for page in load_pages() if page.setup is setup]
    section = page.section
    assert section.model.split("/", 1)[0] == setup.prefix
    assert setup.key_variable is None or page.dialect.key_variable == setup.key_variable
    assert set(setup.params) <= set(section.params)
    assert setup.needs_address or section.api_base == setup.api_base
