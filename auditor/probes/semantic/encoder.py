"""The encoder of the answers, and scores of groups of texts by every measure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditor.agents.run_context import TextEncoder
from auditor.config.probe_section import ProbeEncoder
from auditor.metrics.answers.semantic import EntropyVariant, entropy_of_similarities
from auditor.models.text_similarity import check_similarity_packages
from auditor.probes.semantic.records import (
    QUESTION_TEXT,
    RELEASED_MIX,
    RELEASED_RULE_WEIGHT,
    SemanticScoringSettings,
)
from auditor.probes.semantic.settings import SemanticProbe

if TYPE_CHECKING:
    from auditor.config import AuditConfig


def stack_vectors(
    groups: Sequence[Sequence[str | None]], vectors: dict[str, NDArray[np.float32]], group_size: int
) -> NDArray[np.float32]:
    """Stack the vectors of groups of texts into shape (groups, group_size, dimensions); nan for missing texts."""
    dimensions = len(next(iter(vectors.values()))) if vectors else 1
    rows = np.full((len(groups), group_size, dimensions), np.nan, dtype=np.float32)
    for i, group in enumerate(groups):
        for j, text in enumerate(group):
            if text is not None:
                rows[i, j] = vectors[text]
    return rows


def find_encoder(config: AuditConfig) -> ProbeEncoder | None:
    """Find the encoder; None if nothing is to be encoded. Its check includes the packages of other measures."""
    probe = config.probes.find(SemanticProbe)
    if probe is None or probe.paraphrases == 0:
        return None
    name = probe.encoder or config.embedding.model

    def check() -> None:
        from auditor.models.embeddings import check_encoders  # loads httpx (0.2 s)

        check_encoders(name, probe.used_bertscore_model)
        check_similarity_packages(probe.rivals)

    @functools.cache
    def load() -> TextEncoder:
        from auditor.models.embeddings import load_encoder

        return load_encoder(name)

    return ProbeEncoder(name, check, load)


Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
TextGrid = list[list[str | None]]
ConsistencyMeasure = Callable[[Sequence[Sequence[str | None]]], list[float]]
"""Consistency of the texts of each group; nan with fewer than two."""


def stack_text_kinds(
    answers: TextGrid,
    rules: TextGrid,
    vectors_by_text: dict[str, NDArray[np.float32]],
    settings: SemanticScoringSettings,
    group_size: int,
) -> dict[str, Floats32]:
    """Vectors of the texts to score, shape (groups, group_size, dimensions), nan for a missing text.

    Keys are `answer`; `rot`, if rules are measured or there are any; then also `RELEASED_MIX`; and `mix`, if measured.
    """
    vectors_by_kind = {"answer": stack_vectors(answers, vectors_by_text, group_size)}
    has_rules = any(text is not None for texts in rules for text in texts)
    if has_rules or settings.measured != "answer":
        vectors_by_kind["rot"] = stack_vectors(rules, vectors_by_text, group_size)
    form_texts = {form.text for form in settings.forms} if has_rules else set()
    for kind, weight in (("mix", settings.rot_weight), (RELEASED_MIX, RELEASED_RULE_WEIGHT)):
        if kind == settings.measured or kind in form_texts:
            vectors_by_kind[kind] = mix_vectors(vectors_by_kind["rot"], vectors_by_kind["answer"], weight)
    return vectors_by_kind


def mix_vectors(rules: Floats32, answers: Floats32, weight: float) -> Floats32:
    """Vectors whose cosines are `weight` * cosine of the rules + (1 - `weight`) * cosine of the answers."""
    parts = (rules * np.float32(weight**0.5), answers * np.float32((1 - weight) ** 0.5))
    return np.concatenate(parts, axis=-1).astype(np.float32)


def score_similarities(similarities: Floats, text_kind: str, settings: SemanticScoringSettings) -> dict[str, Floats]:
    """Scores of each group by metric: the audit's own measure, the mean cosine, and the published forms.

    Of `RELEASED_MIX` there are only the forms. Scores are nan with fewer than two texts.

    Args:
        similarities: cosines, shape (groups, texts, texts); nan for a missing text.
        text_kind: `rot`, `answer`, `mix`, `RELEASED_MIX` or `QUESTION_TEXT`, which has the forms of answers.
    """
    form_kind = "answer" if text_kind == QUESTION_TEXT else text_kind
    alpha_by_metric = {form.metric: form.alpha for form in settings.forms if form.text == form_kind}
    scores: dict[str, Floats] = {}
    if text_kind != RELEASED_MIX:
        alpha_by_metric.setdefault(settings.variant, settings.alpha)
        first, second = np.triu_indices(similarities.shape[-1], 1)
        pairs = similarities[:, first, second]
        n_pairs = np.isfinite(pairs).sum(axis=1)
        scores["cosine"] = np.where(n_pairs > 0, np.nansum(pairs, axis=1) / np.maximum(n_pairs, 1), np.nan)
    for metric, alpha in alpha_by_metric.items():
        scores[metric] = entropy_of_similarities(similarities, entropy_variant(settings), alpha or settings.alpha)
    return scores


def score_measures(
    texts_by_kind: Mapping[str, TextGrid], measures: Mapping[str, ConsistencyMeasure]
) -> dict[tuple[str, str], list[float]]:
    """Consistency of each group of texts by the further measures, by kind of text and name of the measure."""
    return {(kind, name): measure(texts) for kind, texts in texts_by_kind.items() for name, measure in measures.items()}


def entropy_variant(settings: SemanticScoringSettings) -> EntropyVariant:
    """Variant of the entropy to compute; every metric other than `sge` uses `sage`."""
    return "sge" if settings.variant == "sge" else "sage"
