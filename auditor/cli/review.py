"""The command `review`: conflicts and random samples, and the decisions and labels of human reviewers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, TypeAlias

import typer

from auditor.cli.label_plan import DEFAULT_DIFFERENCE, DEFAULT_HALF_WIDTH, print_label_plan, print_label_progress
from auditor.cli.labelling import DRAWN_SAMPLE, SAMPLE_OPTION, label_in_terminal, prepare_label_sample
from auditor.console.options import StorageOption, label_kind_option, resolve_audit_name
from auditor.console.output import format_command, print_message
from auditor.errors import UsageError

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
    import getpass

    from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
    from auditor.run import open_stored_database, resolve_storage_url
    from auditor.storage import audits
    from auditor.storage.database import STORAGE_VARIABLE

    url, rater_name = resolve_storage_url(storage), rater or getpass.getuser()
    if plan:
        print_label_plan(storage, audit, half_width, difference)
        return
    _check_sample_options(sample, kind, stratify, redraw=redraw, open_book=open_book)
    if sample is not None:
        audit = prepare_label_sample(url, audit, sample, kind=kind, stratify=stratify, redraw=redraw)
    share = DEFAULT_SECOND_RATER_SHARE if second_rater_share is None else second_rater_share
    if serve:
        with open_stored_database(url) as db:  # fails here, not on each page
            if audit is not None:
                audits.get_audit(db, audit)
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
        from auditor.run import resume_after_review

        open_by_audit[name] = resume_after_review(name, storage=url)

    run_app: Callable[..., None] = run_plain_text_review
    if not (plain_text or needs_plain_text()):
        from auditor.tui.launch import run_review

        run_app = run_review
    run_app(url, audit, rater=rater, blind=blind, second_rater_share=second_rater_share, on_decided=on_decided)
    for name in (name for name, n_open in open_by_audit.items() if n_open == 0):
        print_message(
            f"All conflicts of '{name}' are resolved. To see the report: {format_command('report', name, storage=url)}"
        )
