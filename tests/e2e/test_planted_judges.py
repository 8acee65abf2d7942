"""Judges with planted faults on sets of unequal size: means over sets and pooled figures come back, each in its place.

People prefer the item with the lower number, in a set of 5 items and in one of 7. Transitivity, commutativity or
agreement with people of some judges differ between the sets, so that the mean over sets and the pooled share are far
apart. The judges are asked by the command that repeats the paper's table, for letters and for JSON after reasoning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pytest

from auditor.probes.logic.figures.schema import LogicReport
from auditor.reports.output import render_report
from auditor.run import open_audit
from tests.support.audit_configs import KEY, scripted_tables
from tests.support.cli_runner import succeed
from tests.support.comparison_judge import choice_reply, letter_reply, read_question
from tests.support.fake_server import FakeServer, Reply, Request
from tests.support.replicated_audits import place_of
from tests.support.stored_rows import find_part

SIZES = {"few": 5, "many": 7}
N_FEW_PAIRS, N_PAIRS = 10, 10 + 21
N_SUBSETS = 1 + 21
"""Subsets of 5 items of both sets."""
ALWAYS_WRONG = list(combinations(range(SIZES["many"]), 2))[::2]
"""11 of the 21 pairs of the large set."""
MODEL_BY_ROW = {
    "Gemma-2-9B": "linear", "Llama-3-8B": "mixed", "Mistral-7B": "by-position", "Phi-3-medium": "half-right",
}  # fmt: skip
EXPECTED: dict[str, dict[str, tuple[float, float]]] = {
    "linear": {"H.": (1, 1), "s_tran(5)": (1, 1), "s_comm": (1, 1), "s_neg": (1, 1)},
    "mixed": {"s_tran(5)": (0.5, 21 / N_SUBSETS), "s_comm": (1, 1), "s_neg": (1, 1)},
    "by-position": {
        "H.": (0.75, 20.5 / N_PAIRS), "s_comm": (0.5, N_FEW_PAIRS / N_PAIRS), "s_neg": (0.5, N_FEW_PAIRS / N_PAIRS),
    },
    "half-right": {"H.": ((1 + 10 / 21) / 2, 20 / N_PAIRS), "s_comm": (1, 1), "s_neg": (1, 1)},
}  # fmt: skip
"""By judge and measure: the mean over sets, and the pooled figure."""


def names_first(judge: str, set_name: str, first: int, second: int) -> bool:
    """Whether a judge prefers the item shown first; `mixed` prefers the items of the small set in a circle."""
    if judge == "mixed" and set_name == "few":
        return (second - first) % 5 in (1, 2)
    if judge == "by-position" and set_name == "many":
        return True
    is_right = first < second
    if judge == "half-right" and set_name == "many" and tuple(sorted((first, second))) in ALWAYS_WRONG:
        return not is_right
    return is_right


def reply(request: Request) -> Reply:
    """The answer of the judge that the model's name says, as a letter or as JSON after reasoning."""
    judge, question = str(request.body["model"]), read_question(request)
    (set_name, first), (_, second) = question.first.split(), question.second.split()
    is_first = names_first(judge, set_name, int(first), int(second))
    if question.negated and (judge, set_name) != ("by-position", "many"):
        is_first = not is_first
    return choice_reply(request, "A" if is_first else "B") if request.schema else letter_reply(0.9 if is_first else 0.1)


@dataclass(frozen=True)
class Replicated:
    """Table 1 with the judges: the cells that the command prints, its page, and the database."""

    cells: list[dict[str, Any]]
    page: str
    storage: str


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Replicated:
    folder = tmp_path_factory.mktemp("planted")
    items, models, page = (folder / name for name in ("items.csv", "models.toml", "page.md"))
    storage = f"sqlite:///{folder}/a.db"
    rows = [f"{name},{i},{name} {i},{-i}" for name, size in SIZES.items() for i in range(size)]
    items.write_text("\n".join(["context,item,text,human", *rows]) + "\n", encoding="utf-8")
    with FakeServer(reply) as server:
        header = 'name = "x"\njudges = []\nprobes = { logic = { items = "items.csv" } }\n'
        models.write_text(header + scripted_tables(server.url, *EXPECTED), encoding="utf-8")
        words = ("replicate", "logic", "--table", "1", "--models", models, "--data", f"SummEval={items}")
        names = [word for row, judge in MODEL_BY_ROW.items() for word in ("--as", f"{judge}={row}")]
        output = succeed(*words, *names, "--json", "-o", page, "--storage", storage, SCRIPTED_KEY=KEY)
    return Replicated(json.loads(output.stdout)["cells"], page.read_text("utf-8"), storage)


def test_planted_judges_have_the_planted_figures(replicated: Replicated) -> None:
    filled = [cell for cell in replicated.cells if cell["recomputed"]]
    values = {(*place_of(cell)[1:], cell["detail"].split(", ")[1]): cell["recomputed"] for cell in filled}
    for row, judge in MODEL_BY_ROW.items():
        for form in ("direct", "CoT"):
            for measure, (mean, pooled) in EXPECTED[judge].items():
                assert mean == pooled or abs(mean - pooled) >= 0.08
                place = (f"{row}, {form}", f"SummEval, {measure}")
                assert values[*place, "mean over sets"]["value"] == pytest.approx(mean), (judge, form, measure)
                assert values[*place, "pooled"]["value"] == pytest.approx(pooled), (judge, form, measure)
                assert values[*place, "mean over sets"]["n"] == 2
    rows = [line for line in replicated.page.splitlines() if line.startswith("| Phi-3-medium, direct (SummEval) |")]
    [mean_row, pooled_row] = [line for line in rows if "| SummEval, H. |" in line]
    for line, value, averaged in ((mean_row, "| 73.810 (", "mean over sets"), (pooled_row, "| 64.516 (", "pooled")):
        assert value in line
        assert averaged in line


@pytest.mark.parametrize("name", ["rep-logic-summeval-1", "rep-logic-summeval-cot-1"])
def test_the_report_of_each_audit_has_both_figures_in_their_columns(replicated: Replicated, name: str) -> None:
    report = open_audit(name, storage=replicated.storage).report()
    logic = find_part(report, LogicReport)
    for row in logic.judges:
        [transitivity] = [entry for entry in row.transitivity if entry.k == 5 and not entry.calibrated]
        figures = {
            "H.": (row.instances.human_agreement, row.human_agreement),
            "s_tran(5)": (transitivity.instances, transitivity.share),
            "s_comm": (row.instances.commutativity, row.commutativity),
            "s_neg": (row.instances.negation, row.negation),
        }
        for measure, expected in EXPECTED[row.judge].items():
            assert [figure.value for figure in figures[measure]] == pytest.approx(expected), (row.judge, measure)
    lines = render_report(report, "markdown").splitlines()
    for judge, measure, mean, pooled in (
        ("by-position", "Commutativity", "0.50", "0.32"),
        ("by-position", "Agreement with people", "0.75", "0.66"),
        ("half-right", "Agreement with people", "0.74", "0.65"),
        ("linear", "Commutativity", "1.00", "1.00"),
    ):
        [place, *_] = [i for i, line in enumerate(lines) if line.startswith(f"| {judge} | {measure} |")]
        cells = [cell.strip() for cell in lines[place].split("|")]
        assert (cells[3][:4], cells[4][:4]) == (mean, pooled), lines[place]
        header = max(i for i in range(place) if lines[i].startswith("| Judge |"))
        assert [cell.strip() for cell in lines[header].split("|")][3:5] == ["Mean over sets", "Pooled"]
