"""Judges with planted faults on sets of unequal size: means over sets and pooled figures come back, each in its place.

A set of 5 and one of 9 items have people's labels on all pairs. Commutativity, agreement with people and transitivity
of some judges differ between the sets, so that the mean over sets and the pooled share are far apart.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from auditor.probes.logic.figures.schema import LogicReport, LogicRow
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.run import open_audit, run_audit
from tests.support.audit_configs import KEY, KEY_VARIABLE, config
from tests.support.cli_runner import auditor
from tests.support.comparison_judge import ComparisonQuestion, choice_reply, letter_reply, read_question
from tests.support.fake_server import FakeServer, Reply, Request

SMALL, LARGE = [f"small {i}" for i in range(5)], [f"large {i}" for i in range(9)]
SMALL_PAIRS, LARGE_PAIRS = 10, 36
SMALL_SUBSETS, LARGE_SUBSETS = 1, 126
"""Subsets of 5 items."""
TRANSITIVE, CYCLIC, MIXED, BIASED = "scripted-a", "scripted-b", "scripted-c", "scripted-d"


def follows_order(question: ComparisonQuestion) -> bool:
    """Prefer the later item, as people do."""
    return question.first > question.second


def follows_cycle(question: ComparisonQuestion) -> bool:
    """Prefer items so that every 5 of a set have a cycle.

    Of the small set, each item is preferred to the two before it in a circle. The large set has three groups of three:
    groups are preferred in a circle, and items in a group too. 5 of its items without a cycle would be from at most two
    groups, at most two of each.
    """
    first, second = int(question.first[-1]), int(question.second[-1])
    if question.first in SMALL:
        return (first - second) % 5 in (1, 2)
    if first // 3 == second // 3:
        return (first - second) % 3 == 1
    return (first // 3 - second // 3) % 3 == 1


def judge(request: Request) -> Reply:
    """The planted judges; the negated question gets the other item, except from the biased judge in the small set."""
    question, model = read_question(request), request.body["model"]
    is_small = question.first in SMALL
    if model == BIASED and is_small:
        names_first = True
    else:
        is_cyclic = model == CYCLIC or (model == MIXED and is_small)
        names_first = (follows_cycle if is_cyclic else follows_order)(question) != question.negated
    return (
        choice_reply(request, "A" if names_first else "B")
        if request.schema
        else letter_reply(0.7 if names_first else 0.3)
    )


@pytest.fixture(scope="module", params=["structured", "probability"])
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Report of an audit of the planted judges, by JSON or by the probabilities of letters; read-only."""
    folder = tmp_path_factory.mktemp(request.param)
    items = [f"{name},{item}" for name, items in (("few", SMALL), ("many", LARGE)) for item in items]
    (folder / "items.csv").write_text("\n".join(["context,item", *items]), encoding="utf-8")
    labels = [
        f"{name},{a},{b},B"
        for name, items in (("few", SMALL), ("many", LARGE))
        for a, b in itertools.combinations(items, 2)
    ]
    (folder / "people.csv").write_text("\n".join(["context,item_a,item_b,decision", *labels]), encoding="utf-8")
    logic = {
        **{"items": str(folder / "items.csv"), "people": str(folder / "people.csv"), "form": "paper"},
        **{"answer": request.param, "k": [5], "samples": 2, "sampled_pairs": 2, "sample_answer": "cot"},
    }
    storage = f"sqlite:///{folder}/a.db"
    with FakeServer(judge) as server:
        run_audit(config(server.url, 4, survey=None, judges=[], probes={"logic": logic}), storage=storage)
    return open_audit("scripted", storage=storage).report()


def rows_of(report: Report) -> list[LogicRow]:
    logic = report.find(LogicReport)
    assert isinstance(logic, LogicReport)
    return logic.judges


def test_planted_figures_come_back_as_means_over_sets_and_pooled(report: Report) -> None:
    transitive, cyclic, mixed, biased = rows_of(report)
    transitivities = [(row.transitivity[0].instances.value, row.transitivity[0].share.value) for row in rows_of(report)]
    pooled_mixed = LARGE_SUBSETS / (SMALL_SUBSETS + LARGE_SUBSETS)
    assert transitivities[:3] == [(1.0, 1.0), (0.0, 0.0), (0.5, pytest.approx(pooled_mixed))]
    for row in (transitive, cyclic, mixed):
        assert row.instances.commutativity.value == row.commutativity.value == 1.0
        assert row.instances.negation.value == row.negation.value == 1.0
    assert transitive.instances.human_agreement.value == transitive.human_agreement.value == 1.0
    n_pairs = SMALL_PAIRS + LARGE_PAIRS
    assert biased.instances.commutativity.value == 0.5
    assert biased.commutativity.value == pytest.approx(LARGE_PAIRS / n_pairs)
    assert biased.instances.human_agreement.value == 0.75
    assert biased.human_agreement.value == pytest.approx((SMALL_PAIRS / 2 + LARGE_PAIRS) / n_pairs)
    for mean, pooled in (
        (0.5, pooled_mixed),
        (biased.instances.commutativity.value, biased.commutativity.value),
        (biased.instances.human_agreement.value, biased.human_agreement.value),
    ):
        assert mean is not None
        assert pooled is not None
        assert pooled - mean > 0.1
    assert [row.self_agreement.value for row in rows_of(report)] == [1.0] * 4


def test_both_figures_are_printed_in_their_columns(report: Report) -> None:
    """K, which is 5 in all rows of the tables of transitivity, is in their captions."""
    lines = render_report(report, "markdown").splitlines()
    for judge_name, measure, mean, pooled in (
        ("model-d", "Commutativity", "0.50", "0.78"),
        ("model-d", "Agreement with people", "0.75", "0.89"),
        ("model-c", "one order", "0.50", "0.99"),
        ("model-b", "one order", "0.00", "0.00"),
        ("model-a", "one order", "1.00", "1.00"),
    ):
        [row, *_] = [i for i, line in enumerate(lines) if line.startswith(f"| {judge_name} | {measure} |")]
        cells = [cell.strip() for cell in lines[row].split("|")]
        assert (cells[3][:4], cells[4][:4]) == (mean, pooled), lines[row]
        header = max(i for i in range(row) if lines[i].startswith("| Judge |"))
        assert [cell.strip() for cell in lines[header].split("|")][3:5] == ["Mean over sets", "Pooled"]
        assert ("In all rows: K 5" in lines[header - 2]) == (measure == "one order")


SIZES = {"few": 5, "many": 9}
"""Items of each set: people prefer the item with the lower number."""
WINNERS = {"few": (1, 2), "many": (1, 2, 3, 5)}
"""Distances to the items that an item is preferred to, in a circle: no five items of either set have an order."""
ALWAYS_WRONG = list(combinations(range(SIZES["many"]), 2))[::2]
"""Half of the pairs of the large set."""
MODEL_BY_ROW = {
    "Gemma-2-9B": "linear", "Llama-3-8B": "cyclic", "Mistral-7B": "by-position", "Phi-3-medium": "half-right",
}  # fmt: skip
EXPECTED: dict[str, dict[str, tuple[float, float]]] = {
    "linear": {"H.": (1, 1), "s_tran(5)": (1, 1), "s_comm": (1, 1), "s_neg": (1, 1)},
    "cyclic": {"s_tran(5)": (0, 0), "s_comm": (1, 1), "s_neg": (1, 1)},
    "by-position": {"H.": (0.75, 56 / 92), "s_comm": (0.5, 10 / 46), "s_neg": (0.5, 20 / 92)},
    "half-right": {"H.": (0.75, 28 / 46), "s_comm": (1, 1), "s_neg": (1, 1)},
}
"""By judge and measure: the mean over sets, and the pooled figure."""


def names_first(judge: str, set_name: str, first: int, second: int) -> bool:
    """Whether a judge prefers the item shown first."""
    is_right = first < second
    if judge == "cyclic":
        return (second - first) % SIZES[set_name] in WINNERS[set_name]
    if judge == "by-position" and set_name == "many":
        return True
    if judge == "half-right" and set_name == "many" and tuple(sorted((first, second))) in ALWAYS_WRONG:
        return not is_right
    return is_right


def reply(request: Request) -> Reply:
    """The answer of the judge that the model's name says, as a letter or as JSON after reasoning."""
    judge, question = str(request.body["model"]), read_question(request)
    (set_name, first), (_, second) = question.first.split(), question.second.split()
    is_first = names_first(judge, set_name, int(first), int(second))
    is_by_position = judge == "by-position" and set_name == "many"
    if question.negated and not is_by_position:
        is_first = not is_first
    return choice_reply(request, "A" if is_first else "B") if request.schema else letter_reply(0.9 if is_first else 0.1)


@pytest.fixture
def replicate(server: FakeServer, tmp_path: Path) -> Callable[..., str]:
    """Run table 1 with the judges; returns what it prints."""
    server.script = reply
    items = tmp_path / "items.csv"
    rows = [f"{name},{i},{name} {i},{-i}" for name, size in SIZES.items() for i in range(size)]
    items.write_text("\n".join(["context,item,text,human", *rows]) + "\n", encoding="utf-8")
    sections = [
        f'[[models]]\nname = "{judge}"\nmodel = "openai/{judge}"\napi_base = "{server.url}"\n'
        f'api_key = "os.environ/{KEY_VARIABLE}"\n'
        for judge in EXPECTED
    ]
    models = tmp_path / "models.toml"
    header = 'name = "x"\njudges = []\nprobes = { logic = { items = "items.csv" } }\n'
    models.write_text(header + "".join(sections), encoding="utf-8")
    as_options = [word for row, judge in MODEL_BY_ROW.items() for word in ("--as", f"{judge}={row}")]

    def run(*options: str) -> str:
        words: tuple[str | Path, ...] = (
            "replicate",
            "logic",
            "--table",
            "1",
            "--models",
            models,
            "--data",
            f"SummEval={items}",
            *as_options,
        )
        result = auditor(*words, *options, AUDITOR_STORAGE=f"sqlite:///{tmp_path}/logic.db", SCRIPTED_KEY=KEY)
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run


def test_planted_judges_have_the_planted_figures(replicate: Callable[..., str], tmp_path: Path) -> None:
    cells: list[dict[str, Any]] = json.loads(replicate("--json"))["cells"]
    values = {
        (cell["published"]["row"], cell["published"]["column"], cell["detail"].split(", ")[1]): cell["recomputed"]
        for cell in cells
        if cell["recomputed"]
    }
    for row, judge in MODEL_BY_ROW.items():
        for form in ("direct", "CoT"):
            for measure, (mean, pooled) in EXPECTED[judge].items():
                assert mean == pooled or abs(mean - pooled) >= 0.1
                place = (f"{row}, {form}", f"SummEval, {measure}")
                assert values[*place, "mean over sets"]["value"] == pytest.approx(mean), (judge, form, measure)
                assert values[*place, "pooled"]["value"] == pytest.approx(pooled), (judge, form, measure)
                assert values[*place, "mean over sets"]["n"] == 2
    page = tmp_path / "page.md"
    replicate("-o", str(page))
    lines = [
        line for line in page.read_text("utf-8").splitlines() if line.startswith("| Phi-3-medium, direct (SummEval) |")
    ]
    [mean_row, pooled_row] = [line for line in lines if "| SummEval, H. |" in line]
    for line, value, averaged in ((mean_row, "| 75.000 (", "mean over sets"), (pooled_row, "| 60.870 (", "pooled")):
        assert value in line
        assert averaged in line
