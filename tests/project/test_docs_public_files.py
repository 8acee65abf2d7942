"""The table of public files: each row's command reads a small made-up file of that layout, with values by hand."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from auditor.domain import Cell
from auditor.probes.distribution.figures.schema import DistributionReport
from auditor.probes.logic.figures.schema import LogicReport
from auditor.probes.semantic.figures.schema import SemanticReport
from auditor.reports.data.report_schema import Report
from auditor.run import open_audit
from auditor.surveys import load_survey
from tests.probes.logic.test_published import MARKS, RELATIONS, VOTES, write_story_file
from tests.probes.semantic.test_published_questions import MIC_HEADER, MIC_ROWS, write_answers, write_table
from tests.support.cli_runner import auditor
from tests.support.docs_workspace import Letters
from tests.support.inspect_logs import write_log
from tests.support.json_lines import write_json_lines
from tests.support.opinion_surveys import write_opinion_survey
from tests.surveys.official_files import pew_columns, pew_sav, write_csv, wvs_columns

PAGE = Path(__file__).parents[2] / "docs" / "exchange.md"
STORAGE = "sqlite:///audits.db"
ESS_MAPPING = """title = "ESS"
source = "ESS ERIC."
wording = "Would most people in {country} agree about {topic}?"
scale = ["disagree", "agree"]
[columns]
country = ["cntry"]
weight = "anweight"
[topics]
freehms = "freedom"
[choices]
"agree strongly" = { score = 1, codes = [1] }
"agree" = { score = 0.5, codes = [2] }
"disagree strongly" = { score = -1, codes = [5] }
[nonresponse]
"refusal" = { codes = [7] }
"""
SCALE_MAPPING = """title = "T"
source = "S"
wording = "Is {topic} right in {country}?"
scale = ["no", "yes"]
PLACE
[topics]
q = "divorce"
[answers]
low = 1
high = 3
[nonresponse]
"no answer" = { codes = [9] }
"""
GSS_MAPPING = SCALE_MAPPING.replace("PLACE", 'country = "United States"\n[columns]\n[keep]\nyear = [2022]')
BAROMETER_MAPPING = SCALE_MAPPING.replace("PLACE", '[columns]\ncountry = ["country"]\n[countries]\n1 = "Algeria"')


class Layout(NamedTuple):
    """A small file of a published layout.

    Attributes:
        write: writes the files into the current folder.
        words: what replaces the words of the command in capitals, and names of files in it.
        check: what is true afterwards.
    """

    write: Callable[[Path], object]
    words: Mapping[str, str]
    check: Callable[[], bool]


def rows(name: str, *lines: str) -> Callable[[Path], object]:
    """Write a file of these lines."""
    return lambda folder: (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def together(*writers: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda folder: [write(folder) for write in writers]


def report() -> Report:
    return open_audit("a", storage=STORAGE).report()


def score_is(country: str, topic: str, score: float) -> Callable[[], bool]:
    """The imported survey has this score in a cell."""
    return lambda: load_survey("out.csv").scores[Cell(country, topic)] == pytest.approx(score, abs=1e-6)


def has_countries(*names: str) -> Callable[[], bool]:
    return lambda: set(names) <= set(load_survey("out.csv").countries)


def accuracy_is(value: float) -> Callable[[], bool]:
    """The first model's accuracy in a task."""

    def check() -> bool:
        task = report().task
        return task is not None and task.models[0].accuracy.value == pytest.approx(value)

    return check


def has_ok_samples(n: int) -> Callable[[], bool]:
    return lambda: sum(row.ok for row in report().coverage.models) == n


def n_items(n: int, name: str = "items.jsonl") -> Callable[[], bool]:
    return lambda: len(Path(name).read_text(encoding="utf-8").splitlines()) == n


def _has_raters() -> bool:
    task = report().task
    return task is not None and task.raters is not None and task.raters.answers == 3


def _has_moral_error() -> bool:
    task = report().task
    return (
        task is not None and task.models[0].score is not None and task.models[0].score.mae.value == pytest.approx(0.3)
    )


def _write_inspect_log(folder: Path) -> None:
    sample: dict[str, Any] = {"id": "Germany | divorce", "text": "SCORE = 0.5", "scores": {}}
    write_log(folder / "f.eval", [sample])


def _write_promptfoo(folder: Path) -> None:
    result = {
        "testIdx": 0, "vars": {"country": "Germany", "topic": "divorce"}, "provider": {"id": "p"}, "failureReason": 0,
        "prompt": {"label": "x"}, "response": {"output": "It is accepted."}, "namedScores": {"KEY": 0.5},
    }  # fmt: skip
    (folder / "f.json").write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": [result]}}))


def _write_label_studio(folder: Path) -> None:
    choice = {"from_name": "verdict", "type": "choices", "value": {"choices": ["VALID"]}}
    data = {"model": "m", "country": "Germany", "topic": "divorce", "sample": 0}
    annotation = {"completed_by": {"email": "a@b.c"}, "result": [choice]}
    (folder / "f.json").write_text(json.dumps([{"id": 1, "data": data, "annotations": [annotation]}]))
    _import_traces(folder)


def _import_traces(folder: Path) -> None:
    rows("t.csv", "model,country,topic,sample,text", "m,Germany,divorce,0,SCORE = 0.5")(folder)
    command = ["import", "traces", "t.csv", "--survey", "wvs7-sample", "--audit", "a", "--storage", STORAGE]
    assert auditor(*command, cwd=folder).returncode == 0


def _write_exported_labels(folder: Path) -> None:
    _import_traces(folder)
    rows("first.csv", "rater,model,country,topic,sample,verdict", "ann,m,Germany,divorce,0,VALID")(folder)
    for words in (["import", "labels", "first.csv", "--audit", "a"], ["export", "labels", "a", "-o", "labels.csv"]):
        assert auditor(*words, "--storage", STORAGE, cwd=folder).returncode == 0


def _write_official(mapping: str) -> Callable[[Path], object]:
    """A file of the time series of the WVS or of EVS/WVS, in which every answer is 10 on the scale from 1 to 10."""
    from auditor.surveys.mapping import load_mapping

    topics = list(load_mapping(mapping).topics)
    columns: dict[str, list[Any]] = {"cntry_AN": ["DE"] * 4, "cntry": [276] * 4, "gwght": [1.0] * 4}
    if mapping == "wvs-trend-wave6":
        columns = {"COUNTRY_ALPHA": ["DEU"] * 4, "S017": [1.0] * 4, "S002VS": [6, 6, 6, 5]}
    return lambda folder: write_csv(folder / "f.csv", {**columns, **{name: [10] * 4 for name in topics}})


ANSWERS_TO_ITEMS = together(
    rows("f.csv", "model,id,answer", "m,x,A", "m,y,no"),
    rows("i.csv", "id,question,options,truth", "x,True?,yes|no,yes", "y,False?,yes|no,yes"),
)
LAYOUTS: Mapping[str, Layout] = {
    "World Values Survey, wave 7": Layout(
        lambda folder: write_csv(folder / "f.csv", wvs_columns()), {"FILE": "f.csv"}, has_countries("Germany")
    ),
    "WVS time series": Layout(_write_official("wvs-trend-wave6"), {"FILE": "f.csv"}, has_countries("Germany")),
    "Joint EVS/WVS": Layout(_write_official("evs-wvs-2017"), {"FILE": "f.csv"}, has_countries("Germany")),
    "Pew Global Attitudes": Layout(
        lambda folder: pew_sav(folder / "f.sav", pew_columns()), {"FILE": "f.sav"}, has_countries("South Korea")
    ),
    "European Social Survey": Layout(
        together(
            rows("ess.toml", ESS_MAPPING),
            rows("f.csv", "cntry,anweight,freehms", "NO,1,1", "NO,1,5", "NO,2,2", "NO,5,7"),
        ),
        {"FILE": "f.csv"},
        score_is("Norway", "freedom", 0.25),  # (1 × 1 - 1 × 1 + 2 × 0.5) / 4
    ),
    "General Social Survey": Layout(
        together(rows("gss.toml", GSS_MAPPING), rows("f.csv", "year,q", "2022,1", "2022,2", "2021,3")),
        {"FILE": "f.csv"},
        score_is("United States", "divorce", -0.5),  # (-1 + 0) / 2
    ),
    "Arab Barometer": Layout(
        together(rows("mine.toml", BAROMETER_MAPPING), rows("f.csv", "country,q", "1,3", "1,2", "1,9")),
        {"FILE": "f.csv"},
        score_is("Algeria", "divorce", 0.5),  # (1 + 0) / 2
    ),
    "GlobalOpinionQA": Layout(
        rows("f.csv", "country,topic,p1,p2,p3", "Japan,divorce,0.2,0.3,0.5"),
        {"FILE": "f.csv", "K": "3"},
        score_is("Japan", "divorce", 0.3),  # -1 × 0.2 + 0 × 0.3 + 1 × 0.5
    ),
    "WorldValuesBench": Layout(
        together(
            write_opinion_survey, rows("f.csv", "model,country,topic,mode,sample,answer", "m,Japan,divorce,sampled,0,5")
        ),
        {"FILE": "f.csv", "S": "survey.csv"},
        lambda: (distribution := report().find(DistributionReport)) is not None and distribution.models[0].model == "m",
    ),
    "Scores of any program": Layout(
        rows("f.csv", "model,country,topic,method,score", "m,Germany,divorce,direct,0.5", "m,Japan,divorce,direct,"),
        {"FILE": "f.csv"}, has_ok_samples(1),
    ),
    "Inspect AI (`.eval`": Layout(_write_inspect_log, {"FILE": "f.eval"}, has_ok_samples(1)),
    "Inspect AI, all other logs": Layout(
        lambda folder: write_log(
            folder / "f.eval",
            [{"id": i, "target": "4", "text": text, "scores": {"match": ("C", text)}} for i, text in enumerate("445")],
        ),
        {"FILE": "f.eval"},
        accuracy_is(2 / 3),
    ),
    "AltTest": Layout(
        together(
            rows("llm.json", json.dumps({"gpt": {"1": 1, "2": 0}})),
            rows("human.json", json.dumps({"w1": {"1": 1, "2": 0}, "w2": {"1": 0}})),
        ),
        {"LLM_FILE": "llm.json", "HUMAN_FILE": "human.json"},
        _has_raters,
    ),
    "MoralCoT": Layout(
        rows(
            "f.csv", "study,context,condition,human.response,scenario,proba_1,model,model_type",
            "line,deli,a,0.8,May she?,0.5,m,x",
        ),
        {"FILE": "f.csv"},
        _has_moral_error,
    ),
    "answers to questions": Layout(ANSWERS_TO_ITEMS, {"FILE": "f.csv", "ITEMS": "i.csv"}, accuracy_is(0.5)),
    "promptfoo": Layout(_write_promptfoo, {"FILE": "f.json"}, has_ok_samples(1)),
    "Label Studio": Layout(_write_label_studio, {"FILE": "f.json"}, lambda: True),
    "Moral Consistency Corpus": Layout(
        rows("f.csv", "question_id,paraphrased,model_output", "q,Is it?,Yes.", "q,Would it be?,Yes.", "q,So?,No."),
        {"FILE": "f.csv"}, lambda: report().find(SemanticReport) is not None,
    ),
    "Moral Integrity Corpus": Layout(
        lambda folder: write_table(folder / "MIC.csv", MIC_HEADER, *MIC_ROWS), {"FILE": "MIC.csv"},
        lambda: report().find(SemanticReport) is not None,
    ),
    "JudgeBench": Layout(
        rows(
            "f.csv", "judge,context,item_a,item_b,relation,decision", "j,Write a poem.,first,second,standard,A",
            "j,Write a poem.,second,first,standard,B",
        ),
        {"FILE": "f.csv"},
        lambda: (logic := report().find(LogicReport)) is not None and logic.judges[0].judge == "j",
    ),
    "CaTeRS": Layout(
        lambda folder: write_story_file(folder / "stories", *MARKS, *RELATIONS),
        {"FOLDER": "stories", "items.jsonl": "items.jsonl --min-events 2"}, n_items(3),
    ),
    "SummEval": Layout(
        lambda folder: write_json_lines(
            folder / "f.jsonl",
            *({"id": "1", "model_id": m, "decoded": m, "expert_annotations": [{"coherence": 2}]} for m in ("M0", "M1")),
        ),
        {"FILE": "f.jsonl"},
        n_items(2),
    ),
    "NovelEval": Layout(
        together(
            rows("corpus.tsv", "0-0\tA film won.", "0-1\tIt rained."), rows("queries.tsv", "0\tWhich film won?"),
            rows("qrels.txt", "0 Q0 0-0 2", "0 Q0 0-1 0"),
        ),
        {"FOLDER": "."},
        n_items(2),
    ),
    "MS MARCO": Layout(
        lambda folder: write_json_lines(
            folder / "f.jsonl",
            {"query": "q?", "query_id": 9, "passages": [{"is_selected": 1, "passage_text": t} for t in ("yes", "no")]},
        ),
        {"FILE": "f.jsonl"},
        n_items(2),
    ),
    "RankGPT": Layout(
        together(
            rows("marco-train-10k-gpt3.5.json", json.dumps(["[2] > [1]"])),
            lambda folder: write_json_lines(
                folder / "f.jsonl", {"query": "q?", "retrieved_passages": [{"text": t, "docid": t} for t in ("x", "y")]}
            ),
        ),
        {"FILE": "f.jsonl"},
        n_items(2),
    ),
    "Summarize from Feedback": Layout(
        lambda folder: write_json_lines(folder / "f.json", *VOTES), {"FILE": "f.json"}, n_items(3)
    ),
    "TruthfulQA": Layout(lambda folder: write_answers(folder, "csv"), {"FILE": "TruthfulQA.csv"}, n_items(1)),
    "HellaSwag": Layout(
        lambda folder: write_json_lines(folder / "f.jsonl", {"ctx": "He", "endings": ["sits.", "runs."], "label": 0}),
        {"FILE": "f.jsonl"}, n_items(1),
    ),
    "MMLU": Layout(
        lambda folder: write_json_lines(folder / "f.jsonl", {"question": "2?", "choices": ["one", "two"], "answer": 1}),
        {"FILE": "f.jsonl"}, n_items(1),
    ),
    "GSM8K": Layout(
        lambda folder: write_json_lines(folder / "f.jsonl", {"question": "1 + 1?", "answer": "Two.\n#### 2"}),
        {"FILE": "f.jsonl"}, n_items(1),
    ),
    "labels that `auditor export labels` wrote": Layout(_write_exported_labels, {}, lambda: True),
}  # fmt: skip
TESTED_ELSEWHERE = ("tables that `auditor export tables` wrote",)
"""Rows without a command to type as it stands: tests/imports/test_recorded_audits.py has them."""


def read_table_rows() -> dict[str, list[str]]:
    """The commands of each row of the table, by what the file is."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## Public files by name") :]
    cells = re.findall(r"^\| (.+?) \| (.+) \|$", section[: section.index("\n## ", 4)], re.MULTILINE)
    return {name: re.findall(r"`(auditor [^`]+)`", commands) for name, commands in cells if name != "file"}


def find_row(beginning: str) -> list[str]:
    """The commands of the row whose first cell begins so."""
    [commands] = [commands for name, commands in read_table_rows().items() if name.startswith(beginning)]
    return commands


def test_every_row_of_the_table_is_tried() -> None:
    names = list(read_table_rows())
    assert len(names) >= 20
    tried = (*LAYOUTS, *TESTED_ELSEWHERE)
    assert [name for name in names if not name.startswith(tried)] == []


@pytest.mark.parametrize("beginning", LAYOUTS)
def test_the_command_of_a_row_reads_its_layout(beginning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("auditor.models.embeddings.load_encoder", lambda name: Letters())
    monkeypatch.setattr("auditor.models.embeddings.check_encoder", lambda name: None)
    layout = LAYOUTS[beginning]
    layout.write(tmp_path)
    commands = find_row(beginning)
    assert commands
    replaced = {"NAME": "a", "S": "wvs7-sample", **layout.words}
    for command in commands:
        words = shlex.split(" ".join(replaced.get(word, word) for word in command.split()))[1:]
        options = {"surveys": ["-o", "out.csv"], "import": ["--storage", STORAGE]}.get(words[0], [])
        result = auditor(*words, *options, cwd=tmp_path)
        assert result.returncode == 0, f"{words}: {result.stderr}"
    assert layout.check()
