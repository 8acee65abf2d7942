"""Names of the measures of consistency, and of the texts that they compare."""

from __future__ import annotations

from auditor.probes.semantic.records import QUESTION_TEXT, RELEASED_MIX

SCORED_TEXT_LABELS = {
    "rot": "rules of thumb",
    "answer": "answers",
    "mix": "rules of thumb and answers",
    RELEASED_MIX: "rules of thumb (0.2) and answers (0.8)",
    QUESTION_TEXT: "questions only",
}
MEASURE_LABELS = {
    "sage": "SaGE",
    "sge": "SGE",
    "bleu": "BLEU",
    "bleu_nltk": "BLEU (nltk)",
    "rouge_l": "ROUGE-L",
    "rouge_l_stemmed": "ROUGE-L (stemmed)",
    "bertscore": "BERTScore",
    "bertscore_bert_base": "BERTScore (bert-base-uncased)",
}


def name_metric(metric: str) -> str:
    """Name a measure of similarity, such as "SaGE (α = 1)" for `sage:alpha=1`."""
    name, _, alpha = metric.partition(":alpha=")
    label = MEASURE_LABELS.get(name, name)
    return f"{label} (α = {alpha})" if alpha else label


def name_measure(metric: str, text: str) -> str:
    """Name a measure of similarity and the texts that it compares, such as "cosine of rules of thumb"."""
    return f"{name_metric(metric)} of {SCORED_TEXT_LABELS.get(text, text)}"
