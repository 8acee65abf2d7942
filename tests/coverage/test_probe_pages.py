"""The sentences of all probes of models without any effect are one family, and rarely false."""

from __future__ import annotations

import numpy as np

from auditor.config.installed_probes import list_folder_probes
from auditor.probe_interface import Headline
from benchmarks.coverage.probe_pages import NULL_HEADLINES, count_false_pages, list_false_sentences


def test_every_probe_of_the_program_is_simulated() -> None:
    assert set(NULL_HEADLINES) == {probe.name for probe in list_folder_probes()}


def test_a_page_is_false_if_any_claim_holds_among_all() -> None:
    claims = {
        "one": lambda rng: Headline("x", 0.011),
        "two": lambda rng: Headline("x", 0.015),
        "three": lambda rng: Headline("cannot be told"),
        "four": lambda rng: None,
    }
    assert list_false_sentences(1, claims) == ["one", "two"]
    assert list_false_sentences(1, claims | {"five": lambda rng: Headline("x", 0.04)}) == []  # five times 0.011
    assert count_false_pages(3, {"never": lambda rng: None}) == 0
    uniform = {name: lambda rng: Headline("x", float(rng.random())) for name in "abc"}
    assert 0.02 < count_false_pages(1000, uniform) / 1000 < 0.08


def test_probes_that_say_nothing_without_an_effect_are_counted_in_the_family() -> None:
    """Real probes claim something only where it is significant; a family of claims alone would have 14% false pages."""

    def speak_if_significant(rng: np.random.Generator) -> Headline | None:
        p_value = float(rng.random())
        return Headline("x", p_value) if p_value <= 0.05 else None

    n_false = count_false_pages(1000, dict.fromkeys("abc", speak_if_significant))
    assert 0.02 < n_false / 1000 < 0.08


def test_few_pages_of_honest_models_say_something_false() -> None:
    assert count_false_pages(6) <= 2


def test_sentences_are_those_of_reports() -> None:
    rng = np.random.default_rng(2)
    lines = [write(rng) for write in NULL_HEADLINES.values()]
    assert any(line is not None and line.sentence.endswith("is not known.") for line in lines)
