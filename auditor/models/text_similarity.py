"""Other measures of how alike two texts are: BLEU, ROUGE-L and BERTScore; the door to the packages behind them.

Each measure is symmetric, so that the order of a question's answers changes nothing: BLEU, which is not, is the mean of
both directions. All are in [0, 1], BERTScore in [-1, 1] as it is without its rescaling.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ModelSetupError
from auditor.metrics.semantic import pairwise_consistency

PACKAGES = {"bleu": "sacrebleu", "rouge_l": "rouge-score"}
MAX_CACHED_TEXTS = 4096
"""Texts whose token vectors are kept at a time."""

TextSimilarity = Callable[[str, str], float]
ConsistencyMeasure = Callable[[Sequence[Sequence[str | None]]], list[float]]


class TokenEncoder(Protocol):
    """An encoder that gives a vector for each token."""

    def encode_tokens(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Unit vectors of a text's tokens, and which of them are words and not marks of the encoder."""
        ...


def check_similarity_packages(names: Iterable[str]) -> None:
    """Make sure that the packages behind the measures are installed.

    Raises:
        ModelSetupError: one is not.
    """
    for name in names:
        package = PACKAGES.get(name)
        if package and not importlib.util.find_spec(package.replace("-", "_")):
            raise ModelSetupError(
                f"the measure '{name}' needs the package {package}.", "Run `pip install 'auditor[rivals]'`."
            )


def consistency_measures(names: Iterable[str], encoder: object) -> dict[str, ConsistencyMeasure]:
    """Elazar's consistency by each measure: for the texts of every question the mean over pairs, nan below two texts.

    Raises:
        ModelSetupError: a package is missing, or the encoder gives no vectors of tokens.
    """
    names = list(names)
    check_similarity_packages(names)
    found: dict[str, TextSimilarity] = {}
    for name in names:
        if name == "bertscore":
            if not hasattr(encoder, "encode_tokens"):
                raise ModelSetupError("BERTScore needs an encoder that gives vectors of tokens.", "Name another.")
            found[name] = bertscore(encoder)
        else:
            found[name] = bleu if name == "bleu" else rouge_l
    return {name: functools.partial(_consistency_per_question, similarity) for name, similarity in found.items()}


def _consistency_per_question(
    similarity: TextSimilarity, texts_by_question: Sequence[Sequence[str | None]]
) -> list[float]:
    return [pairwise_consistency([t for t in group if t is not None], similarity) for group in texts_by_question]


def bleu(left: str, right: str) -> float:
    """Sentence BLEU (Papineni et al. 2002) by sacrebleu, with its smoothing and effective order, both ways."""
    import sacrebleu

    scores = (
        sacrebleu.sentence_bleu(a, [b], use_effective_order=True).score for a, b in ((left, right), (right, left))
    )
    return float(sum(scores)) / 200


def rouge_l(left: str, right: str) -> float:
    """F measure of ROUGE-L (Lin 2004) by rouge-score, without stemming."""
    return float(_rouge_scorer().score(left, right)["rougeL"].fmeasure)


@functools.cache
def _rouge_scorer():  # type: ignore[no-untyped-def]
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(["rougeL"], use_stemmer=False)


def bertscore(encoder: TokenEncoder) -> TextSimilarity:
    """F1 of BERTScore (Zhang et al., ICLR 2020, equations 1 and 2) with the encoder's last layer.

    No weights by rarity and no rescaling. As in the authors' program, the encoder's own marks can be matched, but are
    not averaged over.
    """
    tokens = functools.lru_cache(MAX_CACHED_TEXTS)(encoder.encode_tokens)

    def similarity(left: str, right: str) -> float:
        (a, word_a), (b, word_b) = tokens(left), tokens(right)
        if not word_a.any() or not word_b.any():
            return float("nan")
        cosines = a @ b.T
        precision, recall = cosines.max(axis=1)[word_a].mean(), cosines.max(axis=0)[word_b].mean()
        total = float(precision + recall)
        return 2 * float(precision * recall) / total if total else 0.0

    return similarity
