"""Loading some cells' rows gives the same records as loading all rows, on both engines."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from auditor.domain import Answer, Call, Cell, Message, Outcome, Purpose
from auditor.models.reasoning import has_thinking
from auditor.storage import ledger, records, results
from auditor.storage.database import open_database
from tests.support.synthetic_audit import populate

OPENINGS = (
    *("<think>", "<thinking>", "<thought>", "<reasoning>", "<reason>", "<reflection>", "<scratchpad>", "<seed:think>"),
    *("<antthinking>", "<mm:think>", "<longcat_think>", '<details type="reasoning" done="true">', "[THINK]", "◁think▷"),
    *("<details style='color:gray;' open><summary>Thinking...</summary>", "<|channel|>analysis<|message|>"),
    *("<|channel>thought", "<unused94>thought", "<|START_THINKING|>", "<|begin_of_thought|>", "<|inner_prefix|>"),
    *("<|think:start|>", "<|think|>"),
)


def test_one_cell_has_its_own_rows_in_order(storage: str) -> None:
    with open_database(storage) as db:
        audit = populate(db, models=3, countries=3, topics=3, samples=2)
        populate(db, models=3, countries=3, topics=3, samples=2, name="other", seed=1)
        traces, verdicts = results.load_traces(db, audit.id), results.load_verdicts(db, audit.id)
        for cell in {trace.cell for trace in traces}:
            assert results.load_traces(db, audit.id, [cell]) == [trace for trace in traces if trace.cell == cell]
            assert results.load_verdicts(db, audit.id, [cell]) == [v for v in verdicts if v.cell == cell]
            expected = [v for v in verdicts if v.cell == cell and v.model == "birch"]
            assert results.load_verdicts(db, audit.id, [cell], "birch") == expected
        assert results.load_traces(db, audit.id, [Cell("Atlantis", "divorce")]) == []


def test_some_cells_have_their_own_rows_in_order(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_KEYS_PER_QUERY", 4)
    with open_database(storage) as db:
        audit = populate(db, models=3, countries=4, topics=5, samples=2)
        traces, verdicts = results.load_traces(db, audit.id), results.load_verdicts(db, audit.id)
        cells = sorted({trace.cell for trace in traces})
        for some_cells in (cells[2:13], cells[::3], cells[::-1], [cells[7], cells[2]], []):
            expected_traces = [trace for trace in traces if trace.cell in some_cells]
            assert results.load_traces(db, audit.id, some_cells) == expected_traces
            assert results.load_verdicts(db, audit.id, some_cells) == [v for v in verdicts if v.cell in some_cells]
            of_birch = [trace for trace in expected_traces if trace.model == "birch"]
            assert results.load_traces(db, audit.id, some_cells, "birch") == of_birch


@pytest.mark.parametrize(
    ("text", "tokens", "is_hidden"),
    [("I think so.", None, False), ("<b>I</b> think that 3 > 2.", 0, False), ("ok", 12, True),
     *((f"\n{opening}Hm.", None, True) for opening in OPENINGS), ("Hm.</think>ok", None, True),
     ("<details><summary>Norms</summary>They weigh it.</details>ok", None, False),
     ("<reasons>A</reasons>ok", None, False), ("<think>\n\n</think>\n\nok", None, False),
     ("It ends with `</think>`.", None, False), ("ok<|im_end|>", None, False),
     ("<|channel|>final<|message|>ok", None, False),
     ("<answer>ok</answer>", None, False),
     ("Here are my reasoning steps: Hm.\n[BEGIN FINAL RESPONSE]ok", None, True)],
)  # fmt: skip
def test_hidden_reasoning_is_seen_in_counts_and_tags(
    storage: str, text: str, tokens: int | None, is_hidden: bool
) -> None:
    with open_database(storage) as db:
        audit = populate(db, models=1, countries=1, topics=1, samples=1)
        [trace] = results.load_traces(db, audit.id)
        call = Call(trace.model, "openai/x", (Message("user", "hi"),), Purpose.DIRECT)
        asyncio.run(ledger.record_answer(db, call, Answer(call.key, Outcome.OK, text, reasoning_tokens=tokens)))
        records.save_records(db, audit.id, [replace(trace, key=call.key)])
        assert results.has_hidden_reasoning(db, audit.id, trace.model, has_thinking) is is_hidden
