"""Writes the generated part of docs/coverage.md, and docs/coverage.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.coverage.findings import MIN_PRINTED_RUNS, find_problems, list_problems
from benchmarks.coverage.planted import PlantedResult
from benchmarks.coverage.results import Rows
from benchmarks.coverage.runner import Result
from benchmarks.coverage.sentence_figures import SentenceResult
from benchmarks.coverage.studies import PLANTED, SENTENCES, figures_by_key, list_jobs

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOT_MEASURED = "Not measured"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


TITLES = {
    "r": "Pearson's r",
    "kappa": "Fleiss' kappa",
    "alpha": "Krippendorff's alpha",
    "ac1": "Gwet's AC1",
    "spearman": "Spearman's rank correlation",
    "r difference of equal models": "Difference of r between equally good models",
    "mae of all places": "MAE in every country or topic, jointly",
    "bias of all places": "Bias in every country or topic, jointly",
    "mae difference of a place": "Difference of MAE between two models in one country or topic",
    "mae from the best": "Difference of MAE from the best other model",
    "r from the best": "Difference of r from the best other model",
    "share of these cells": "Share, for these cells only",
    "valid share of a judge": "One judge's share of VALID verdicts",
    "agreement with the others": "Agreement of a judge with the other judges",
    "paired difference of verdicts": "Difference of the shares of VALID on the same traces",
    "length bias against labels": "Preference of a judge for long traces, compared with labels",
    "error correlation beyond other pairs": "Correlation of two judges' errors beyond that of other pairs",
    "corrected mean of these traces": "Corrected share of VALID, for these traces",
    "corrected mean over other units": "Corrected share of VALID, for other countries and topics",
    "calibrated mean of these traces": "Calibrated share of VALID, for these traces",
    "rogan-gladen share of these traces": "Rogan–Gladen share of VALID, for these traces",
    "corrected difference of these traces": "Corrected difference between two models, for these traces",
    "corrected difference over other units": "Corrected difference between two models, for other countries and topics",
    "mean of shares over sets": "Mean share over item sets",
    "pooled share over sets": "Share pooled over item sets",
    "area under the curve": "Area under the ROC curve of verdicts",
    "gap slope with intercept": "Slope of a model's gaps on people's gaps, with an intercept",
}
"""Headings of the figures that are not their keys with a capital letter."""


def make_title(name: str) -> str:
    """The heading of a figure or of a planted fault."""
    words = [word.upper() if word in ("mae", "rmse") else word for word in name.split()]
    title = " ".join(words)
    return TITLES.get(name, f"{title[0].upper()}{title[1:]}")


def write_page(
    results: Sequence[Result],
    planted: Sequence[PlantedResult] = (),
    sentences: Sequence[SentenceResult] = (),
    folder: Path = DOCS,
) -> None:
    """Replace the generated part of coverage.md, and write coverage.json.

    Args:
        folder: with coverage.md, whose text outside the markers is written by hand.
    """
    page = folder / "coverage.md"
    before, _, remainder = page.read_text(encoding="utf-8").partition(BEGIN)
    after = remainder.partition(END)[2]
    parts = (
        render_progress(results, planted, sentences),
        render_table(results),
        render_planted(planted),
        render_sentences(sentences),
        render_known_limits(results),
    )
    tables = "\n".join(line for part in parts for line in part)
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", encoding="utf-8")
    rows = {
        name: [asdict(result) for result in measured]
        for name, measured in (("intervals", results), ("planted", planted), ("sentences", sentences))
    }
    lists = (f'"{name}": [\n{_json_lines(items)}\n]' for name, items in rows.items())
    (folder / "coverage.json").write_text(f"{{{', '.join(lists)}}}\n", encoding="utf-8")


def load_published_rows(folder: Path = DOCS) -> dict[str, Rows]:
    """Rows of coverage.json, by the key of their world and design, or of the planted fault."""
    published = json.loads((folder / "coverage.json").read_text(encoding="utf-8"))
    rows_by_key: dict[str, Rows] = {}
    for name, prefix, columns in (
        ("intervals", (), ("study", "world", "design")),
        ("planted", (PLANTED,), ("study", "plant", "design")),
        ("sentences", (SENTENCES,), ("world",)),
    ):
        for row in published[name]:
            rows_by_key.setdefault("/".join((*prefix, *(row[column] for column in columns))), []).append(row)
    return rows_by_key


def render_progress(
    results: Sequence[Result], planted: Sequence[PlantedResult], sentences: Sequence[SentenceResult]
) -> Iterator[str]:
    """Markdown lines: how much was measured, and what was not."""
    measured = {f"{result.study}/{result.world}/{result.design}" for result in results}
    measured |= {f"{PLANTED}/{result.study}/{result.plant}/{result.design}" for result in planted}
    measured |= {f"{SENTENCES}/{result.world}" for result in sentences}
    n_runs = sum(result.summary.n_runs + result.summary.n_without_interval for result in results)
    n_runs += sum(result.n_runs for result in planted)
    missing = [key for key in list_jobs() if key not in measured]
    yield f"{n_runs:,} intervals and verdicts in {len(measured)} worlds, designs and planted faults were computed."
    if missing:
        by_study = Counter(key.split("/")[0] for key in missing)
        yield ""
        yield f"{NOT_MEASURED} in this run: {', '.join(f'{n} of {name}' for name, n in by_study.items())}."
    yield ""


def render_table(results: Sequence[Result]) -> Iterator[str]:
    """Markdown lines: one table, a row for each figure, with the lowest coverage over designs and worlds."""
    by_figure: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        if result.summary.n_runs >= MIN_PRINTED_RUNS:
            by_figure.setdefault(result.figure, {}).setdefault(result.world, []).append(result)
    yield "Figure | Lowest coverage | Too narrow"
    yield "---|---|---"
    for key in figures_by_key():
        if key in by_figure:
            yield f"{make_title(key)} | {_summarize_worlds(by_figure[key])}".rstrip(" |")
    yield ""


def _summarize_worlds(results_by_world: Mapping[str, Sequence[Result]]) -> str:
    """The lowest coverage in worlds where the interval holds, ↔ if it is too wide in one; and those where it fails."""
    holds, fails, is_wide = [], [], False
    for world, results in results_by_world.items():
        lowest = min(result.summary.coverage for result in results)
        kinds = {problem.kind for result in results for problem in list_problems(result.summary)}
        is_wide |= "width" in kinds
        if "coverage" in kinds:
            fails.append(f"{name_world(world)}:{lowest:.0%}")
        else:
            holds.append(lowest)
    return f"{f'{min(holds):.0%}' if holds else ''}{'↔' if is_wide else ''} | {', '.join(fails)}"


def name_world(world: str) -> str:
    """The name of a world in the table, without spaces."""
    return world.replace(", ", "-").replace(" ", "-")


def render_planted(planted: Sequence[PlantedResult]) -> Iterator[str]:
    """Markdown lines: for each kind of planted fault how often it is named where it is, and where it is not."""
    if planted:
        yield "## Planted faults"
        yield ""
        yield "Fault or sentence | Largest, named | Others, named"
        yield "---|---|---"
    for study in dict.fromkeys(result.study for result in planted):
        of_study = [result for result in planted if result.study == study]
        named = [result.n_named / result.n_runs for result in of_study if result.is_largest and result.has_plant]
        false = max(result.n_false / result.n_runs for result in of_study)
        mark = " ✗" if any(result.problem for result in of_study) else ""
        yield f"{make_title(study)} | {f'{named[-1]:.0%}' if named else ''} | {false:.0%}{mark}"
    if planted:
        yield ""


def render_sentences(sentences: Sequence[SentenceResult]) -> Iterator[str]:
    """Markdown lines: how often reports state something false, or what was planted, in each world."""
    if not sentences:
        return
    yield "## Sentences"
    yield ""
    yield "Share of audits of 12 countries and 10 topics that state something false on page one and in the full report,"
    yield "and that state what is true of a planted model. coverage.json has each family."
    yield ""
    yield "World | Audits | Page one | Report | Stated"
    yield "---|---|---|---|---"
    for result in sentences:
        page, report = (f"{result.n_false.get(name, 0) / result.n_audits:.1%}" for name in ("page one", "report"))
        stated = "" if result.planted is None else f"{result.n_found / result.n_audits:.0%}"
        mark = " ✗" if any(result.list_problems()) else ""
        yield f"{result.world} | {result.n_audits} | {page} | {report} | {stated}{mark}".rstrip(" |")
    yield ""


def render_known_limits(results: Sequence[Result]) -> Iterator[str]:
    """Markdown lines: why intervals cover too rarely (✗), with the figures."""
    yield "## Known limits"
    yield ""
    findings = [finding for finding in find_problems(results) if finding.problem.kind == "coverage"]
    for reason in dict.fromkeys(finding.reason for finding in findings):
        figures = dict.fromkeys(finding.result.figure for finding in findings if finding.reason == reason)
        yield f"- {reason or 'The reason is not known.'} ({', '.join(figures)})"
    yield ""


def _json_lines(items: Iterable[object]) -> str:
    """JSON of the items of a list, one on each line."""
    return ",\n".join(json.dumps(_rounded(item)) for item in items)


def _rounded(rows: object) -> object:
    """The rows with numbers of four decimals: more would change from machine to machine."""
    rounded: object = json.loads(json.dumps(rows), parse_float=lambda digits: round(float(digits), 4))
    return rounded
