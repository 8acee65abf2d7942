"""What the figures on consistency under paraphrase say, in plain words, shared by all forms of the report."""

from __future__ import annotations

from auditor.reports.pages.number_format import format_count, format_interval, format_number, format_signed, pluralize
from auditor.reports.semantic.schema import (
    ChanceScore,
    LanguagePairRow,
    LeastConsistentRow,
    SemanticDifferenceRow,
    SemanticModelRow,
    SemanticReport,
)

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
    """Two languages, or one."""
    return f"within {row.first}" if row.first == row.second else f"{row.first} and {row.second}"


def describe_questions(semantic: SemanticReport) -> str:
    """What was done and what the score means."""
    of = SCORED_TEXT_LABELS[semantic.measured]
    if semantic.measured == "mix":
        of += f" (mixed {semantic.rot_weight:g} to {1 - semantic.rot_weight:g})"
    asked = f"{pluralize(semantic.questions, 'moral question')} in {semantic.wordings} wordings each"
    how = f", α = {semantic.alpha:g}" if semantic.variant == "sage" else ""
    return (
        f"{asked}: a model that is sure of its ground says the same however it is asked. The score is "
        f"{VARIANT_LABELS[semantic.variant]} over the {of}{how}, by the encoder {semantic.encoder}: 1 where all say "
        "the same, about 0 where nothing they say is alike. What it would be by chance stands beside it, since texts "
        "about morals are alike even when they answer different questions."
    )


def describe_model(semantic: SemanticReport, row: SemanticModelRow) -> str:
    """How consistent one model is, against chance; the text goes on from the model's name."""
    score = row.consistency
    if score.value is None:
        return f"cannot be scored: {score.reason}"
    between = (
        f"95% interval {format_interval(score.ci_low, score.ci_high)}"
        if score.ci_low is not None
        else f"no interval: {score.reason}"
    )
    told = f"scores {format_number(score.value)} ({between}, {pluralize(score.n, 'question')})"
    chance = row.length_matched if row.length_matched.mean is not None else row.shuffled
    if chance.mean is None or chance.high is None:
        return f"{told}; what chance would give is not known: {chance.reason}"
    what = f"where answers to different questions would score {format_number(chance.mean)}"
    if score.ci_low is None:
        return f"{told}, {what}"
    if score.ci_low > chance.high:
        return f"{told}, {what}: more alike than chance makes them"
    return f"{told}, {what}: not shown to be more alike than chance makes them"


def format_chance_score(chance: ChanceScore) -> str:
    """A score by chance with the range of its shuffles."""
    if chance.mean is None:
        return f"not known: {chance.reason}"
    return f"{format_number(chance.mean)} ({format_interval(chance.low, chance.high)})"


def describe_difference(row: SemanticDifferenceRow) -> str:
    """Two models against each other."""
    d = row.difference
    if d.value is None:
        return f"{row.first} and {row.second} cannot be compared: {d.reason}"
    p = "" if row.p_value is None else f", p = {row.p_value:.3f} by a sign-flip test, Holm-adjusted"
    between = (
        f"95% interval {format_interval(d.ci_low, d.ci_high)}" if d.ci_low is not None else f"no interval: {d.reason}"
    )
    return f"{row.second} less {row.first}: {format_signed(d.value)} ({between}, {pluralize(d.n, 'question')}{p})"


def format_losses(row: SemanticModelRow) -> str:
    """Answers and rules that cannot be used, by cause."""
    told = [f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in row.losses.items()]
    told += [f"{format_count(row.missing)} not asked"] if row.missing else []
    rules = [f"{format_count(n)} {cause.replace('_', ' ')}" for cause, n in row.rules_losses.items()]
    both = [", ".join(told), f"rules: {', '.join(rules)}" if rules else ""]
    return "; ".join(t for t in both if t) or "none"


def describe_rejected_paraphrases(semantic: SemanticReport) -> str | None:
    """Paraphrases by a model that were not asked; None where there were none."""
    if not semantic.rejected:
        return None
    told = ", ".join(f"{format_count(n)} {reason}" for reason, n in semantic.rejected.items())
    return f"Paraphrases by a model that were not asked: {told}."


def describe_contradiction(row: LeastConsistentRow) -> str | None:
    """What the judge says of the two answers; None where it says nothing."""
    if row.contradict is None:
        return None
    verdict = "They contradict each other" if row.contradict else "They do not contradict each other"
    return f"{verdict}, says the judge{f': {row.because}' if row.because else ''}"
