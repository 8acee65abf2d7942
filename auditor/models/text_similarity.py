"""Similarity of two texts by BLEU, ROUGE-L and BERTScore; the only importer of sacrebleu, nltk and rouge-score.

Each measure is symmetric, so that the order of a question's answers does not matter, except `bleu_nltk`. BLEU itself is
not symmetric: `bleu` is the mean of both directions. BLEU and ROUGE-L are in [0, 1]; BERTScore is not rescaled and lies
in [-1, 1]. `bleu_nltk`, `rouge_l_stemmed` and `bertscore_bert_base` are those of the released program of SaGE
(LREC-COLING 2024).
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.errors import ModelSetupError
from auditor.lazy_imports import import_when_used
from auditor.metrics.answers.semantic import pairwise_consistency

if TYPE_CHECKING:
    from auditor.models.embeddings import SentenceEncoder

if not TYPE_CHECKING:
    embeddings = import_when_used("auditor.models.embeddings")
    bleu_score = import_when_used("nltk.translate.bleu_score")
    rouge_scorer = import_when_used("rouge_score.rouge_scorer")
    sacrebleu = import_when_used("sacrebleu")
else:
    import sacrebleu
    from nltk.translate import bleu_score
    from rouge_score import rouge_scorer

    from auditor.models import embeddings

PACKAGES = {"bleu": "sacrebleu", "bleu_nltk": "nltk", "rouge_l": "rouge-score", "rouge_l_stemmed": "rouge-score"}
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
TOKEN_PATTERN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
"""A word, or one character of Thai, Lao, Burmese, Khmer, Japanese or Chinese, which have no spaces between words."""
ROUNDING_ERROR = 1e-6
"""Largest difference from 1 of the BERTScore of two equal texts, whose vectors have 32 bits."""
BERT_BASE_LAYER = 9
"""Layer from which the package bert-score takes the tokens of bert-base-uncased."""
MAX_CACHED_TEXTS = 4096
"""Texts whose token vectors are cached at a time."""

TextSimilarity = Callable[[str, str], float]
ConsistencyMeasure = Callable[[Sequence[Sequence[str | None]]], list[float]]


class TokenEncoder(Protocol):
    """Encoder that returns one vector per token."""

    def encode_tokens(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Encode a text token by token.

        Returns:
            Unit vectors, shape (tokens, dimensions), and a mask, shape (tokens,): True for tokens of the text, False
            for special tokens that the encoder adds.
        """
        ...


def check_similarity_packages(names: Iterable[str]) -> None:
    """Check that the packages needed by these measures are installed.

    Raises:
        ModelSetupError: a package is not installed.
    """
    for name in names:
        package = PACKAGES.get(name)
        if package and not importlib.util.find_spec(package.replace("-", "_")):
            raise ModelSetupError(
                f"the measure '{name}' needs the package {package}.", "Run `pip install 'auditor[rivals]'`."
            )


def consistency_measures(
    names: Iterable[str], encoder: object, bertscore_model: str = ""
) -> dict[str, ConsistencyMeasure]:
    """Build a consistency function for each similarity measure (consistency: Elazar et al. 2021).

    Each function takes the answers by question, None for a missing answer, and returns for every question the mean
    similarity over all pairs of its answers: nan for fewer than two.

    Args:
        names: of the measures: `bleu`, `bleu_nltk`, `rouge_l`, `rouge_l_stemmed`, `bertscore`, `bertscore_bert_base`.
        encoder: encodes tokens for `bertscore`; not used otherwise.
        bertscore_model: name or folder of the weights for `bertscore_bert_base`; not used otherwise.

    Raises:
        ModelSetupError: a package is missing, the encoder does not return token vectors, or the weights cannot be used.
    """
    names = list(names)
    check_similarity_packages(names)
    similarities: dict[str, TextSimilarity] = {}
    for name in names:
        if name == "bertscore":
            if not hasattr(encoder, "encode_tokens"):
                raise ModelSetupError(
                    "BERTScore requires an encoder that returns a vector for each token.",
                    "Name another encoder, or remove bertscore from rivals.",
                )
            similarities[name] = bertscore(encoder)
        elif name == "bertscore_bert_base":
            similarities[name] = bertscore(_load_layer_encoder(bertscore_model))
        else:
            similarities[name] = LEXICAL_MEASURES[name]
    return {name: functools.partial(_consistency_per_question, similarity) for name, similarity in similarities.items()}


def _consistency_per_question(
    similarity: TextSimilarity, texts_by_question: Sequence[Sequence[str | None]]
) -> list[float]:
    """Mean pairwise similarity of each question's texts; nan for fewer than two texts."""
    return [
        pairwise_consistency([text for text in texts if text is not None], similarity) for texts in texts_by_question
    ]


def bleu(text_a: str, text_b: str) -> float:
    """Sentence BLEU (Papineni et al. 2002), the mean of both directions, in [0, 1].

    Computed by sacrebleu with its default smoothing and with effective order.
    """
    scores = (
        sacrebleu.sentence_bleu(hypothesis, [reference], use_effective_order=True).score
        for hypothesis, reference in ((text_a, text_b), (text_b, text_a))
    )
    return float(sum(scores)) / 200  # two scores, each from 0 to 100


def rouge_l(text_a: str, text_b: str) -> float:
    """F measure of ROUGE-L (Lin 2004), in [0, 1], computed by rouge-score without stemming.

    Words are those of any script, where rouge-score itself counts the letters a to z and digits only, so that two equal
    texts in another script would score 0.
    """
    return float(_rouge_scorer().score(text_a, text_b)["rougeL"].fmeasure)


class _UnicodeTokenizer:
    """Tokenizer for rouge-score: words in lower case; in scripts without spaces between words, single characters."""

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text, in order."""
        return TOKEN_PATTERN.findall(text.casefold())


@functools.cache
def _rouge_scorer():  # type: ignore[no-untyped-def]
    """rouge-score's scorer for ROUGE-L without stemming, created once."""
    return rouge_scorer.RougeScorer(["rougeL"], use_stemmer=False, tokenizer=_UnicodeTokenizer())


def bleu_nltk(reference: str, hypothesis: str) -> float:
    """Sentence BLEU-4 of nltk with smoothing method 1, in [0, 1]; not symmetric.

    Words are separated by white space. The released program of SaGE takes the earlier answer as the reference.
    """
    return float(
        bleu_score.sentence_bleu(
            [reference.split()], hypothesis.split(), smoothing_function=bleu_score.SmoothingFunction().method1
        )
    )


def rouge_l_stemmed(text_a: str, text_b: str) -> float:
    """F measure of ROUGE-L by rouge-score's own tokenizer and Porter's stemmer, in [0, 1]; for English texts only."""
    return float(_stemming_scorer().score(text_a, text_b)["rougeL"].fmeasure)


@functools.cache
def _stemming_scorer():  # type: ignore[no-untyped-def]
    """rouge-score's scorer for ROUGE-L with its default tokenizer and stemming, created once."""
    return rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)


LEXICAL_MEASURES: dict[str, TextSimilarity] = {
    "bleu": bleu,
    "bleu_nltk": bleu_nltk,
    "rouge_l": rouge_l,
    "rouge_l_stemmed": rouge_l_stemmed,
}


@dataclass(frozen=True)
class _LayerEncoder:
    """Encoder that returns one vector per token, taken from one layer."""

    encoder: SentenceEncoder
    layer: int

    def encode_tokens(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Encode a text token by token; see `SentenceEncoder.encode_layer`."""
        return self.encoder.encode_layer(text, self.layer)


@functools.lru_cache(maxsize=1)
def _load_layer_encoder(model: str) -> _LayerEncoder:
    """Load the weights for BERTScore as published; ModelSetupError if they have too few layers or cannot be loaded."""
    encoder = _LayerEncoder(embeddings.load_encoder(model), BERT_BASE_LAYER)
    encoder.encode_tokens("")  # raises at once where a layer is missing
    return encoder


def bertscore(encoder: TokenEncoder) -> TextSimilarity:
    """Build the BERTScore F1 of two texts (Zhang et al., ICLR 2020, equations 1 and 2) from vectors of their tokens.

    No weights by inverse document frequency and no rescaling. As in the authors' program, a token may be matched to a
    special token of the encoder, but special tokens are left out of the averages. The score of a text without tokens of
    its own is nan.
    """
    encode_tokens = functools.lru_cache(MAX_CACHED_TEXTS)(encoder.encode_tokens)

    def similarity(left: str, right: str) -> float:
        """BERTScore F1 of two texts; nan if one has no tokens of its own."""
        (vectors_a, is_word_a), (vectors_b, is_word_b) = encode_tokens(left), encode_tokens(right)
        if not is_word_a.any() or not is_word_b.any():
            return float("nan")
        # Shape (tokens of the left text, tokens of the right text). Each token is matched to the most similar one of
        # the other text; `is_word_…` is False for special tokens.
        cosines = vectors_a @ vectors_b.T
        precision, recall = cosines.max(axis=1)[is_word_a].mean(), cosines.max(axis=0)[is_word_b].mean()
        total = float(precision + recall)
        score = 2 * float(precision * recall) / total if total else 0.0
        return 1.0 if score > 1 - ROUNDING_ERROR else score

    return similarity
