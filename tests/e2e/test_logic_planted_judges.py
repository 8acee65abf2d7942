"""Judges with planted faults, from the server's answers to the printed table: means over sets and pooled figures.

The sets differ in size, so that the two averages differ by 0.1 or more: a figure in the place of the other one fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.support.audit_configs import KEY, KEY_VARIABLE
from tests.support.cli_runner import auditor
from tests.support.comparison_judge import choice_reply, letter_reply, read_question
from tests.support.fake_server import FakeServer, Reply, Request

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
