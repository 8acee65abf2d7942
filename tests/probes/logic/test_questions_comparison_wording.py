from __future__ import annotations

import pytest

from auditor.domain import LANGUAGES
from auditor.probes.logic.questions import find_criterion, load_comparison_wording, load_english_criteria
from auditor.prompts import load_prompt

CRITERIA = {"acceptability", "preference", "relevance", "temporal", "causal"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_can_ask_everything_in_ten_wordings(language: str) -> None:
    words = load_comparison_wording(language)
    assert len(set(words.frames)) == 10
    assert all(frame.count("{what}") == 1 for frame in words.frames)
    assert set(words.criteria) == CRITERIA
    asked = [form for c in words.criteria.values() for form in (c.standard, c.negated)]
    assert len(set(asked)) == 2 * len(CRITERIA)
    assert all(c.context.count("{context}") == 1 for c in words.criteria.values())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", ["structured", "cot", "letter"])
def test_a_template_has_what_the_english_one_has(language: str, form: str) -> None:
    prompt, english = load_prompt(f"logic.{form}", language), load_prompt(f"logic.{form}")
    assert prompt.fields == english.fields
    assert language == "en" or prompt.system != english.system
    for name in ('"answer"', '"A"', '"B"', '"TIE"') if form != "letter" else ():
        assert name in prompt.system
    assert prompt.user == english.user


def test_criteria_in_english_only_are_found_where_a_language_lacks_them() -> None:
    english_only = load_english_criteria()
    assert english_only.keys() == {"coherence"}
    for name, criterion in english_only.items():
        assert find_criterion(name, "ja") == criterion
        assert criterion.context.count("{context}") == 1
        assert criterion.standard != criterion.negated
    assert find_criterion("causal", "ja") == load_comparison_wording("ja").criteria["causal"]


@pytest.mark.parametrize("form", ["structured", "cot"])
def test_the_form_of_the_paper_has_no_tie_and_no_limit(form: str) -> None:
    prompt, standard = load_prompt(f"logic.paper.{form}"), load_prompt(f"logic.{form}")
    assert prompt.user == standard.user
    assert prompt.fields == standard.fields - {"max_words"}
    assert "TIE" in standard.system
    assert "TIE" not in prompt.system
