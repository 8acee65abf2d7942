"""`auditor logic repair`: each option changes what it says, and wrong ones are refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cli_runner import auditor, fail, succeed
from tests.support.recorded_comparisons import NAMES, import_recorded_comparisons

N_ANSWERS = len(NAMES) * (len(NAMES) - 1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with the audit `judged`, whose judge errs in a tenth of its answers."""
    folder = tmp_path_factory.mktemp("repair")
    url = f"sqlite:///{folder}/comparisons.db"
    import_recorded_comparisons(url, folder, 0.1)
    return url


def repair(url: str, *options: str) -> dict[str, Any]:
    result = succeed("logic", "repair", "judged", *options, "--json", "--storage", url)
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


def write(url: str, folder: Path, *options: str) -> tuple[list[dict[str, Any]], str]:
    """The rows that the command writes, and their description."""
    file = folder / "rows.jsonl"
    repair(url, *options, "-o", str(file))
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    return rows, file.with_name("rows.jsonl.md").read_text("utf-8")


def stage(result: dict[str, Any], name: str, *, negated: bool = False) -> dict[str, Any]:
    [row] = [row for row in result["stages"] if (row["stage"], row["negated"]) == (name, negated)]
    return dict(row)


def test_the_size_of_subsets_is_that_of_k(url: str) -> None:
    three, five = (repair(url, "--k", str(k)) for k in (3, 5))
    assert (three["k"], five["k"]) == (3, 5)
    assert stage(five, "raw")["transitivity"] < stage(three, "raw")["transitivity"] < 1
    assert stage(five, "repaired")["transitivity"] == 1


def test_consistency_is_measured_once_and_named_by_its_average(url: str) -> None:
    """JSON, the table and the card have one transitivity of each stage: the mean over sets."""
    result = repair(url, "--noise", "0.1")
    [judge] = result["judges"]
    for name in ("transitivity", "commutativity"):
        assert judge[name] == [stage(result, key)[name] for key in ("perturbed", "repaired")]
        for key in ("raw", "perturbed", "repaired"):
            estimate = stage(result, key)["estimates"][name]
            assert (estimate["value"], estimate["averaged"]) == (stage(result, key)[name], "instances")
    printed = auditor("logic", "repair", "judged", "--storage", url)
    assert printed.stdout.count("transitivity") == printed.stdout.count("commutativity") == 1
    assert "Transitivity and commutativity are means over sets" in printed.stderr.replace("\n", " ")


def test_noise_is_a_stage_and_its_seed_repeats_it(url: str) -> None:
    assert {row["stage"] for row in repair(url)["stages"]} == {"raw", "repaired", "size-matched"}
    noisy = [repair(url, "--noise", "0.2", "--seed", seed) for seed in ("1", "1", "2")]
    assert noisy[0] == noisy[1] != noisy[2]
    assert stage(noisy[0], "perturbed")["transitivity"] < stage(noisy[0], "raw")["transitivity"]


@pytest.mark.parametrize("name", ["raw", "perturbed", "size-matched"])
def test_the_rows_are_of_the_stage_that_is_named(url: str, tmp_path: Path, name: str) -> None:
    """The raw answers have no negated form; of the repaired ones, as many are drawn as there were."""
    written, description = write(url, tmp_path, "--stage", name, "--noise", "0.1")
    assert len(written) == N_ANSWERS
    assert {row["relation"] for row in written} == ({"standard", "negated"} if name == "size-matched" else {"standard"})
    assert f"stage `{name}`" in description


def test_both_forms_of_a_judge_are_perturbed_and_counted(tmp_path: Path) -> None:
    """Table, file and card have the same counts; a tenth of each form is reversed."""
    url = f"sqlite:///{tmp_path}/comparisons.db"
    pairs = [(a, b) for a in NAMES for b in NAMES if a != b]
    right = {(a, b, form): (a < b) == (form == "standard") for a, b in pairs for form in ("standard", "negated")}
    lines = [f"j,c,{a},{b},{form},{'A' if is_first else 'B'}" for (a, b, form), is_first in right.items()]
    file = tmp_path / "judge.csv"
    file.write_text("\n".join(["judge,context,item_a,item_b,relation,decision", *lines]), encoding="utf-8")
    succeed("import", "comparisons", file, "--audit", "judged", "--storage", url)
    rows, card = write(url, tmp_path, "--stage", "perturbed", "--noise", "0.1", "--answers", "letter")
    reversed_rows = [
        row["relation"] for row in rows
        if (row["chosen"] == "A") != right[row["item_a"], row["item_b"], row["relation"]]
    ]  # fmt: skip
    assert len(rows) == 2 * N_ANSWERS
    assert Counter(reversed_rows) == dict.fromkeys(("standard", "negated"), round(0.1 * N_ANSWERS))
    result = repair(url, "--noise", "0.1")
    n_repaired = stage(result, "repaired", negated=True)["rows"]
    assert stage(result, "size-matched", negated=True)["rows"] == min(2 * N_ANSWERS, n_repaired)
    for name in ("raw", "perturbed"):
        assert stage(result, name)["rows"] == N_ANSWERS
        assert stage(result, name, negated=True)["rows"] == 2 * N_ANSWERS
    assert "| j | perturbed + negated |" in card
    assert "So was this share of those to the negated question." in card
    without, card = write(url, tmp_path, "--stage", "perturbed", "--noise", "0.1", "--no-negated")
    assert len(without) == N_ANSWERS
    assert "negated question" not in card
    assert {row["negated"] for row in repair(url, "--noise", "0.1", "--no-negated")["stages"]} == {False}


def test_rows_in_negated_form_double_the_repaired_ones(url: str, tmp_path: Path) -> None:
    with_negated, _ = write(url, tmp_path)
    without, _ = write(url, tmp_path, "--no-negated")
    assert len(with_negated) == 2 * len(without)
    assert {row["relation"] for row in without} == {"standard"}


@pytest.mark.parametrize(
    ("answers", "texts"), [("json", {'{"answer": "A"}', '{"answer": "B"}'}), ("letter", {"A", "B"})]
)
def test_answers_are_written_as_asked(url: str, tmp_path: Path, answers: str, texts: set[str]) -> None:
    rows, _ = write(url, tmp_path, "--answers", answers)
    assert {row["chosen"] for row in rows} == texts
    messages, _ = write(url, tmp_path, "--answers", answers, "--form", "chat")
    assert {row["chosen"][0]["content"] for row in messages} == texts


def test_each_method_rates_the_items_in_its_own_way(url: str, tmp_path: Path) -> None:
    """Elo is recomputed from the judge's answers, item by item in the order of the set; K = 16, scale 400."""
    flips = {method: repair(url, "--method", method)["flips"] for method in ("win-loss", "bradley-terry", "elo")}
    raw, _ = write(url, tmp_path, "--stage", "raw", "--no-negated", "--answers", "letter")
    ratings = dict.fromkeys(NAMES, 1000.0)
    answers = {(row["item_a"], row["item_b"]): row["chosen"] == "A" for row in raw}
    for (a, b), is_first in sorted(answers.items()):
        expected = 1 / (1 + 10 ** ((ratings[b] - ratings[a]) / 400))
        ratings[a] += 16 * (is_first - expected)
        ratings[b] -= 16 * (is_first - expected)
    implied = {(a, b): ratings[a] > ratings[b] for a, b in answers}
    reversed_pairs = {pair for pair, is_first in answers.items() if is_first != implied[pair]}
    assert {(flip["item_a"], flip["item_b"]) for flip in flips["elo"]} == reversed_pairs
    assert flips["elo"] != flips["win-loss"]
    assert write(url, tmp_path, "--method", "elo")[1].count("method: elo") == 1
    rates = {a: np.mean([is_first for (x, y), is_first in answers.items() if x == a] +
                        [not is_first for (x, y), is_first in answers.items() if y == a]) for a in NAMES}  # fmt: skip
    reversed_pairs = {
        (a, b) for (a, b), is_first in answers.items() if (rates[a] - rates[b]) * (is_first - 0.5) < -1e-9
    }
    assert {(flip["item_a"], flip["item_b"]) for flip in flips["win-loss"]} == reversed_pairs


def test_the_table_lists_flips_and_ratings_only_if_asked(url: str) -> None:
    plain = auditor("logic", "repair", "judged", "--storage", url)
    full = auditor("logic", "repair", "judged", "--diff", "--ratings", "--storage", url)
    assert plain.returncode == full.returncode == 0
    for title in ("follows", "Bradley-Terry"):
        assert title not in plain.stdout
        assert title in full.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "x"], "--method: 'x' is unknown. Use win-loss, elo or bradley-terry."),
        (["--stage", "x"], "Use raw, perturbed, repaired or size-matched."),
        (["--form", "x"], "Use preference, chat, completion or chat-completion."),
        (["--answers", "x"], "Use json or letter."), (["--stage", "perturbed"], "'perturbed' requires --noise"),
        (["--stage", "raw", "--answers", "letter"], "--stage, --answers: no effect without -o."),
        (["--form", "chat"], "--form: no effect without -o."),
        (["--noise", "0.1", "--to-review"], "not verdicts of the judge"), (["--judge", "x"], "has no judge 'x'"),
        (["-o", "rows.txt"], "must end in .jsonl or .parquet"),
        (["--seed", "-1"], "'--seed': must be greater than or equal to 0"),
        (["--k", "2"], "'--k': must be greater than or equal to 3"), (["--noise", "1.1"], "'--noise'"),
        (["--noise", "nan"], "'--noise'"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(url: str, options: list[str], message: str, tmp_path: Path) -> None:
    result = fail("logic", "repair", "judged", *options, "--storage", url, cwd=tmp_path, code=2, message=message)
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_item_without_a_comparison_has_no_rating(storage: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    rows = "judge,context,item_a,item_b,relation,decision\nj,c,a,b,standard,A\nj,c,a,unknown,standard,\n"
    file.write_text(rows, encoding="utf-8")
    succeed("import", "comparisons", file, "--audit", "judged", "--storage", storage)
    result = succeed("logic", "repair", "judged", "--ratings", "--storage", storage)
    assert "nan" not in result.stdout
    [line] = [line for line in result.stdout.splitlines() if "unknown" in line]
    assert line.count("–") == 3
