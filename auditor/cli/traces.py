"""The command `traces`: read answers of models, with their prompts, verdicts and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.console.options import AuditArgument, JsonOption, StorageOption
from auditor.console.output import create_console, print_data, print_json_items, print_message

if TYPE_CHECKING:
    from auditor.exports.traces.reader import TraceReader
    from auditor.exports.traces.selection import TraceSelection
    from auditor.reports.data.traces.schema import TraceReport

DEFAULT_LIMIT = 10


def traces(
    audit: AuditArgument,
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="NAME", help="Only this model; may be repeated.")
    ] = None,
    country: Annotated[
        list[str] | None, typer.Option("--country", metavar="NAME", help="Only this country; may be repeated.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="Only this topic, or item of a task; may be repeated."),
    ] = None,
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            "--outcome", metavar="NAME", help="Only answers with this outcome, such as refused; may be repeated."
        ),
    ] = None,
    addressing_judge: Annotated[
        bool, typer.Option("--addressing-judge", help="Only answers that address their judge.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="Show at most N answers; 0 shows all.")
    ] = DEFAULT_LIMIT,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what models were asked and answered.

    Each answer is shown with its prompt, score or outcome, cost, and the judges' verdicts. While conflicts are open,
    judges are numbered instead of named. For pages to read in a browser: auditor report --traces

    Example: auditor traces moral-alignment --country Japan --outcome refused
    """
    from auditor.exports.traces.reader import TraceReader
    from auditor.exports.traces.selection import TraceFilter
    from auditor.run import open_stored_audit

    with open_stored_audit(audit, storage) as (db, stored_audit):
        reader = TraceReader(db, stored_audit.name)
        selection = reader.select(TraceFilter(model or (), country or (), topic or (), outcome or (), addressing_judge))
        selected = (trace for cell_traces in reader.iterate_cells(selection) for trace in cell_traces.traces)
        shown = islice(selected, limit or None)
        if as_json:
            print_json_items(trace.model_dump(mode="json") for trace in shown)
        else:
            _print_traces(shown)
        _print_summary(reader, selection, limit)


def _print_traces(shown: Iterator[TraceReport]) -> None:
    """Print answers one after the other; a prompt that equals the previous one is printed once."""
    from auditor.reports.document import Block, Paragraph, Section
    from auditor.reports.render.plain_text import render_text_blocks
    from auditor.reports.sections.traces.answer import build_answer_blocks, build_prompt_blocks, title_answer

    previous_prompt = None
    for number, trace in enumerate(shown):
        is_repeated = number > 0 and trace.prompt == previous_prompt
        prompt: Sequence[Block] = [Paragraph("Prompt as above.")] if is_repeated else build_prompt_blocks(trace.prompt)
        section = Section("answer", title_answer(trace), [*prompt, *build_answer_blocks(trace)])
        print_data(("\n" * (number > 0)) + render_text_blocks([section], create_console(data=True).width))
        previous_prompt = trace.prompt


def _print_summary(reader: TraceReader, selection: TraceSelection, limit: int) -> None:
    """Say how many answers were shown, how to see others, and why judges are not named."""
    from auditor.reports.number_format import pluralize

    n_shown = min(selection.n_traces, limit or selection.n_traces)
    if not reader.n_traces:
        print_message(f"'{reader.audit.name}' has no answers yet. To ask the models, run the audit: auditor run CONFIG")
    elif not selection.n_traces:
        print_message(f"None of {pluralize(reader.n_traces, 'answer')} matches.")
    elif n_shown < selection.n_traces:
        noun = "answer" if selection.n_traces == reader.n_traces else "matching answer"
        print_message(
            f"Shown: {n_shown} of {pluralize(selection.n_traces, noun)}. Choose with --model, --country, --topic, "
            "--outcome or --addressing-judge; --limit 0 shows all."
        )
    if reader.is_simulated and n_shown:
        print_message("All models are simulated: a program made these answers and verdicts.")
    if reader.n_open_conflicts and n_shown:
        conflicts = pluralize(reader.n_open_conflicts, "conflict")
        print_message(
            f"{conflicts} await a human decision. Until then, judges have numbers instead of names; the numbers "
            "differ from answer to answer."
        )
