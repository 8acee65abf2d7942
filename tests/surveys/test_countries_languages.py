from __future__ import annotations

import pytest

from auditor.surveys.countries import native_languages


@pytest.mark.parametrize(
    ("country", "languages"),
    [
        ("Japan", ("ja",)),
        ("Egypt", ("ar",)),
        ("Britain", ("en",)),
        ("Mexico", ("es",)),
        ("Brazil", ("pt",)),
        ("Kenya", ("sw",)),
        ("Switzerland", ("de", "fr")),
        ("Canada", ("en", "fr")),
        ("Nigeria", ("en",)),
        ("Pakistan", ()),
        ("Nowhere", ()),
    ],
)
def test_a_country_s_main_languages(country: str, languages: tuple[str, ...]) -> None:
    assert native_languages(country) == languages
