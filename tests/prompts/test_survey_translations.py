from __future__ import annotations

from pathlib import Path

import pytest

from auditor.agents.localization import localized_question
from auditor.domain import LANGUAGES
from auditor.domain.terms import COUNTRIES_BY_LANGUAGE
from auditor.prompts.survey_translations import load_translations, translate_country
from auditor.surveys import builtin_surveys, country_code, load_survey

OTHERS = [code for code in LANGUAGES if code != "en"]


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("name", builtin_surveys())
def test_every_survey_can_be_asked(language: str, name: str) -> None:
    survey, words = load_survey(name), load_translations(language)
    assert set(survey.topics) <= set(words.topics)
    asked = localized_question(survey, language)
    assert asked.wording.count("{topic}") == asked.wording.count("{country}") == 1
    assert asked.wording != survey.wording
    assert set(asked.scale).isdisjoint(survey.scale)
    assert len(set(asked.scale)) == 2


@pytest.mark.parametrize("language", OTHERS)
def test_no_topic_is_left_in_english_or_there_twice(language: str) -> None:
    topics = load_translations(language).topics
    same = {label for label, wording in topics.items() if label == wording}
    assert same <= {"prostitution", "abortion", "divorce"}
    assert all(wording.strip() for wording in topics.values())
    assert len(set(topics.values())) >= len(topics) - 1


def test_every_main_language_has_prompts_and_every_code_is_a_country() -> None:
    assert {file.stem for file in (Path(__file__).parent / "languages").iterdir()} == set(LANGUAGES)
    for language, codes in COUNTRIES_BY_LANGUAGE.items():
        assert len(set(codes)) == len(codes), language
        assert [c for c in codes if country_code(c) != c] == [], language


@pytest.mark.parametrize(
    ("code", "language", "name"),
    [("JPN", "ja", "日本"), ("RUS", "ru", "Россия"), ("DEU", "de", "Deutschland"), ("XKX", "de", None)],
)
def test_a_country_in_a_language(code: str, language: str, name: str | None) -> None:
    assert translate_country(code, language) == name
