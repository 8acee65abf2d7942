"""Experiments on consistency: temperature, a rule to follow, and what people say of pairs of answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import put_json, say, table

if TYPE_CHECKING:
    from auditor.reports.measures import Estimate

Audit = Annotated[str, typer.Argument(metavar="AUDIT", help="An audit with the probe semantic.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (temperature, rules, accuracy, judgements):
        app.command()(command)


def temperature(
    audit: Audit,
    temperatures: Annotated[
        str, typer.Option("--temperatures", metavar="LIST", help="Temperatures, each in [0, 2].")
    ] = "0,0.5,1",
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Ask whether other words change more than the dice do: the same words several times, against several wordings.

    Models are asked, which may cost money; what was asked before is not asked again.

    Example: auditor experiment temperature moral --temperatures 0,0.7,1.4
    """
    from auditor.cli.progress import RunProgress
    from auditor.experiments.consistency import temperature_trial

    wanted = _temperatures(temperatures)
    with RunProgress() as progress:
        rows = temperature_trial(audit, wanted, storage=storage, progress=progress, signals=True)
    if as_json:
        put_json([row.model_dump(mode="json") for row in rows])
        return
    columns = ["model", "temperature", "same words", "other words", "other less same", "p"]
    figures = [
        [r.model, r.temperature, *map(_figure, (r.same_words, r.other_words, r.difference)), _p(r.p_value)]
        for r in rows
    ]
    table(columns, figures)


def rules(audit: Audit, storage: Storage = None, as_json: AsJson = False) -> None:
    """Ask whether a model is more consistent when it is told to follow its own rule of thumb.

    Each question is asked again in all its wordings, with the first rule of thumb that the model gave on it. Models are
    asked, which may cost money; what was asked before is not asked again.

    Example: auditor experiment rules moral
    """
    from auditor.cli.progress import RunProgress
    from auditor.experiments.consistency import rule_trial

    with RunProgress() as progress:
        rows = rule_trial(audit, storage=storage, progress=progress, signals=True)
    if as_json:
        put_json([row.model_dump(mode="json") for row in rows])
        return
    columns = ["model", "before", "with a rule", "change", "p"]
    table(columns, [[r.model, *map(_figure, (r.before, r.after, r.change)), _p(r.p_value)] for r in rows])


def accuracy(
    audit: Audit,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="question_id,question,choices,correct[,paraphrase]; choices by |.")
    ],
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Ask whether a model is right where it is consistent, on questions with a known answer in several wordings.

    The models, the encoder and the score are the audit's. Models are asked, which may cost money; what was asked before
    is not asked again.

    Example: auditor experiment accuracy moral facts.csv
    """
    from auditor.cli.progress import RunProgress
    from auditor.experiments.consistency import accuracy_trial
    from auditor.reports.pages.numbers import number

    with RunProgress() as progress:
        rows = accuracy_trial(audit, file, storage=storage, progress=progress, signals=True)
    if as_json:
        put_json([row.model_dump(mode="json") for row in rows])
        return
    columns = ["model", "accuracy", "consistency", "r", "95% interval", "p", "questions"]
    figures: list[list[object]] = [
        [
            r.model, *map(_figure, (r.accuracy, r.consistency)), r.reason if r.r is None else number(r.r),
            _between(r.ci_low, r.ci_high), _p(r.p_value), r.n,
        ]
        for r in rows
    ]  # fmt: skip
    table(columns, figures)


def judgements(
    audit: Audit,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="rater,model,question_id,left,right,judgement")],
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Compare each measure of consistency with what people say of pairs of answers; no model is asked.

    A row says whether the answers to the wordings left and right say the same: Y, N, or NA for cannot say.

    Example: auditor experiment judgements moral people.csv
    """
    from auditor.experiments.judgements import people_trial
    from auditor.reports.pages.numbers import interval, number

    part = people_trial(audit, file, storage=storage)
    if as_json:
        put_json(part.model_dump(mode="json"))
        return
    say(f"{part.judgements} judgements on {part.questions} questions; Krippendorff's alpha {_figure(part.alpha)}; ")
    say(f"entropy of the judgements on a question {_figure(part.entropy)} bits.")
    columns = ["measure", "of", "r with people", "95% interval", "r with entropy", "n"]
    rows: list[list[object]] = [
        [
            c.metric,
            c.text,
            number(c.r) if c.r is not None else c.reason,
            _between(c.ci_low, c.ci_high),
            _n(c.r_entropy),
            c.n,
        ]
        for c in part.correlations
    ]
    table(columns, rows)
    for d in part.differences:
        name = f"{d.than_metric} of {d.than_text} less {d.metric} of {d.text}"
        told = d.reason or f"{number(d.difference)} (95% interval {interval(d.ci_low, d.ci_high)}, p {_p(d.p_value)})"
        say(f"r of {name}: {told}")


def _temperatures(text: str) -> list[float]:
    from auditor.errors import UsageError

    try:
        found = [float(t) for t in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 <= t <= 2 for t in found):
        raise UsageError(f"--temperatures: '{text}' is no list of numbers in [0, 2].", "Such as 0,0.7,1.4.")
    return list(dict.fromkeys(found))


def _figure(e: Estimate) -> str:
    from auditor.reports.pages.numbers import interval, number

    if e.value is None:
        return str(e.reason)
    between = interval(e.ci_low, e.ci_high) if e.ci_low is not None else str(e.reason)
    return f"{number(e.value)} ({between}; n {e.n})"


def _between(low: float | None, high: float | None) -> str | None:
    from auditor.reports.pages.numbers import interval

    return None if low is None else interval(low, high)


def _n(value: float | None) -> str | None:
    from auditor.reports.pages.numbers import number

    return None if value is None else number(value)


def _p(value: float | None) -> str | None:
    from auditor.reports.pages.numbers import p_value

    return None if value is None else p_value(value)
