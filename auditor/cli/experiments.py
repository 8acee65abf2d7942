"""Commands that ask whether a result would be another under other choices, and what judges can be trusted with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import judges
from auditor.cli.options import AsJson, Storage
from auditor.cli.output import put_json, say, table

if TYPE_CHECKING:
    from auditor.reports.measures import NonresponsePart

app = typer.Typer(name="experiment", help="Would another choice give another result?", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Would another choice give another result?"""


judges.register(app)


@app.command("nonresponse")
def nonresponse(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """Compare the models with people under each treatment of respondents without an answer.

    drop leaves them out, neutral counts them as 0, low and high as never and as always acceptable, impute fills them in
    within their country. Whether the ranking of models holds under all is said at the end.

    Example: auditor experiment nonresponse my-audit
    """
    from auditor.reports.nonresponse import nonresponse_experiment
    from auditor.run import storage_url
    from auditor.storage.database import open_database

    with open_database(storage_url(storage), create=False) as db:
        part = nonresponse_experiment(db, audit)
    if as_json:
        put_json(part.model_dump(mode="json"))
    else:
        _print(part)


def _print(part: NonresponsePart) -> None:
    from auditor.reports.numbers import interval, number
    from auditor.reports.sentences import nonresponse as sentence
    from auditor.reports.words import span

    columns = ["treatment", "model", "r", "95% interval", "rho", "MAE", "RMSE", "bias", "cells"]
    rows: list[list[object]] = []
    for treatment in part.treatments:
        for r in treatment.alignment:
            figures = [number(x) for x in (r.spearman_rho, r.mae, r.rmse, r.bias.value)]
            rows.append([treatment.treatment, r.model, number(r.pearson_r), interval(*span(r)), *figures, r.n])
    table(columns, rows)
    if part.bounds:
        ends = [[b.model, number(b.mae_best), number(b.mae_worst), b.n] for b in part.bounds]
        table(["model", "MAE at best", "MAE at worst", "cells"], ends)
    for name, reason in part.not_possible.items():
        say(f"{name} is not possible: {reason}")
    say(sentence(part))
