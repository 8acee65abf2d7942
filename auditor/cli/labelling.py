"""`auditor review --sample`: draw a random sample of an audit, and open it for labelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from auditor.console.options import find_latest_audit
from auditor.console.output import print_message

if TYPE_CHECKING:
    from auditor.domain.labels import LabelKind
    from auditor.review.label_sampling import DrawResult

SAMPLE_OPTION = "--sample"
DRAWN_SAMPLE = 0
"""Value of `--sample` without a number: the sample as it was drawn."""


class LabelCommand(TyperCommand):
    """Command whose option `--sample` may stand without a number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `DRAWN_SAMPLE` after a `--sample` that no number follows."""
        complete: list[str] = []
        for argument, following in zip(args, [*args[1:], ""], strict=True):
            complete.append(argument)
            if argument == SAMPLE_OPTION and not following.removeprefix("-").isdecimal():
                complete.append(str(DRAWN_SAMPLE))
        return super().parse_args(ctx, complete)


def prepare_label_sample(url: str, audit: str | None, n: int, *, kind: str, stratify: str | None, redraw: bool) -> str:
    """Draw, extend or open a sample, and say what was done; return the audit's name.

    Args:
        n: size of the sample, or `DRAWN_SAMPLE`.
        kind: value of a `LabelKind`.
        stratify: names of attributes, separated by commas; None for the default.
    """
    from auditor.domain.labels import LabelKind
    from auditor.review.label_sampling import draw_label_sample
    from auditor.run import open_stored_audit

    label_kind, name = LabelKind(kind), audit or find_latest_audit(url)
    attributes = None if stratify is None else [attribute.strip() for attribute in stratify.split(",")]
    with open_stored_audit(name, url) as (db, stored_audit):
        drawn = draw_label_sample(db, stored_audit, label_kind, n or None, stratify=attributes, redraw=redraw)
    print_message(_describe_sample(label_kind, drawn, n))
    return name


def label_in_terminal(
    url: str, audit: str, rater: str, *, kind: str, second_rater_share: float, raters: int, plain_text: bool
) -> None:
    """Open a sample for labelling, in the app or its plain text form."""
    from auditor.domain.labels import LabelKind
    from auditor.tui.plain_text_app import needs_plain_text, run_plain_text_labelling

    run_app: Callable[..., None] = run_plain_text_labelling
    if not (plain_text or needs_plain_text()):
        from auditor.tui.launch import run_labelling

        run_app = run_labelling
    run_app(
        url,
        audit,
        rater=rater,
        kind=LabelKind(kind),
        second_rater_share=second_rater_share,
        raters_per_shared_unit=raters,
    )


def _describe_sample(kind: LabelKind, drawn: DrawResult, n: int) -> str:
    """Say how large the sample is, how it is stratified, why it is larger than asked for, and what was left out."""
    from auditor.reports.number_format import pluralize

    size = f"{drawn.n_sampled:,} of {drawn.n_population:,} {kind.noun}s"
    if not drawn.stratify:
        return f"Imported label sample: {size}."
    added = f", {drawn.n_added:,} of them new" if 0 < drawn.n_added < drawn.n_sampled else ""
    sentence = f"Label sample: {size}{added}, from {drawn.n_strata:,} strata ({' × '.join(drawn.stratify)})."
    if drawn.n_added and n and drawn.n_sampled > n:
        sentence += f" It is larger than {n:,}: every stratum has at least 10 {kind.noun}s, or all it has."
    if drawn.n_unjudged:
        sentence += f" Left out: {pluralize(drawn.n_unjudged, 'trace')} without a judge's verdict."
    return sentence
