"""Logic's tables run by the command: the audits that are planned, and their figures with a scripted judge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.errors import UsageError
from auditor.probes.logic.settings import LogicProbe
from auditor.replications.planning import ReplicationOptions, plan_audits, plan_imports
from auditor.replications.presets import load_paper
from tests.support.audit_configs import KEY, scripted_tables
from tests.support.cli_runner import CommandOutput, auditor
from tests.support.comparison_judge import choice_reply, letter_reply, read_question
from tests.support.fake_server import FakeServer, Reply, Request
from tests.support.replicated_audits import place_of
from tests.support.stored_rows import find_part

LETTERS = "abcde"
N_PAIRS = len(LETTERS) * (len(LETTERS) - 1) // 2
DATA = ("SummEval", "NovelEval", "CaTeRS")


@pytest.fixture
def items(tmp_path: Path) -> Path:
    """Two sets of five items; people prefer the first in the alphabet."""
    rows = [f"set {i},{letter},{-ord(letter)}" for i in range(2) for letter in LETTERS]
    file = tmp_path / "items.csv"
    file.write_text("\n".join(["context,item,human", *rows]) + "\n", encoding="utf-8")
    return file


def write_models(folder: Path, *names: str, url: str = "http://127.0.0.1:9") -> Path:
    """A configuration file with models of a scripted server."""
    path = folder / "models.toml"
    header = 'name = "x"\njudges = []\nprobes = { logic = { items = "items.csv" } }\n'
    path.write_text(header + scripted_tables(url, *names), encoding="utf-8")
    return path


def plan(folder: Path, table: str | None = None, *, limit: int | None = None, **files: Path) -> dict[str, AuditConfig]:
    paths = {name.replace("_", "-"): str(path) for name, path in files.items()}
    return plan_audits(
        load_paper("logic"), ReplicationOptions(table, models_file=write_models(folder, "m"), files=paths, limit=limit)
    )


def probe(config: AuditConfig) -> LogicProbe:
    return find_part(config.probes, LogicProbe)


def test_audits_of_a_data_set_share_its_file(tmp_path: Path, items: Path) -> None:
    audits = plan(tmp_path, SummEval=items, limit=7)
    assert [*audits] == ["SummEval", "SummEval-CoT", "SummEval-wordings"]
    assert {(probe(audit).items, probe(audit).sets) for audit in audits.values()} == {(str(items), 7)}
    forms = [(probe(audit).answer, probe(audit).cot, probe(audit).paraphrases) for audit in audits.values()]
    assert forms == [("probability", False, 1), ("structured", True, 1), ("probability", False, 10)]


def test_labels_of_people_belong_to_all_audits_of_their_data_set(tmp_path: Path, items: Path) -> None:
    audits = plan(tmp_path, CaTeRS=items, CaTeRS_people=tmp_path / "labels.csv", SummEval=items)
    labels = {name: probe(audit).people for name, audit in audits.items()}
    with_labels = {name for name, path in labels.items() if path == str(tmp_path / "labels.csv")}
    assert with_labels == {"CaTeRS", "CaTeRS-CoT", "CaTeRS-wordings"}


def test_questions_are_repeated_for_figure_4_only(tmp_path: Path, items: Path) -> None:
    assert probe(plan(tmp_path, "figure-4", SummEval=items)["SummEval"]).sample_answer == "cot"
    assert probe(plan(tmp_path, "1", SummEval=items)["SummEval"]).sample_answer == "same"


def test_the_small_form_has_made_up_data_and_asks_the_embedded_model_only() -> None:
    options = ReplicationOptions(is_small=True)
    audits = plan_audits(load_paper("logic"), options)
    assert [*audits] == [*DATA, *(f"{name}-{form}" for form in ("CoT", "wordings") for name in DATA)]
    assert {model.model for audit in audits.values() for model in audit.models} == {"embedded/smollm2-135m"}
    assert all(Path(probe(audit).items).is_file() for audit in audits.values())
    [(name, file)] = plan_imports(load_paper("logic"), options).values()
    assert (name, file.is_file()) == ("rep-logic-feedback-train-small", True)


def test_a_tuned_model_is_named_on_the_spot(server: FakeServer, tmp_path: Path, items: Path) -> None:
    """It is audited under the published name, at the server of the file's model of the same provider."""
    server.script = prefer_first_letter
    words = ("--table", "3", "--as", "repaired=openai/my/tuned", "--limit", "1", "--json")
    result = replicate(server, tmp_path, items, *words, data="Feedback")
    cells = [cell for cell in list_cells(result) if cell["recomputed"] and not cell["is_own_row"]]
    assert {(cell["published"]["row"], cell["model"]) for cell in cells} == {("REPAIR-ed data", "repaired")}
    assert {request.body["model"] for request in server.requests} == {"mine", "other", "my/tuned"}


def test_a_model_named_on_the_spot_needs_no_file(items: Path) -> None:
    options = ReplicationOptions("3", files={"Feedback": str(items)}, named_models={"repaired": "openai/my/tuned"})
    [config] = plan_audits(load_paper("logic"), options).values()
    assert [(model.name, model.model) for model in config.models] == [("repaired", "openai/my/tuned")]
    with pytest.raises(UsageError, match="--as repaired=MODEL: no effect with --small"):
        plan_audits(load_paper("logic"), replace(options, is_small=True))


def prefer_first_letter(request: Request) -> Reply:
    """Answer as people do; after reasoning, decide for the item that is shown first."""
    question = read_question(request)
    names_first = (question.first < question.second) != question.negated
    return choice_reply(request, "A") if request.schema else letter_reply(0.9 if names_first else 0.2)


def replicate(server: FakeServer, folder: Path, items: Path, *words: str, data: str = "SummEval") -> CommandOutput:
    models = write_models(folder, "mine", "other", url=server.url)
    storage = f"sqlite:///{folder}/logic.db"
    source = f"{data}={items}"
    return auditor(
        "replicate", "logic", "--models", models, "--data", source, "--storage", storage, *words, SCRIPTED_KEY=KEY
    )


def list_cells(result: CommandOutput) -> list[dict[str, Any]]:
    assert result.returncode == 0, result.stderr
    cells: list[dict[str, Any]] = json.loads(result.stdout)["cells"]
    return cells


def test_letters_and_reasoning_fill_the_rows_of_a_model(server: FakeServer, tmp_path: Path, items: Path) -> None:
    server.script = prefer_first_letter
    cells = list_cells(replicate(server, tmp_path, items, "--table", "1", "--as", "mine=Gemma-2-9B", "--json"))
    n_letters, n_reasoned = (sum(bool(r.schema) == is_json for r in server.requests) for is_json in (False, True))
    assert n_reasoned == 2 * 2 * N_PAIRS * 4
    assert n_letters >= n_reasoned
    details = ("SummEval, mean over sets, mine", "SummEval-CoT, mean over sets, mine")
    filled = [cell for cell in cells if cell["recomputed"] and cell["detail"] in details]
    values = {place_of(cell)[1:]: (cell["recomputed"]["value"], cell["difference"]) for cell in filled}
    assert values["Gemma-2-9B, direct", "SummEval, H."] == (1, pytest.approx(1 - 0.738))
    assert values["Gemma-2-9B, direct", "SummEval, s_neg"] == (1, pytest.approx(1 - 0.782))
    assert values["Gemma-2-9B, CoT", "SummEval, H."] == (0.5, pytest.approx(0.5 - 0.735))
    assert values["Gemma-2-9B, CoT", "SummEval, s_comm"] == (0, pytest.approx(-0.719))
    reasons = {cell["not_run"] for cell in cells if cell["published"]["column"].startswith("NovelEval")}
    assert reasons == {"no_counterpart", "no_audit"}
    assert {cell["published"]["row"] for cell in cells if cell["is_own_row"]} == {"other, direct", "other, CoT"}
    n_requests = len(server.requests)
    repeated = list_cells(replicate(server, tmp_path, items, "--table", "1", "--as", "mine=Gemma-2-9B", "--json"))
    assert (repeated, len(server.requests)) == (cells, n_requests)


def test_a_model_compared_in_one_table_is_listed_in_the_others(server: FakeServer, tmp_path: Path, items: Path) -> None:
    server.script = prefer_first_letter
    cells = list_cells(replicate(server, tmp_path, items, "--table", "figure-9", "--as", "mine=Gemma-2-9B", "--json"))
    assert {cell["published"]["row"] for cell in cells} == {"mine", "other"}
    assert {cell["recomputed"]["value"] for cell in cells if cell["recomputed"]} == {1}
    missing = [cell["published"]["column"] for cell in cells if cell["not_run"]]
    assert missing == [f"s_tran({k})" for k in (6, 6, 7, 7, 8, 8)] * 2  # as the mean over sets, and pooled


def test_rankings_are_compared_with_the_published_ones(server: FakeServer, tmp_path: Path, items: Path) -> None:
    server.script = prefer_first_letter
    page = tmp_path / "page.html"
    words = ("--table", "4", "--as", "mine=GPT-3.5-0125")
    cells = list_cells(replicate(server, tmp_path, items, *words, "--json"))
    filled = {cell["published"]["column"]: cell for cell in cells if cell["recomputed"] and not cell["is_own_row"]}
    assert {cell["published"]["row"] for cell in filled.values()} == {"GPT-3.5-turbo"}
    assert filled["PairS"]["recomputed"]["value"] == filled["PairS calibrated"]["recomputed"]["value"] == 1
    assert filled["PairS"]["difference"] == pytest.approx(1 - 0.335)
    assert replicate(server, tmp_path, items, *words, "-o", str(page)).returncode == 0
    text = page.read_text("utf-8")
    for phrase in ('<tr class="muted"', "yours: mean over sets: mine", "other definition", "In percent."):
        assert phrase in text
    assert "Consistency of preferences" in text
    assert "Spearman’s rho of a ranking by merge sort" in text
    assert "Made-up data" not in text
    assert "SummEval: layout not verified on a real file; " in text
    assert "NovelEval: layout" not in text


@pytest.mark.parametrize(
    ("table", "data", "row", "model", "published"),
    [
        ("3", "Feedback", "REPAIR-ed data", "repaired", 0.701),
        ("5", "MS-MARCO", "Perturbed data", "perturbed-marco", 0.747),
        ("6", "Feedback", "REPAIR-ed data (sampled)", "repaired-sampled", 0.691),
        ("7", "Feedback", "REPAIR-ed data B-T", "repaired-bradley-terry", 0.712),
    ],
)
def test_tuned_models_are_named_by_the_data_that_they_were_tuned_on(
    server: FakeServer, tmp_path: Path, items: Path, table: str, data: str, row: str, model: str, published: float
) -> None:
    server.script = prefer_first_letter
    words = ("--table", table, "--as", f"mine={model}", "--limit", "1", "--json")
    cells = list_cells(replicate(server, tmp_path, items, *words, data=data))
    filled = [cell for cell in cells if cell["recomputed"] and not cell["is_own_row"]]
    differences = {place_of(cell)[1:]: cell["difference"] for cell in filled}
    assert {name for name, _ in differences} == {row}
    assert differences[row, "H."] == pytest.approx(1 - published)
