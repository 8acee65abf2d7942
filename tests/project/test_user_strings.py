"""The sample of user-visible strings is drawn by a seed, from every kind."""

from __future__ import annotations

from tests.project.user_strings import MARK, SAMPLE_SIZE, collect_strings, draw_sample


def test_the_sample_has_every_kind_and_depends_only_on_the_seed() -> None:
    strings = collect_strings()
    assert all(len(texts) > SAMPLE_SIZE for texts in strings.values()), {k: len(texts) for k, texts in strings.items()}
    sample = draw_sample(strings, 1)
    assert (len(sample), len(set(sample))) == (SAMPLE_SIZE, SAMPLE_SIZE)
    assert {kind for kind, _ in sample} == set(strings)
    assert draw_sample(strings, 1) == sample != draw_sample(strings, 2)
    assert any("Judges reviewed each trace without knowing its author" in text for text in strings["report"])
    assert any(text.startswith(f"auditor run --dry-run{MARK}Show the calls") for text in strings["help"])
