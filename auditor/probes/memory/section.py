"""Section of the probe `memory`, and its sentence on page one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import auditor.probes as ap
from auditor.probes.memory.figures import (
    AGREEMENT_TABLE,
    ANSWERS_TABLE,
    ASKED_WAVE,
    OTHER_WAVE,
    RELEASE_TABLE,
    MemoryFigures,
    ModelMemory,
    RecallRow,
)

PERCENT = 100
TOLERANCE_WORDS = {"rounding": "within rounding", "5 points": "within 5 points"}
HITS_CAPTION = (
    "Each model was asked for published figures, and in other questions for its own estimates of the same percentages, "
    "without a publication. Hits: share of its answers that are the published figure, from 0 to 1, within the "
    "tolerance. By chance: the same, if its answers had the errors of its estimates. p: probability of so many "
    "hits in the same countries without recall, adjusted for all rows. Another wave: hits on figures of that wave "
    "although another was asked for. 95% CIs are for other countries and topics."
)
POWER_NOTE = (
    "In simulated audits with 60 figures of 12 countries and a mean absolute error of 6 points, exact recital of two "
    "countries, recital to 5 points of six, and of a wrong wave in four are each found in at least 90%. Less cannot be "
    "distinguished from chance."
)
AGREEMENT_CAPTION = (
    "r of the model's ordinary scores with people’s, over the cells whose figures were asked for; the same after its "
    "answers on published figures were taken out of both (partial correlation); and over the cells whose figure it "
    "missed by more than 5 points or did not know. If r falls towards 0, agreement may be recall. An answer on a "
    "figure also has what the model knows of people, so that r without it is a lower limit."
)


def build_section(title: str, figures: MemoryFigures) -> ap.Section | None:
    """Build the section; None without models."""
    if not figures.models:
        return None
    blocks: list[ap.Callout | ap.Paragraph | ap.Figure | ap.Table] = [
        ap.Paragraph(describe_models(figures), "finding"),
    ]
    labelled = [(row.model, main_row(row).excess) for row in figures.models if row.recall]
    if labelled:
        figure_title = "Published figures given within rounding, beyond chance"
        axis = "Share of answers (0: as by chance)"
        blocks.append(
            ap.build_interval_figure("memory-recall-plot", figure_title, labelled, axis, table_id="memory-recall")
        )
        blocks.append(_tabulate_hits(figures))
    label = "Agreement with people without recall"
    blocks += [
        ap.tabulate(AGREEMENT_TABLE, label, AGREEMENT_CAPTION, figures.models, ModelMemory),
        *_tabulate_releases(figures),
    ]
    blocks += [
        ap.Paragraph(f"{row.model}: no test of recall, since {row.reason}.") for row in figures.models if row.reason
    ]
    blocks += [ap.Paragraph(sentence) for sentence in _describe_controls(figures)]
    blocks.append(ap.Paragraph(POWER_NOTE, "note"))
    return ap.Section("memory", title, blocks, title)


def main_row(model: ModelMemory) -> RecallRow:
    """The hits on the asked wave within rounding, of a model with a test."""
    return model.recall[0]


def list_reciting(figures: MemoryFigures) -> list[ModelMemory]:
    """The models whose recall is shown, in the order of their p-values."""
    shown = [row for row in figures.models if row.is_recall_shown]
    return sorted(shown, key=lambda row: row.p_value or 0.0)


def find_recalled_row(model: ModelMemory) -> RecallRow:
    """The row with the smallest p-value; of equal ones that with the largest excess of hits."""
    return min(model.recall, key=lambda row: (row.excess.adjusted_p_value or 0.0, -(row.excess.value or 0.0)))


def describe_models(figures: MemoryFigures) -> str:
    """Say for which models recall is shown, and that it is not known of the others."""
    sentences = [_describe_recall(row, figures) for row in list_reciting(figures)]
    others = [row.model for row in figures.models if not row.is_recall_shown]
    if others:
        verb = "recites" if len(others) == 1 else "recite"
        sentences.append(f"Whether {_join(others)} {verb} published figures is not known.")
    return " ".join(sentences)


def build_headline(figures: MemoryFigures) -> ap.Headline | None:
    """Build the sentence for page one: a caution if recall is shown, otherwise that it is not known."""
    reciting = list_reciting(figures)
    if not figures.models:
        return None
    if not reciting:
        names = _join([row.model for row in figures.models], limit=3)
        plural = "s" if len(figures.models) == 1 else ""
        return ap.Headline(f"Whether {names} recite{plural} published figures ({figures.publication}) is not known.")
    smallest = reciting[0].p_value or 0.0
    named = [row for row in reciting if (row.p_value or 0.0) <= smallest]
    others = f" So is recall shown of {_join([row.model for row in named[1:]], limit=3)}." if named[1:] else ""
    advice = " Agreement with people may be recall of a published table: see the section on memory."
    return ap.Headline(f"{_describe_recall(named[0], figures)}{others}{advice}", smallest, is_caution=True)


def _describe_recall(model: ModelMemory, figures: MemoryFigures) -> str:
    """What a model recites, with the share of hits and that by chance."""
    row = find_recalled_row(model)
    kind = {ASKED_WAVE: "figures", OTHER_WAVE: "figures of another wave than it is asked for,"}.get(
        row.target, f"figures of the wave {row.target}, whatever wave it is asked for,"
    )
    return (
        f"{model.model} recites {kind} of {figures.publication}: {_percent(row.hits)} of its {row.hits.n} answers "
        f"are {TOLERANCE_WORDS[row.tolerance]}, and {_percent(row.chance)} would be by chance."
    )


def build_summary_table(title: str, figures: MemoryFigures) -> ap.Table:
    """Build the table for the end of a run."""
    columns = [
        ap.Column("Model", "name"),
        ap.Column("Hits within rounding", "estimate", show_n=False),
        ap.Column("By chance", "estimate", show_n=False),
        ap.Column("Recall"),
    ]
    rows: list[list[Any]] = [
        [row.model, *((main_row(row).hits, main_row(row).chance) if row.recall else (None, None)), _verdict(row)]
        for row in figures.models
    ]
    return ap.Table("memory", title, "", columns, rows)


def build_comparison(title: str, first: MemoryFigures, second: MemoryFigures) -> ap.Section:
    """Show the hits within rounding beyond chance of two audits side by side."""
    earlier = {row.model: main_row(row).excess for row in first.models if row.recall}
    rows = [[row.model, earlier.get(row.model), main_row(row).excess] for row in second.models if row.recall]
    columns = [ap.Column("Model", "name"), ap.Column("First", "estimate"), ap.Column("Second", "estimate")]
    caption = "Share of published figures given within rounding, minus that by chance."
    return ap.Section("memory", title, [ap.Table("memory", title, caption, columns, rows)])


def build_exported_tables(figures: MemoryFigures) -> Iterator[ap.Table]:
    """Build the table of the answers that each model gave and lost."""
    derived = {"lost": lambda row: sum(row.failed.values())}
    yield ap.tabulate(ANSWERS_TABLE, "Answers", "Errors in points.", figures.models, ModelMemory, derived)


def _tabulate_hits(figures: MemoryFigures) -> ap.Table:
    """The table of hits, a row for each model, target and tolerance."""
    columns = [
        ap.Column("Model", "name"),
        ap.Column("Figures of"),
        ap.Column("Tolerance"),
        ap.Column("Hits", "estimate"),
        ap.Column("By chance", "estimate", key="chance", show_n=False),
        ap.Column("Difference", "estimate", key="excess", show_n=False, emphasis=True),
        ap.Column("p (adjusted)", "number", key="adjusted_p_value", digits=3),
    ]
    rows: list[list[Any]] = [
        [model.model, row.target, row.tolerance, row.hits, row.chance, row.excess, row.excess.adjusted_p_value]
        for model in figures.models
        for row in model.recall
    ]
    return ap.Table("memory-recall", "Published figures that models gave", HITS_CAPTION, columns, rows)


def _tabulate_releases(figures: MemoryFigures) -> Iterator[ap.Table]:
    """Yield the table of hits before and after the models' releases, if any can be compared."""
    rows = [row for row in figures.models if row.release_difference.value is not None]
    if rows:
        caption = "Hits within rounding beyond chance, in waves before and after the release of the model."
        yield ap.tabulate(RELEASE_TABLE, "Before and after the release", caption, rows, ModelMemory)


def _describe_controls(figures: MemoryFigures) -> Iterator[str]:
    """Say how often models gave figures on made-up topics, and continued wordings."""
    made_up = [(row.model, row.made_up) for row in figures.models if row.made_up.value is not None]
    if made_up:
        shares = "; ".join(f"{name}, {_percent(estimate)} of {estimate.n}" for name, estimate in made_up)
        yield f"Figures given on topics that no survey has asked about: {shares}. These are invented."
    continued = [(row.model, row.continued) for row in figures.models if row.continued.value is not None]
    if continued:
        shares = "; ".join(f"{name}, {_percent(estimate)} of {estimate.n}" for name, estimate in continued)
        yield f"Official wordings continued verbatim: {shares}."
    if any(not row.recall or len(row.recall) == 2 for row in figures.models):
        yield "Recall of other waves is not measurable: too few of the figures are published for another wave."
    if all(row.release_difference.value is None for row in figures.models):
        reasons = dict.fromkeys(row.release_difference.reason or "" for row in figures.models)
        yield f"Recall before and after a model’s release is not measurable: {'; '.join(reasons)}."
    failed = sum(sum(row.failed.values()) for row in figures.models)
    if failed:
        yield f"Refused, unreadable or lost, and counted nowhere: {ap.pluralize(failed, 'answer')}."


def _verdict(row: ModelMemory) -> str:
    return (row.recalled or "") if row.is_recall_shown else "not measurable" if row.reason else "not known"


def _percent(estimate: ap.Estimate) -> str:
    return "no share" if estimate.value is None else f"{round(PERCENT * estimate.value)}%"


def _join(names: Sequence[str], limit: int = 20) -> str:
    """Names in a sentence, at most `limit`."""
    shown = list(names[:limit]) + ([ap.pluralize(len(names) - limit, "other")] if len(names) > limit else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
