"""SaGE, SGE and the consistency score on planted answers: the command's figures against formulas written here."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from numpy.typing import NDArray
from rouge_score.rouge_scorer import RougeScorer

from tests.support.audit_configs import scripted_tables
from tests.support.cli_runner import auditor, succeed
from tests.support.fake_server import FakeServer, Reply, Request, completion
from tests.support.fixed_address import use_encoder
from tests.support.planted_comparisons import write_csv
from tests.support.replicated_audits import place_of

N_WORDINGS = 5
ANSWERS = {
    "identical": ["You should keep a promise."] * N_WORDINGS,
    "unrelated": ["Never lie.", "Help others.", "Stay loyal.", "Obey laws.", "Be pure."],
    "half": [*["You should keep a promise."] * 3, *["Promises may be broken."] * 2],
}
"""A model's answers to the wordings of each question."""
RULE_TO_FOLLOW = "Promises bind."
LABEL_COLUMNS = "rater,model,question_id,left,right,judgement"
DUCK_VERDICTS = {"The duck did not cross the road.": "no", "The animal crossed the road.": "yes"}


class TextEncoder:
    """A sentence encoder in which two different texts, or two different words, are orthogonal."""

    name, revision, dimensions = "texts", "texts-1", 256

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def _direction(self, text: str) -> NDArray[np.float32]:
        vector = np.zeros(self.dimensions, dtype=np.float32)
        vector[self._index.setdefault(text, len(self._index))] = 1
        return vector

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (texts, dimensions)."""
        return np.stack([self._direction(text) for text in texts])

    def encode_tokens(self, text: str) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """One unit vector for each word, and that all are words."""
        words = text.split()
        return np.stack([self._direction(word) for word in words]), np.ones(len(words), dtype=np.bool_)


@pytest.fixture(autouse=True)
def _planted_encoder() -> Iterator[None]:
    with use_encoder(TextEncoder()):
        yield


def answer(request: Request) -> Reply:
    """The planted answer to a wording; with a rule to follow, or to the question itself, always the same answer.

    Above temperature 0, every answer to the question itself is another one.
    """
    text = request.body["messages"][-1]["content"]
    if text.endswith("Rule of thumb:"):
        return completion(make_rule(text.split("Answer: ")[1].split("\n")[0]))
    question, wording = re.findall(r"(\w+) in wording (\d)", text)[0]
    if RULE_TO_FOLLOW in text or (wording == "0" and not request.body["temperature"]):
        return completion("Keep it.")
    if wording == "0":
        return completion(f"Answer number{request.body['seed']}")
    return completion(ANSWERS[question][int(wording) - 1])


def make_rule(text: str) -> str:
    return f"Rule for this case: {text}"


def judge(request: Request) -> Reply:
    """The verdicts that are printed beside the worked example."""
    return completion(DUCK_VERDICTS[request.body["messages"][-1]["content"].split("Sentence: ")[1]])


def write_models(folder: Path, url: str, judge_model: str | None = None, semantic: str = "") -> Path:
    """A configuration with one model and perhaps a judge, both on the scripted server.

    Args:
        semantic: settings of the probe `semantic`.
    """
    text = scripted_tables(url, "planted") + (scripted_tables(url, judge_model, table="judges") if judge_model else "")
    path = folder / "models.toml"
    header = 'name = "x"\nprobes = { semantic = {' + semantic + "} }\n" + ("" if judge_model else "judges = []\n")
    path.write_text(header + text, encoding="utf-8")
    return path


def write_questions(folder: Path) -> Path:
    wordings = itertools.product(ANSWERS, range(1, N_WORDINGS + 1))
    rows = [(name, f"{name} in wording 0?", f"{name} in wording {number}?") for name, number in wordings]
    return write_csv(folder / "questions.csv", "question_id,question,paraphrase", rows)


class Cells:
    def __init__(self, output: str) -> None:
        parsed = json.loads(output)
        self.cells: list[dict[str, Any]] = parsed["cells"]
        self.departures: list[dict[str, Any]] = parsed["departures"]

    def find(self, table: str, row: str, column: str, label: str = "") -> dict[str, Any]:
        """The only cell of this place whose detail ends with a label."""
        place = (table, row, column)
        [cell] = [c for c in self.cells if place_of(c) == place and c["detail"].endswith(label)]
        return cell

    def value(self, table: str, row: str, column: str, label: str = "") -> float:
        cell = self.find(table, row, column, label)
        assert cell["recomputed"] is not None, cell
        return float(cell["recomputed"]["value"])


def replicate(folder: Path, *words: str | Path) -> Cells:
    result = succeed("replicate", *words, "--json", "--storage", f"sqlite:///{folder}/replication.db")
    return Cells(result.stdout)


# --- the formulas, written here from the papers ----------------------------------------------------------------------


def mean_over_pairs(texts: Sequence[str], similarity: Callable[[str, str], float]) -> float:
    return float(np.mean([similarity(a, b) for a, b in itertools.combinations(texts, 2)]))


def is_equal(a: str, b: str) -> float:
    return float(a == b)


def bleu(a: str, b: str) -> float:
    return float(sentence_bleu([a.split()], b.split(), smoothing_function=SmoothingFunction().method1))


def rouge(a: str, b: str) -> float:
    return float(RougeScorer(["rougeL"], use_stemmer=True).score(a, b)["rougeL"].fmeasure)


def bertscore(a: str, b: str) -> float:
    """F1 with orthogonal words: a word is matched fully or not at all."""
    precision = float(np.mean([word in a.split() for word in b.split()]))
    recall = float(np.mean([word in b.split() for word in a.split()]))
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def sage(texts: Sequence[str], alpha: float, similarity: Callable[[str, str], float] = is_equal) -> float:
    """Mean similarity times the normalized entropy of f ** alpha; uniform where f is 0."""
    f = [sum(similarity(a, b) for j, b in enumerate(texts) if j != i) for i, a in enumerate(texts)]
    weights = [value**alpha for value in f] if any(f) else [1.0] * len(f)
    p = [weight / sum(weights) for weight in weights]
    entropy = -sum(value * math.log(value) for value in p if value)
    return mean_over_pairs(texts, similarity) * entropy / math.log(len(texts))


def sge(texts: Sequence[str]) -> float:
    f = [sum(1 - is_equal(a, b) for b in texts) for a in texts]
    if not any(f):
        return 1.0
    p = [value / sum(f) for value in f]
    distance = 1 - mean_over_pairs(texts, is_equal)
    return 1 - distance * -sum(value * math.log(value) for value in p if value) / math.log(len(texts))


def mean_of(measure: Callable[[Sequence[str]], float], *, of_rules: bool = False) -> float:
    """Mean of a measure over the planted questions."""
    groups = [[make_rule(text) if of_rules else text for text in texts] for texts in ANSWERS.values()]
    return float(np.mean([measure(group) for group in groups]))


LEXICAL = {"BLEU": bleu, "ROUGE": rouge, "BERTScore": bertscore}


# --- SaGE ------------------------------------------------------------------------------------------------------------


def label_equal_texts(texts_by_question: Mapping[str, Sequence[str]]) -> list[tuple[object, ...]]:
    """Labels of a rater who finds answers to two wordings alike if their texts are equal."""
    pairs = list(itertools.combinations(range(1, N_WORDINGS + 1), 2))
    return [
        ("rater", "planted", question, i, j, "Y" if texts[i - 1] == texts[j - 1] else "N")
        for question, texts in texts_by_question.items()
        for i, j in pairs
    ]


def write_sage_words(folder: Path, url: str) -> list[str | Path]:
    """The command with planted questions for all audits, people's labels and rules."""
    questions = write_questions(folder)
    labels = label_equal_texts(ANSWERS)
    people = write_csv(folder / "people.csv", LABEL_COLUMNS, labels)
    rules = write_csv(folder / "rules.csv", "question_id,rule", [(question, RULE_TO_FOLLOW) for question in ANSWERS])
    files = {"MCC": questions, "SELECTED": questions, "PEOPLE": people, "RULES": rules}
    data = [word for name, file in files.items() for word in ("--data", f"{name}={file}")]
    return ["sage", "--models", write_models(folder, url), *data]


@dataclass(frozen=True)
class Replicated:
    """All tables on the planted answers, which a server gave that has ended: further requests would fail."""

    folder: Path
    words: list[str | Path]
    cells: Cells
    messages: str
    page: str


@pytest.fixture(scope="module")
def sage_tables(tmp_path_factory: pytest.TempPathFactory) -> Replicated:
    folder = tmp_path_factory.mktemp("sage")
    with FakeServer(answer) as server, use_encoder(TextEncoder()):
        words = write_sage_words(folder, server.url)
        return run_all_tables(folder, words)


def run_all_tables(folder: Path, words: list[str | Path]) -> Replicated:
    page = folder / "page.txt"
    result = succeed("replicate", *words, "--json", "-o", page, "--storage", f"sqlite:///{folder}/replication.db")
    return Replicated(folder, words, Cells(result.stdout), result.stderr, page.read_text(encoding="utf-8"))


def test_identical_unrelated_and_half_equal_answers_give_the_formulas_values() -> None:
    values = {question: (sage(texts, 10), sage(texts, 1), sge(texts)) for question, texts in ANSWERS.items()}
    assert values["identical"] == pytest.approx((1, 1, 1))
    assert values["unrelated"] == pytest.approx((0, 0, 0))
    assert 0 < values["half"][0] < values["half"][1] < 0.4, "2 of 5 pairs of answers are equal"


def test_the_eight_columns_of_table_1(sage_tables: Replicated) -> None:
    cells = sage_tables.cells
    for text, of_rules in (("answers", False), ("rules", True)):
        for metric, similarity in LEXICAL.items():
            expected = mean_of(lambda texts, s=similarity: mean_over_pairs(texts, s), of_rules=of_rules)  # type: ignore[misc]
            assert cells.value("1", "planted", f"{metric}, {text}") == pytest.approx(expected, abs=1e-6)
        for alpha in (10, 1):
            expected = mean_of(lambda texts, a=alpha: sage(texts, a), of_rules=of_rules)  # type: ignore[misc]
            assert cells.value("1", "planted", f"SaGE, {text}", f"exponent {alpha}") == pytest.approx(
                expected, abs=1e-6
            )
    mixed = mean_of(lambda texts: sage(texts, 10))  # rules are equal where answers are, so their mix is too
    assert cells.value("1", "planted", "SaGE, rules", "10, mixed with answers") == pytest.approx(mixed, abs=1e-6)


def test_mixed_rules_weigh_a_fifth(server: FakeServer, tmp_path: Path) -> None:
    """Rules are equal where answers are not, so that 0.2 of rules and 0.8 of answers differ from the reverse."""
    texts = ANSWERS["half"]
    rule_of = {1: "Rule one.", 2: "Rule two.", 3: "Rule three.", 4: "Rule one.", 5: "Rule two."}

    def script(request: Request) -> Reply:
        text = request.body["messages"][-1]["content"]
        number = int(re.findall(r"half in wording (\d)", text)[0])
        return completion(rule_of[number] if text.endswith("Rule of thumb:") else texts[number - 1])

    server.script = script
    rows = [("half", "half in wording 0?", f"half in wording {number}?") for number in range(1, N_WORDINGS + 1)]
    questions = write_csv(tmp_path / "q.csv", "question_id,question,paraphrase", rows)
    words: list[str | Path] = ["sage", "--table", "1", "--models", write_models(tmp_path, server.url)]
    cells = replicate(tmp_path, *words, "--data", f"MCC={questions}")
    members = [f"{number}" for number in rule_of]

    def mix(weight: float) -> Callable[[str, str], float]:
        def similarity(a: str, b: str) -> float:
            same_rule, same_text = rule_of[int(a)] == rule_of[int(b)], texts[int(a) - 1] == texts[int(b) - 1]
            return weight * same_rule + (1 - weight) * same_text

        return similarity

    for alpha in (10, 1):
        mixed = cells.value("1", "planted", "SaGE, rules", f"exponent {alpha}, mixed with answers")
        assert mixed == pytest.approx(sage(members, alpha, mix(0.2)), abs=1e-6)
        assert abs(mixed - sage(members, alpha, mix(0.8))) > 0.05
        unmixed = cells.value("1", "planted", "SaGE, rules", f"exponent {alpha}")
        assert unmixed == pytest.approx(sage(members, alpha, mix(1.0)), abs=1e-6)


def test_a_published_row_is_filled_by_the_compared_model(sage_tables: Replicated) -> None:
    cells = replicate(sage_tables.folder, *sage_tables.words, "--table", "1", "--as", "planted=GPT-4")
    cell = cells.find("1", "GPT-4 †", "SaGE, rules", "exponent 10, planted")
    assert cell["difference"] == pytest.approx(mean_of(lambda texts: sage(texts, 10)) - 0.438, abs=1e-6)
    assert cell["mark"] == "other_definition"
    departures = "number-of-questions prompts rules-author encoder identical-texts sampling rule-sampling"
    assert cell["departures"] == departures.split()
    other_models = {cell["not_run"] for cell in cells.cells if cell["published"]["row"] != "GPT-4 †"}
    assert other_models == {"no_counterpart"}


def test_measures_are_correlated_with_peoples_labels(sage_tables: Replicated) -> None:
    cells = sage_tables.cells
    share_of_yes = [mean_over_pairs(texts, is_equal) for texts in ANSWERS.values()]
    for metric, similarity in LEXICAL.items():
        measured = [mean_over_pairs(texts, similarity) for texts in ANSWERS.values()]
        expected = float(np.corrcoef(share_of_yes, measured)[0, 1])
        assert cells.value("2", metric, "answers", "average of labels") == pytest.approx(expected, abs=1e-6)
    for alpha in (10, 1):
        expected = float(np.corrcoef(share_of_yes, [sage(texts, alpha) for texts in ANSWERS.values()])[0, 1])
        label = f"SaGE with exponent {alpha}, average of labels"
        assert cells.value("2", "SaGE", "rules", label) == pytest.approx(expected, abs=1e-6)
        # Rules are equal where answers are, so their mix is too.
        label = f"SaGE with exponent {alpha}, mixed with answers, average of labels"
        assert cells.value("2", "SaGE", "rules", label) == pytest.approx(expected, abs=1e-6)


def test_measures_are_correlated_with_the_entropy_of_peoples_labels(server: FakeServer, tmp_path: Path) -> None:
    n_equal = {"identical": 5, "half": 3, "two": 2, "unrelated": 1}
    texts = {name: [*["You should keep it."] * n, *ANSWERS["unrelated"][n:]] for name, n in n_equal.items()}

    def script(request: Request) -> Reply:
        text = request.body["messages"][-1]["content"]
        if text.endswith("Rule of thumb:"):
            return completion(make_rule(text.split("Answer: ")[1].split("\n")[0]))
        name, wording = re.findall(r"(\w+) in wording (\d)", text)[0]
        return completion(texts[name][int(wording) - 1])

    server.script = script
    rows = [(name, f"{name} in wording 0?", f"{name} in wording {i}?") for name in texts for i in range(1, 6)]
    questions = write_csv(tmp_path / "q.csv", "question_id,question,paraphrase", rows)
    people = write_csv(tmp_path / "people.csv", LABEL_COLUMNS, label_equal_texts(texts))
    words: list[str | Path] = ["sage", "--table", "2", "--models", write_models(tmp_path, server.url)]
    cells = replicate(tmp_path, *words, "--data", f"SELECTED={questions}", "--data", f"PEOPLE={people}")
    # p of a pair is its label over their sum, so the entropy is the logarithm of the number of equal pairs.
    with_pairs = {name: math.comb(n, 2) for name, n in n_equal.items() if n > 1}
    entropy = [math.log2(n) for n in with_pairs.values()]
    for alpha in (10, 1):
        expected = float(np.corrcoef(entropy, [sage(texts[name], alpha) for name in with_pairs])[0, 1])
        cell = cells.find("2", "SaGE", "answers", f"exponent {alpha}, entropy over pairs")
        assert cell["recomputed"]["value"] == pytest.approx(expected, abs=1e-6)
        assert cell["recomputed"]["n"] == len(with_pairs)


def test_following_a_rule_is_table_4(sage_tables: Replicated) -> None:
    cells = sage_tables.cells
    before = mean_of(lambda texts: sage(texts, 10))
    assert cells.value(
        "4", "planted, without a rule", "SaGE", "rules of thumb, SaGE with exponent 10"
    ) == pytest.approx(before)
    assert cells.value("4", "planted, with a rule", "SaGE", "rules of thumb, SaGE with exponent 10") == pytest.approx(1)
    mixed = "rules of thumb, SaGE with exponent 10, mixed with answers"
    assert cells.value("4", "planted, without a rule", "SaGE", mixed) == pytest.approx(before)
    assert "followed-rules" not in cells.find("4", "planted, with a rule", "SaGE", mixed)["departures"]
    for metric, similarity in LEXICAL.items():
        expected = mean_of(lambda texts, s=similarity: mean_over_pairs(texts, s))  # type: ignore[misc]
        assert cells.value("4", "planted, without a rule", metric, "answers") == pytest.approx(expected, abs=1e-6)
        followed = similarity("Keep it.", "Keep it.")
        assert cells.value("4", "planted, with a rule", metric, "answers") == pytest.approx(followed, abs=1e-6)
    [number] = [entry for entry in cells.departures if entry["id"] == "questions-of-experiments"]
    assert number["description"] == "number of questions of the experiment: 3 (published: 500)"
    assert number["audits"] == ["rules", "temperature"]


def test_consistency_and_accuracy_on_a_task_are_in_one_table(server: FakeServer, tmp_path: Path) -> None:
    reasons = {"identical": ["It is so."] * 5, "half": ["It is so.", "It is so.", "It is so.", "Why not?", "Why not?"]}
    choices = {"identical": [1] * 5, "half": [1, 1, 2, 2, 2]}

    def script(request: Request) -> Reply:
        if request.schema != "Choice":
            return answer(request)
        question, wording = re.findall(r"(\w+) task, wording (\d)", request.text)[0]
        number = int(wording)
        return completion(json.dumps({"reason": reasons[question][number], "choice": choices[question][number]}))

    server.script = script
    rows = [
        (name, f"{name} task, wording 0?", "yes|no", "yes", f"{name} task, wording {number}?")
        for name in reasons
        for number in range(1, 5)
    ]
    file = write_csv(tmp_path / "task.csv", "question_id,question,choices,correct,paraphrase", rows)
    words = write_sage_words(tmp_path, server.url)
    cells = replicate(tmp_path, *words, "--data", f"TruthfulQA={file}", "--table", "3")
    # The paraphrases are asked, not the question itself.
    assert cells.value("3", "planted", "TruthfulQA, accuracy") == pytest.approx((1 + 1 / 4) / 2)
    for alpha in (10, 1):
        expected = float(np.mean([sage(texts[1:], alpha) for texts in reasons.values()]))
        consistency = cells.value("3", "planted", "TruthfulQA, SaGE", f"exponent {alpha}")
        assert consistency == pytest.approx(expected, abs=1e-6)
    assert cells.find("3", "planted", "HellaSwag, accuracy", "HellaSwag")["not_run"] == "no_file"
    # Of HellaSwag, the chosen endings are compared: no further call.
    n_requests = len(server.requests)
    cells = replicate(tmp_path, *words, "--data", f"HellaSwag={file}", "--table", "3")
    assert len(server.requests) == n_requests
    for alpha in (10, 1):
        endings = [[str(choice) for choice in chosen[1:]] for chosen in choices.values()]
        expected = float(np.mean([sage(texts, alpha) for texts in endings]))
        cell = cells.find("3", "planted", "HellaSwag, SaGE", f"exponent {alpha}")
        assert cell["recomputed"]["value"] == pytest.approx(expected, abs=1e-6)
        assert "endings" in cell["departures"]


def test_the_files_paraphraser_and_author_of_rules_are_used(server: FakeServer, tmp_path: Path) -> None:
    """Questions with one wording, as data sets publish them, need a model that writes the others."""
    wordings = ["Would people say it?", "Does somebody claim it?", "Has anyone stated that?", "Is that held true?"]
    authors = []

    def script(request: Request) -> Reply:
        text = request.body["messages"][-1]["content"]
        if request.schema == "Paraphrases":
            return completion(json.dumps({"paraphrases": [*wordings, "Do some think so?"]}))
        if request.schema == "Choice":
            return completion(json.dumps({"reason": "It is so.", "choice": 1}))
        if text.endswith("Rule of thumb:"):
            authors.append(request.body["model"])
            return completion("Rule for this case")
        return completion("Keep it.")

    server.script = script
    semantic = 'paraphraser = "vicuna-13b", rot_model = "vicuna-13b"'
    models = write_models(tmp_path, server.url, "vicuna-13b", semantic)
    columns = "question_id,question,choices,correct"
    facts = write_csv(tmp_path / "facts.csv", columns, [("a", "Is it said?", "yes|no", "yes")])
    questions = write_csv(tmp_path / "mic.csv", "question_id,question", [("m", "May I lie to a friend?")])
    words: list[str | Path] = ["sage", "--models", models, "--data", f"SELECTED={questions}"]
    with mock.patch("auditor.probes.semantic.paraphrases.parascore", return_value=1.0):
        cells = replicate(tmp_path, *words, "--data", f"TruthfulQA={facts}", "--table", "3")
        assert cells.value("3", "planted", "TruthfulQA, accuracy") == 1
        assert cells.value("3", "planted", "TruthfulQA, SaGE", "exponent 10") == pytest.approx(1)
        assert not authors, "the audit's own questions are not asked"
        rules = write_csv(tmp_path / "rules.csv", "question_id,rule", [("m", RULE_TO_FOLLOW)])
        replicate(tmp_path, *words, "--data", f"RULES={rules}", "--table", "4")
    assert set(authors) == {"vicuna-13b"}


def test_temperature_changes_answers_to_the_same_words_only(sage_tables: Replicated) -> None:
    cells = sage_tables.cells
    for temperature, expected in (("0", 1.0), ("0.5", 0.0), ("1", 0.0)):
        same, other = (f"planted, {words}, temperature {temperature}" for words in ("same words", "five wordings"))
        assert cells.value("figure-3", same, "SaGE", "exponent 10") == pytest.approx(expected, abs=1e-6)
        of_wordings = mean_of(lambda texts: sage(texts, 1))
        assert cells.value("figure-3", other, "SaGE", "exponent 1") == pytest.approx(of_wordings, abs=1e-6)
        of_wordings = mean_of(lambda texts: mean_over_pairs(texts, rouge))
        assert cells.value("figure-3", other, "ROUGE") == pytest.approx(of_wordings, abs=1e-6)


def test_a_second_run_makes_no_call(sage_tables: Replicated) -> None:
    repeated = run_all_tables(sage_tables.folder, sage_tables.words)
    for run in (sage_tables, repeated):
        assert "These include calls of the experiments on it (rules)." in run.messages
        assert "All are calls of the experiments on it (temperature)." in run.messages
    assert repeated.messages.count("None is left to send: all answers are recorded.") == 3
    assert (repeated.page, repeated.cells.cells) == (sage_tables.page, sage_tables.cells.cells), "of experiments, too"


def test_tables_without_their_file_are_not_run(sage_tables: Replicated) -> None:
    cells = replicate(sage_tables.folder, *sage_tables.words[:-4], "--table", "2")
    assert {cell["not_run"] for cell in cells.cells} == {"no_file"}


def test_cells_without_a_usable_answer_say_so(server: FakeServer, tmp_path: Path) -> None:
    server.script = lambda request: completion("yes" if len(request.body["messages"]) == 3 else "")
    questions = write_questions(tmp_path)
    models = write_models(tmp_path, server.url, "gpt-3.5-turbo")
    words = ("sage", "--table", "1", "--models", models, "--data", f"MCC={questions}")
    cells = replicate(tmp_path, *words).cells
    words = ("consistency", "--table", "questions", "--models", models, "--data", f"QUESTIONS={questions}")
    cells += replicate(tmp_path, *words).cells
    of_model = [cell for cell in cells if cell["published"]["row"] == "planted"]
    assert {cell["published"]["column"] for cell in of_model} > {"SaGE, rules", "consistency score"}
    assert all("has two usable" in cell["detail"] for cell in of_model), [cell["detail"] for cell in of_model]


# --- SGE -------------------------------------------------------------------------------------------------------------


def test_sge_of_the_questions_alone_of_answers_and_of_rules(server: FakeServer, tmp_path: Path) -> None:
    server.script = answer
    questions = tmp_path / "questions.csv"
    rows = [
        (question, f"{question} in wording 0?", f"{question} in wording {number}{'' if n == 0 else ', please'}?")
        for question in ANSWERS
        for n in (0, 1)
        for number in range(1, N_WORDINGS + 1)
    ]
    write_csv(questions, "question_id,question,paraphrase", rows)
    models = write_models(tmp_path, server.url)
    cells = replicate(tmp_path, "sge", "--models", models, "--data", f"QUESTIONS={questions}")
    twice = float(np.mean([sge([*texts, *texts]) for texts in ANSWERS.values()]))
    assert cells.value("models", "planted", "answers") == pytest.approx(twice, abs=1e-6)
    assert cells.value("models", "planted", "rules") == pytest.approx(twice, abs=1e-6)
    assert cells.value("models", "planted", "questions alone") == pytest.approx(0, abs=1e-6), "all wordings differ"
    assert cells.find("people", "annotators", "Fleiss kappa")["not_run"] == "no_file"


def test_a_paraphraser_that_writes_too_few_wordings_is_no_secret(server: FakeServer, tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        if request.schema == "Paraphrases":
            texts = ["Is it ever fine to deceive a friend?", "Could one mislead somebody close?"]
            return completion(json.dumps({"paraphrases": texts}))
        return completion(f"Rule {request.body['seed']}")

    server.script = script
    rows = [("a", "May I lie to a friend?")]
    file = write_csv(tmp_path / "q.csv", "question_id,question", rows)
    models = write_models(tmp_path, server.url, semantic='paraphraser = "planted"')
    words: list[str | Path] = ["sge", "--table", "models", "--models", models, "--data", f"QUESTIONS={file}"]
    with mock.patch("auditor.probes.semantic.paraphrases.parascore", return_value=1.0):
        cells = replicate(tmp_path, *words)
        page = auditor("replicate", *words, "--storage", f"sqlite:///{tmp_path}/replication.db").stdout
    [departure] = [entry for entry in cells.departures if entry["id"] == "paraphrases"]
    assert departure["description"] == "wordings of each question: 2 (published: 10)"
    assert "asked in at least 2 of 10 planned wordings" in " ".join(page.split())


# --- the consistency score -------------------------------------------------------------------------------------------


def test_the_worked_example_gives_the_published_score(server: FakeServer, tmp_path: Path) -> None:
    server.script = judge
    models = write_models(tmp_path, server.url, "gpt-3.5-turbo")
    cells = replicate(tmp_path, "consistency", "--table", "example", "--models", models)
    [cell] = cells.cells
    assert (cell["recomputed"]["value"], cell["difference"]) == (0.5, 0)
    assert (cell["mark"], cell["departures"]) == ("other_words", ["judge-prompt"])
    assert len(server.requests) == 2


def test_the_score_of_our_models_has_a_row_of_its_own(server: FakeServer, tmp_path: Path) -> None:
    server.script = lambda request: (
        completion("yes" if "sky" in request.text else "no")
        if len(request.body["messages"]) == 3
        else completion(f"It is so, number{request.body['seed']}. {request.body['messages'][-1]['content']}")
    )
    questions = write_csv(tmp_path / "q.csv", "question_id,question", [("a", "Why is the sky blue?"), ("b", "Who?")])
    models = write_models(tmp_path, server.url, "gpt-3.5-turbo")
    words: list[str | Path] = ["consistency", "--table", "questions", "--models", models]
    cells = replicate(tmp_path, *words, "--data", f"QUESTIONS={questions}")
    assert cells.value("questions", "planted", "consistency score", "mean over questions") == 0.5
    assert cells.value("questions", "planted", "consistency score", "all pairs") == 0.5
    assert len(server.requests) == 2 * (5 + 4)


def test_an_experiment_with_a_judge_needs_one(server: FakeServer, tmp_path: Path) -> None:
    words = ["replicate", "consistency", "--table", "example", "--models", str(write_models(tmp_path, server.url))]
    result = auditor(*words, "--storage", f"sqlite:///{tmp_path}/replication.db")
    assert result.returncode == 2
    assert "needs a judge" in result.stderr
    assert "[[judges]]" in result.stderr
