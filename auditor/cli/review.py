"""The command `review`: conflicts and random samples, plans for labels, and the decisions and labels of people."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand

from auditor.console.options import StorageOption, find_latest_audit, label_kind_option, resolve_audit_name
from auditor.console.output import format_command, print_data, print_message, print_table
from auditor.domain.labels import LabelKind
from auditor.errors import ReviewError, UsageError, format_count
from auditor.reports.data.judge_quality.build import plan_labels, track_share
from auditor.reports.data.report_source import load_source
from auditor.reports.number_format import pluralize
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
from auditor.review.item import choose_rater, require_rater_name
from auditor.review.label_sampling import draw_label_sample
from auditor.run import open_stored_audit, open_stored_database, resolve_storage_url, resume_after_review
from auditor.storage import audits, labels, rating_log
from auditor.storage.database import STORAGE_VARIABLE
from auditor.storage.labels import load_label_sample, load_labels

if TYPE_CHECKING:
    from auditor.reports.data.judge_quality.build import LabelPlan
    from auditor.review.label_sampling import DrawResult


DEFAULT_HALF_WIDTH = 0.1
DEFAULT_DIFFERENCE = 0.1


def print_label_plan(storage: str | None, audit: str | None, half_width: float, difference: float) -> None:
    """Print the plan of an audit's labels.

    Args:
        storage: database URL; None for the default.
        half_width: wanted, of each model's corrected share of VALID.
        difference: between two models that is to be shown.
    """
    name = audit or find_latest_audit(storage)
    with open_stored_audit(name, storage) as (db, stored_audit):
        source = load_source(db, stored_audit.name)
        if not len(source.votes):
            raise ReviewError(
                f"audit '{name}' has no verdicts of judges to measure.", "Run an audit whose models are reviewed."
            )
        plan = plan_labels(source, half_width, difference)
    rows = [[row.model, str(row.traces), str(row.labelled), str(row.needed)] for row in plan.models]
    print_table(["model", "traces", "labelled", "needed"], rows)
    print_data("\n".join(describe_plan(plan)) + "\n")
    if source.label_records.is_imported:
        command = format_command("import", "labels", "FILE", "--audit", name, storage=storage)
        print_message(
            f"The sample was imported. Choose further traces as it was chosen, and import their labels: {command}"
        )
        return
    redraw = []
    if source.label_records.reason is not None:
        print_message(f"The labels so far are not used: {source.label_records.reason.partition('.')[0]}.")
        redraw = ["--redraw"]
    print_message(
        "To draw this sample and label it: "
        f"{format_command('review', name, '--sample', str(plan.needed), *redraw, storage=storage)}"
    )


def print_label_progress(storage: str | None, audit: str) -> None:
    """Print what the labels of an audit's traces show so far; nothing without labels."""
    with open_stored_audit(audit, storage) as (db, stored_audit):
        sample = load_label_sample(db, stored_audit.id, LabelKind.TRACE)
        labels = load_labels(db, stored_audit.id, LabelKind.TRACE)
    sequence = track_share(sample, labels) if labels else None
    if sequence is not None and sequence.n:
        print_message(
            f"So far, people find {100 * sequence.low:.0f}% to {100 * sequence.high:.0f}% of all traces VALID "
            f"({pluralize(sequence.n, 'label')}; confidence sequence, valid however often you look)."
        )


MAX_WIDENING = 1.4
"""Ratio of the half-width that reports have to the planned one, at most: the plan is Cochran's, and the interval of a
share is wider where errors are rare. Simulated: 1.2 to 1.4 for 300 and 1,000 traces of judges right in 80 to 95%."""


def describe_plan(plan: LabelPlan) -> list[str]:
    """The plan in sentences."""
    sd = f"standard deviation {plan.sd:.2f} of label minus verdict, {'measured' if plan.is_sd_measured else 'assumed'}"
    n_traces = min((row.traces for row in plan.models), default=0)
    is_too_many = plan.needed_for_difference > n_traces
    too_many = f"; there are only {pluralize(n_traces, 'trace')} of a model" if is_too_many else ""
    lines = [
        f"{plan.needed} labels in all give each model's corrected share of VALID a 95% CI of ± "
        f"{100 * plan.half_width:.0f} to {100 * MAX_WIDENING * plan.half_width:.0f} points for these traces ({sd}).",
        f"{plan.needed_for_difference} labels of each model show a difference of {100 * plan.difference:.0f} points "
        f"between two models in 80% of samples, corrected for the number of pairs{too_many}.",
    ]
    if plan.floor_elsewhere is not None:
        lines.append(
            f"For other countries and topics, no number of labels gives less than about ± "
            f"{100 * plan.floor_elsewhere:.1f} points."
        )
    if plan.floor_of_error is not None:
        lines.append(
            f"If the judges' errors vary over topics with a standard deviation of 10 points, {plan.topics} topics "
            f"leave ± {100 * plan.floor_of_error:.1f} points, whatever the number of labels."
        )
    if plan.low is not None and plan.high is not None:
        lines.append(_describe_sequence(plan, plan.low, plan.high))
    return lines


def _describe_sequence(plan: LabelPlan, low: float, high: float) -> str:
    """What the labels so far show, and whether labelling may stop."""
    advice = "You may stop labelling" if plan.may_stop else "Go on labelling"
    return (
        f"So far: {pluralize(plan.labelled, 'label')} in the order of the sample. People find {100 * low:.0f}% to "
        f"{100 * high:.0f}% of all traces VALID (confidence sequence, valid however often you look). {advice}: "
        f"± {50 * (high - low):.0f} points reached, ± {100 * plan.half_width:.0f} wanted."
    )


SAMPLE_OPTION = "--sample"
DRAWN_SAMPLE = 0
"""Value of `--sample` without a number: the sample as it was drawn."""


class LabelCommand(TyperCommand):
    """Command whose option `--sample` may stand without a number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `DRAWN_SAMPLE` after a `--sample` that no number follows."""
        complete: list[str] = []
        for argument, following in pairwise([*args, ""]):
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
    from auditor.tui.plain_text_app import needs_plain_text, run_plain_text_labelling

    run_app: Callable[..., None] = run_plain_text_labelling
    if not (plain_text or needs_plain_text()):
        from auditor.tui.app import run_labelling

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
    size = f"{format_count(drawn.n_sampled)} of {format_count(drawn.n_population)} {kind.noun}s"
    if not drawn.stratify:
        return f"Imported label sample: {size}."
    added = f", {format_count(drawn.n_added)} of them new" if 0 < drawn.n_added < drawn.n_sampled else ""
    sentence = (
        f"Label sample: {size}{added}, from {format_count(drawn.n_strata)} strata ({' × '.join(drawn.stratify)})."
    )
    if drawn.n_added and n and drawn.n_sampled > n:
        sentence += f" It is larger than {format_count(n)}: every stratum has at least 10 {kind.noun}s, or all it has."
    if drawn.n_unjudged:
        sentence += f" Left out: {pluralize(drawn.n_unjudged, 'trace')} without a judge's verdict."
    return sentence


EVERY_INTERFACE = ("0.0.0.0", "::")
NameArgument: TypeAlias = Annotated[
    str | None,
    typer.Argument(
        metavar="AUDIT",
        help="The audit's name, or its config file; if left out, choose from a list.",
        callback=resolve_audit_name,
    ),
]
RaterOption: TypeAlias = Annotated[str | None, typer.Option("--rater", help="Your name; by default the user name.")]
PlainOption: TypeAlias = Annotated[
    bool, typer.Option("--plain", help="Use plain text, line by line, instead of the full screen.")
]
OpenBookOption: TypeAlias = Annotated[
    bool,
    typer.Option("--open-book", help="Show an answer's author, its verdicts and people's score before the decision."),
]
SecondShareOption: TypeAlias = Annotated[
    float | None,
    typer.Option("--second-share", min=0, max=1, help="Share of conflicts, or of the sample, that two raters decide."),
]
SampleOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        SAMPLE_OPTION,
        metavar="[N]",
        min=DRAWN_SAMPLE,
        help="Label a random sample of N traces instead of conflicts; without N, the sample drawn before.",
    ),
]
KindOption: TypeAlias = Annotated[str, label_kind_option("With --sample: trace, answer_pair or comparison.")]
StratifyOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--stratify",
        metavar="LIST",
        help="With --sample: variables that define its strata, such as language,region,model,verdict,topic.",
    ),
]
RedrawOption: TypeAlias = Annotated[
    bool, typer.Option("--redraw", help="With --sample: draw again, after traces were added or changed.")
]
RatersOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--raters", min=2, help="With --sample: number of raters who label each trace of the share in --second-share."
    ),
]
PlanOption: TypeAlias = Annotated[
    bool, typer.Option("--plan", help="Print how many labels by people are needed for a given precision, and exit.")
]
HalfWidthOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--half-width",
        min=0.005,
        max=0.5,
        help="With --plan: half the width of the 95% CI of each model's share of VALID.",
    ),
]
DifferenceOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--difference", min=0.005, max=1, help="With --plan: difference between two models' shares of VALID to detect."
    ),
]
ServeOption: TypeAlias = Annotated[bool, typer.Option("--serve", help="Open the app in a browser on this machine.")]
HostOption: TypeAlias = Annotated[
    str, typer.Option("--host", help="With --serve: the network address to serve the app on.")
]
PortOption: TypeAlias = Annotated[int, typer.Option("--port", help="With --serve: the number of the network port.")]
PublicUrlOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--public-url", metavar="URL", help="With --serve: the address that browsers use, if different."),
]


def review(
    audit: NameArgument = None,
    rater: RaterOption = None,
    plain_text: PlainOption = False,
    open_book: OpenBookOption = False,
    second_rater_share: SecondShareOption = None,
    sample: SampleOption = None,
    kind: KindOption = "trace",
    stratify: StratifyOption = None,
    redraw: RedrawOption = False,
    raters: RatersOption = 2,
    plan: PlanOption = False,
    half_width: HalfWidthOption = DEFAULT_HALF_WIDTH,
    difference: DifferenceOption = DEFAULT_DIFFERENCE,
    serve: ServeOption = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8321,
    public_url: PublicUrlOption = None,
    storage: StorageOption = None,
) -> None:
    """Review open conflicts, or label a random sample.

    Opens a full-screen app in the terminal. Each decision is saved at once and can be undone. Labels of a random sample
    measure how good the judges are; conflicts cannot, since they are the hard cases.

    Example: auditor review moral-alignment --rater ada

    Example: auditor review moral-alignment --sample 200

    Example: auditor review moral-alignment --plan --half-width 0.05
    """
    url = resolve_storage_url(storage)
    if plan:
        print_label_plan(storage, audit, half_width, difference)
        return
    rater_name = require_rater_name(_find_user_name() if rater is None else rater)
    _check_sample_options(sample, kind, stratify, redraw=redraw, open_book=open_book)
    if sample is not None:
        audit = prepare_label_sample(url, audit, sample, kind=kind, stratify=stratify, redraw=redraw)
    share = DEFAULT_SECOND_RATER_SHARE if second_rater_share is None else second_rater_share
    if serve:
        with open_stored_database(url) as db:  # fails here, not on each page
            if audit is not None:
                load_raters = rating_log.load_raters if sample is None else labels.load_raters
                rater_name = choose_rater(rater_name, load_raters(db, audits.get_audit(db, audit).id))
        os.environ[STORAGE_VARIABLE] = url  # not an argument: other users of this machine can list those
        arguments = _served_command(audit, rater_name, open_book=open_book, second_rater_share=second_rater_share)
        if sample is not None:
            arguments += [SAMPLE_OPTION, str(DRAWN_SAMPLE), "--kind", kind, "--raters", str(raters)]
        _serve(arguments, audit, rater_name, host=host, port=port, public_url=public_url)
    elif audit is not None and sample is not None:
        label_in_terminal(
            url,
            audit,
            rater_name,
            kind=kind,
            second_rater_share=share,
            raters=raters,
            plain_text=plain_text,
        )
        if kind == "trace":
            print_label_progress(storage, audit)
    else:
        blind = not open_book
        _review_in_terminal(url, audit, rater_name, plain_text=plain_text, blind=blind, second_rater_share=share)


def _find_user_name() -> str:
    """The name of the operating system's user; UsageError if it has none, as in some containers."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        raise UsageError("your user name is not known.", "Give your name, as in --rater ada.") from None


def _check_sample_options(
    sample: int | None, kind: str, stratify: str | None, *, redraw: bool, open_book: bool
) -> None:
    """Raise UsageError for an option of a sample without --sample, or one that samples do not have."""
    options = {"--kind": kind != "trace", "--stratify": stratify is not None, "--redraw": redraw}
    for name in (name for name, is_set in options.items() if is_set and sample is None):
        raise UsageError(
            f"{name} works only with {SAMPLE_OPTION}.",
            f"Add {SAMPLE_OPTION} 200 to draw a label sample, or {SAMPLE_OPTION} to continue one.",
        )
    if open_book and sample is not None:
        raise UsageError(
            "--open-book cannot be combined with --sample.",
            "Remove --open-book: samples are labelled without knowing the author.",
        )


def _served_command(audit: str | None, rater: str, *, open_book: bool, second_rater_share: float | None) -> list[str]:
    """The command that each browser session runs."""
    arguments = ["review", *([audit] if audit else []), "--rater", rater]
    arguments += ["--open-book"] if open_book else []
    arguments += [] if second_rater_share is None else ["--second-share", str(second_rater_share)]
    return [sys.executable, "-P", "-m", "auditor", *arguments]


def _serve(command: list[str], audit: str | None, rater: str, *, host: str, port: int, public_url: str | None) -> None:
    """Serve the app to browsers until Ctrl-C."""
    try:
        from auditor.tui.web_server import ReviewServer
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "textual_serve":
            raise
        raise UsageError(
            "--serve needs the package textual-serve.", "Install it: pip install 'auditor[serve]'"
        ) from None
    if public_url is None and host in EVERY_INTERFACE:
        raise UsageError(
            f"Browsers cannot open the address {host}.",
            f"Add the address that they use, such as --public-url http://review.example.org:{port}.",
        )

    def announce(address: str) -> None:
        subject = f"the review of '{audit}'" if audit else "the review"
        print_message(f"To open {subject} as {rater} in a browser: {address}")
        print_message("Whoever has this address reviews under this name. Ctrl-C ends the review.")

    ReviewServer(command, host=host, port=port, public_url=public_url, announce=announce).serve()


def _review_in_terminal(
    url: str, audit: str | None, rater: str, *, plain_text: bool, blind: bool, second_rater_share: float
) -> None:
    """Open the app, or its plain text form, and name the audits whose conflicts are all resolved afterwards."""
    from auditor.tui.plain_text_app import needs_plain_text, run_plain_text_review

    open_by_audit: dict[str, int] = {}

    def on_decided(name: str) -> None:
        """Resume the audit after a decision, and count its conflicts that are still open."""
        open_by_audit[name] = resume_after_review(name, storage=url)

    run_app: Callable[..., None] = run_plain_text_review
    if not (plain_text or needs_plain_text()):
        from auditor.tui.app import run_review

        run_app = run_review
    run_app(url, audit, rater=rater, blind=blind, second_rater_share=second_rater_share, on_decided=on_decided)
    for name in (name for name, n_open in open_by_audit.items() if n_open == 0):
        print_message(
            f"All conflicts of '{name}' are resolved. To see the report: {format_command('report', name, storage=url)}"
        )
