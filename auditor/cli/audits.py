"""Commands about audits: run, status, report, review, graph."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from auditor.cli.options import AsJson, Storage
from auditor.cli.output import command, put, put_json, put_json_text, say, table

if TYPE_CHECKING:
    from auditor.cli.progress import RunProgress
    from auditor.config import AuditConfig
    from auditor.reports.report_schema import Report


class Engine(StrEnum):
    """Where requests go out from."""

    LOCAL = "local"
    RAY = "ray"


FORMATS = {".html": "html", ".json": "json", ".md": "markdown"}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for function in (run, status, report, review, graph):
        app.command()(function)


def run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The audit's TOML or YAML file.")],
    storage: Storage = None,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the report here (.html, .json or .md).")
    ] = None,
    engine: Annotated[
        Engine | None, typer.Option("--engine", help="Where requests go out from; the config's word if not given.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option("--ray-address", metavar="HOST:PORT", help="The Ray cluster (or set RAY_ADDRESS).")
    ] = None,
) -> None:
    """Run an audit, or go on with one: what is recorded is never asked again.

    Example: auditor run examples/quickstart.toml --report report.html
    """
    from auditor.cli.progress import RunProgress
    from auditor.config import load_config
    from auditor.errors import Interrupted
    from auditor.run import planned_survey, run_audit

    if ray_address is not None:
        os.environ["RAY_ADDRESS"] = ray_address  # the user's own choice, which needs no trust
    loaded = load_config(config).with_run(engine=engine and engine.value, ray_address=ray_address)
    format_ = _format_of(report, None) if report else None
    if report is not None:
        _require_writable(report)
    samples = loaded.samples_on(planned_survey(loaded))
    with RunProgress(judged=_expected_reviews(loaded, samples.values())) as progress:
        try:
            audit = run_audit(loaded, storage=storage, progress=progress, signals=True)
        except Interrupted as error:
            raise Interrupted(error.message, f"Go on with: {command('run', str(config), storage=storage)}") from None
    made = audit.report()
    _summarise(made, progress)
    if report and format_:
        _write(made, report, format_)
    if report is None:
        say(f"The report: {command('report', audit.name, storage=audit.storage)}")
    if waiting := made.conflicts.states.get("open", 0) + made.conflicts.states.get("disputed", 0):
        say(f"{waiting} conflicts wait for a person: {command('review', audit.name, storage=audit.storage)}")


def _expected_reviews(config: AuditConfig, samples: Iterable[int]) -> int:
    limit = config.probes.review.traces
    traces = sum(k if limit == "all" else min(limit, k) for k in samples)
    return traces * sum(config.panel_size(m.name) for m in config.models)


def _summarise(report: Report, progress: RunProgress) -> None:
    from auditor.reports.cost.savings import told
    from auditor.reports.pages import run_summary

    if report.alignment:
        table(run_summary.summary_columns(), run_summary.summary_rows(report), data=False)
    if report.task:
        table(run_summary.task_columns(), run_summary.task_rows(report), data=False)
    if report.semantic:
        table(run_summary.semantic_columns(), run_summary.semantic_rows(report), data=False)
    if report.logic:
        table(run_summary.logic_columns(), run_summary.logic_rows(report), data=False)
    say(f"{progress.asked} calls in {progress.seconds:.1f} s, {progress.recorded} known already; cost {progress.cost}.")
    for saved in report.savings:
        say(told(saved))
    for row in report.coverage.total:
        if row.ok < row.planned:
            losses = [f"{n} {outcome}" for outcome, n in row.losses.items()]
            losses += [f"{row.missing} not asked"] if row.missing else []
            say(f"  {row.planned - row.ok} of {row.planned} {row.what} cannot be used: {', '.join(losses)}")


def report(
    audit: Annotated[str, typer.Argument(metavar="AUDIT", help="The audit's name.")],
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="html, json or markdown; else by the file's suffix.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write to a file.")] = None,
    storage: Storage = None,
) -> None:
    """Make an audit's report: one HTML file with no need of a network, JSON, or Markdown.

    HTML goes to AUDIT.html unless -o names a file; JSON and Markdown go to standard output.

    Example: auditor report moral-alignment --format json
    """
    from auditor.reports.pages.render import render
    from auditor.run import open_audit

    format_ = _format_of(output, format)
    made = open_audit(audit, storage=storage).report()
    if output is None and format_ != "html":
        (put_json_text if format_ == "json" else put)(render(made, format_))
        return
    _write(made, output or Path(f"{audit}.html"), format_)


def _format_of(output: Path | None, given: str | None) -> str:
    from auditor.errors import UsageError

    format_ = given or (FORMATS.get(output.suffix) if output else "html")
    if format_ is None or format_ not in FORMATS.values():
        what = f"'{given}'" if given else f"the suffix of '{output}'"
        raise UsageError(f"{what} is no report format.", "Known are html, json and markdown (.html, .json, .md).")
    return format_


def _require_writable(path: Path) -> None:
    """Raise UsageError where the report could not be written, before anything is paid for."""
    import os

    from auditor.errors import UsageError

    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        what = "is a folder" if path.is_dir() else "lies in a folder that does not exist or cannot be written to"
        raise UsageError(f"--report: {path} {what}.", "Name a file in a folder that is there.")


def _write(made: Report, path: Path, format_: str) -> None:
    from auditor.atomic_files import write_whole
    from auditor.reports.pages.render import render

    write_whole(render(made, format_), path)
    say(f"Report: {path.resolve()}")


def status(
    audit: Annotated[str | None, typer.Argument(metavar="[AUDIT]", help="One audit; else all of them.")] = None,
    storage: Storage = None,
    as_json: AsJson = False,
) -> None:
    """How far audits have come: stage, coverage, open conflicts, cost.

    Example: auditor status moral-alignment --json
    """
    from auditor.reports.audit_status import status_of
    from auditor.run import storage_url
    from auditor.run.batches import waiting_words
    from auditor.storage import audits
    from auditor.storage.database import open_database

    with open_database(storage_url(storage), create=False) as db:
        wanted = [audits.get(db, audit)] if audit else audits.all_audits(db)
        found = [status_of(db, a) for a in wanted]
    if as_json:
        put_json(found)
        return
    columns = [
        "audit",
        "stage",
        "traces ok",
        "verdicts ok",
        "comparisons ok",
        "moral answers ok",
        "conflicts",
        "open",
        "cost (USD)",
        "updated",
    ]
    rows = [
        [
            s["audit"], s["stage"], _of(s, "traces"), _of(s, "verdicts"),
            f"{s['comparisons_ok']} of {s['comparisons']}", f"{s['moral_answers_ok']} of {s['moral_answers']}",
            s["conflicts"], s["open"], _cost(s["cost_usd"], s["unpriced"]), s["updated_at"][:16].replace("T", " "),
        ]
        for s in found
    ]  # fmt: skip
    table(columns, rows)
    for s in found:
        if waits := waiting_words([batch["calls"] for batch in s["batches"]]):
            say(f"{s['audit']}: {waits}; the run that submitted them, or the same command again, collects them.")
        for name in s["drift"]:
            say(f"{s['audit']}: what stands behind {name} changed; see the report, or --json.")


def _of(s: dict[str, Any], what: str) -> str:
    """What is usable of what is planned; imported scores have neither traces nor verdicts."""
    planned = s[f"{what}_planned"]
    return f"{s[f'{what}_ok']} of {planned}" if planned else "-"


def _cost(cost: float | None, unpriced: int) -> str:
    if cost is None:
        return "unknown" if unpriced else "no calls"
    return f"{cost:.4f}" + (f" + {unpriced} unpriced" if unpriced else "")


def review(
    audit: Annotated[str | None, typer.Argument(metavar="[AUDIT]", help="Which to review; else choose.")] = None,
    rater: Annotated[str | None, typer.Option("--rater", help="Who decides; your user name if not given.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Plain text without a full screen; chosen by itself without a terminal.")
    ] = False,
    open_book: Annotated[
        bool, typer.Option("--open-book", help="Show authors, verdicts and survey before the decision.")
    ] = False,
    second_share: Annotated[
        float | None, typer.Option("--second-share", min=0, max=1, help="Share of conflicts put to two raters.")
    ] = None,
    serve: Annotated[bool, typer.Option("--serve", help="Open the app in a browser, on this machine only.")] = False,
    host: Annotated[str, typer.Option("--host", help="With --serve: the interface to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="With --serve: the port.")] = 8321,
    public_url: Annotated[
        str | None,
        typer.Option("--public-url", metavar="URL", help="With --serve: how browsers reach it, if otherwise."),
    ] = None,
    storage: Storage = None,
) -> None:
    """Settle by hand what the models could not, in a terminal app.

    Example: auditor review moral-alignment --rater ada
    """
    import getpass

    from auditor.review.session import SECOND_SHARE
    from auditor.storage.database import STORAGE_VARIABLE, database_url
    from auditor.tui.plain_text_app import needs_plain, run_plain

    url, who = database_url(storage), rater or getpass.getuser()
    if serve:
        from auditor.tui import web_server as browser

        os.environ[STORAGE_VARIABLE] = url  # not among the words, which everybody on this machine can list
        words = ["review", *([audit] if audit else []), "--rater", who]
        words += ["--open-book"] if open_book else []
        words += [] if second_share is None else ["--second-share", str(second_share)]
        browser.serve([sys.executable, "-P", "-m", "auditor", *words], host=host, port=port, public_url=public_url)
        return
    left: dict[str, int] = {}

    def on_decided(name: str) -> None:
        from auditor.run import resume_after_review

        left[name] = resume_after_review(name, storage=url)

    share = SECOND_SHARE if second_share is None else second_share
    if plain or needs_plain():
        run_plain(url, audit, rater=who, blind=not open_book, second_share=share, on_decided=on_decided)
    else:
        from auditor.tui.app import run_review

        run_review(url, audit, rater=who, blind=not open_book, second_share=share, on_decided=on_decided)
    for name in (name for name, n in left.items() if n == 0):
        say(f"Nothing is open any more in '{name}': {command('report', name, storage=url)}")


def graph() -> None:
    """Print the audit's graph as Mermaid.

    Example: auditor graph > graph.mmd
    """
    from auditor import bootstrap

    bootstrap.prepare()
    from auditor.agents.graph import mermaid

    put(mermaid())
