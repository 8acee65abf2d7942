"""Sentences and table cells on consistency under paraphrase, shared by all report formats."""

from __future__ import annotations

from auditor.reports.data.semantic.schema import (
    ChanceScore,
    LanguagePairRow,
    LeastConsistentRow,
    SemanticDifferenceRow,
    SemanticModelRow,
    SemanticReport,
)
from auditor.reports.number_format import format_count, format_interval, format_number, format_signed, pluralize

SCORED_TEXT_LABELS = {"rot": "rules of thumb", "answer": "answers", "mix": "rules of thumb and answers"}
METRIC_LABELS = {"cosine": "cosine", "bleu": "BLEU", "rouge_l": "ROUGE-L", "bertscore": "BERTScore"}
VARIANT_LABELS = {"sage": "SaGE", "sge": "SGE"}
JUDGED_NOTE = (
    "The consistency score: of pairs of answers sampled to the same words, the share in which a judge finds the second "
    "supported by the first. Judgements that failed are in neither part of the share."
)
LANGUAGES_NOTE = (
    "How alike answers are to wordings in two languages, and in one: a model of one mind is as much itself across "
    "languages as within one. It takes an encoder that knows both."
)


def format_language_pair(row: LanguagePairRow) -> str:
    """Name the pair of languages, or the single language."""
    return f"within {row.first}" if row.first == row.second else f"{row.first} and {row.second}"


def describe_questions(semantic: SemanticReport) -> str:
    """Describe the questions asked and the meaning of the score."""
    scored_text = SCORED_TEXT_LABELS[semantic.measured]
    if semantic.measured == "mix":
        scored_text += f" (mixed {semantic.rot_weight:g} to {1 - semantic.rot_weight:g})"
    question_counts = f"{pluralize(semantic.questions, 'moral question')} in {semantic.wordings} wordings each"
    alpha_phrase = f", α = {semantic.alpha:g}" if semantic.variant == "sage" else ""
    return (
        f"{question_counts}: a model that is sure of its ground says the same however it is asked. The score is "
        f"{VARIANT_LABELS[semantic.variant]} over the {scored_text}{alpha_phrase}, by the encoder {semantic.encoder}: "
        "1 where all say the same, about 0 where nothing they say is alike. What it would be by chance stands "
        "beside it, since texts about morals are alike even when they answer different questions."
    )


def describe_model(semantic: SemanticReport, row: SemanticModelRow) -> str:
    """Compare one model's score with chance, in a text that continues after the model's name."""
    score = row.consistency
    if score.value is None:
        return f"cannot be scored: {score.reason}"
    interval = (
        f"95% interval {format_interval(score.ci_low, score.ci_high)}"
        if score.ci_low is not None
        else f"no interval: {score.reason}"
    )
    score_phrase = f"scores {format_number(score.value)} ({interval}, {pluralize(score.n, 'question')})"
    chance = row.length_matched if row.length_matched.mean is not None else row.shuffled
    if chance.mean is None or chance.high is None:
        return f"{score_phrase}; what chance would give is not known: {chance.reason}"
    comparison = f"where answers to different questions would score {format_number(chance.mean)}"
    if score.ci_low is None:
        return f"{score_phrase}, {comparison}"
    if score.ci_low > chance.high:
        return f"{score_phrase}, {comparison}: more alike than chance makes them"
    return f"{score_phrase}, {comparison}: not shown to be more alike than chance makes them"


def format_chance_score(chance: ChanceScore) -> str:
    """Format a chance level with the 95% range over its shuffles."""
    if chance.mean is None:
        return f"not known: {chance.reason}"
    return f"{format_number(chance.mean)} ({format_interval(chance.low, chance.high)})"


def describe_difference(row: SemanticDifferenceRow) -> str:
    """Describe the difference between two models."""
    difference = row.difference
    if difference.value is None:
        return f"{row.first} and {row.second} cannot be compared: {difference.reason}"
    p_phrase = "" if row.p_value is None else f", p = {row.p_value:.3f} by a sign-flip test, Holm-adjusted"
    interval = (
        f"95% interval {format_interval(difference.ci_low, difference.ci_high)}"
        if difference.ci_low is not None
        else f"no interval: {difference.reason}"
    )
    return (
        f"{row.second} less {row.first}: {format_signed(difference.value)} "
        f"({interval}, {pluralize(difference.n, 'question')}{p_phrase})"
    )


def format_losses(row: SemanticModelRow) -> str:
    """List unusable answers and rules of thumb by cause."""
    answer_losses = [f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in row.losses.items()]
    answer_losses += [f"{format_count(row.missing)} not asked"] if row.missing else []
    rule_losses = [f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in row.rules_losses.items()]
    loss_groups = [", ".join(answer_losses), f"rules: {', '.join(rule_losses)}" if rule_losses else ""]
    return "; ".join(group for group in loss_groups if group) or "none"


def describe_rejected_paraphrases(semantic: SemanticReport) -> str | None:
    """Count model-written paraphrases that were not asked, by reason; None where there are none."""
    if not semantic.rejected:
        return None
    reason_list = ", ".join(f"{format_count(n)} {reason}" for reason, n in semantic.rejected.items())
    return f"Paraphrases by a model that were not asked: {reason_list}."


def describe_contradiction(row: LeastConsistentRow) -> str | None:
    """Describe whether the judge finds the two answers contradictory; None without a verdict."""
    if row.contradict is None:
        return None
    verdict = "They contradict each other" if row.contradict else "They do not contradict each other"
    return f"{verdict}, says the judge{f': {row.because}' if row.because else ''}"
