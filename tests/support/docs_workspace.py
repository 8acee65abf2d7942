"""A folder with the files and audits that the documentation's commands refer to, and the commands themselves.

Models are scripted: every `embedded/…` model in a configuration is replaced by a server on a loopback port.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.domain import Decision, Rating
from auditor.imports.recorded_audits import import_scores
from auditor.run import open_audit, run_audit
from auditor.storage import audits, results
from auditor.storage.database import open_database
from tests.support.audit_configs import KEY_VARIABLE
from tests.support.comparison_judge import letter_reply
from tests.support.fake_server import Reply, Request, answer, completion
from tests.support.stored_rows import add_rating
from tests.support.synthetic_audit import STARTED
from tests.surveys.official_files import pew_columns, pew_sav, write_csv, wvs_columns

ROOT = Path(__file__).parents[2]
COUNTRIES, TOPICS = ("Germany", "Japan"), ("divorce", "homosexuality", "abortion")
EXTERNAL_PROGRAMS = {
    "pip": "installing is set-up: `make test` does it", "make": "what continuous integration runs",
    "promptfoo": "another program's command", "createdb": "another program's command",
    "psql": "another program's command",
    "inspect": "another program's command; tests/exports/test_inspect_logs.py opens the logs with it",
}  # fmt: skip


class DocumentedCommand(NamedTuple):
    """A shell command of a page.

    Attributes:
        skip_reason: the reason why it is not run here, or empty.
        output: the output that the page shows, or empty; `...` stands for any text.
    """

    page: str
    line: str
    skip_reason: str = ""
    output: str = ""


def documented_commands(path: Path) -> Iterator[DocumentedCommand]:
    """Yield every command of a page, those of a workflow last.

    A comment `<!-- not run: why -->` above a block excludes it.
    """
    text = path.read_text(encoding="utf-8")
    matches = re.finditer(r"(?:<!-- not run: ([^\n]*?) -->\n)?^```console\n(.*?)^```", text, re.S | re.M)
    for skip_reason, block in (match.groups() for match in matches):
        for line, output in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            reason = skip_reason or EXTERNAL_PROGRAMS.get(line.split()[0], "")
            yield DocumentedCommand(path.name, line, reason, output)
    for line in re.findall(r"^ +run: (auditor .+)$", text, re.MULTILINE):
        yield DocumentedCommand(path.name, line)


class Letters:
    """A sentence encoder that counts letters, which needs no weights."""

    revision = "letters"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.ones((len(texts), 27), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for letter in text.lower():
                row[ord(letter) - 96 if "a" <= letter <= "z" else 0] += 1
        lengths: NDArray[np.float32] = np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)
        return rows / lengths


def script(request: Request) -> Reply:
    """The default script, extended by answers for the probes `semantic` and `logic`."""
    draw = request.draw()
    if request.body.get("logprobs"):
        return letter_reply(0.2 + 0.6 * draw)
    reply_by_schema: dict[str, dict[str, object]] = {
        "TaskAnswer": {"reasoning": "Step by step.", "answer": str(int(9 * draw))},
        "ScoredAnswer": {"reasoning": "Step by step.", "answer": int(9 * draw)},
        "Preference": {"answer": "A" if draw < 0.5 else "B"},
        "ReasonedBinaryPreference": {"reasoning": "Step by step.", "answer": "A" if draw < 0.5 else "B"},
        "MoralAnswer": {"answer": f"It depends on reason {int(9 * draw)}."},
        "OpenAnswer": {"answer": f"It depends on reason {int(9 * draw)}."},
        "Support": {"reason": "They were compared.", "supported": draw < 0.5},
        "RuleOfThumb": {"rule": f"It is good to weigh reason {int(9 * draw)}."},
    }
    if (request.schema or "").startswith("ChosenOf"):
        reply_by_schema[request.schema or ""] = {"reasoning": "One option fits.", "answer": "A" if draw < 0.5 else "B"}
    schema_reply = reply_by_schema.get(request.schema or "")
    return answer(request) if schema_reply is None else completion(json.dumps(schema_reply))


def config(url: str, name: str = "my-audit", models: Sequence[str] = ("gpt", "claude", "mine"), extra: str = "") -> str:
    """A reader's configuration with their own models."""
    places = f"countries = {json.dumps(COUNTRIES)}, topics = {json.dumps(TOPICS)}"
    head = f'name = "{name}"\nsurvey = {{ source = "wvs7-sample", {places} }}\nembedding = {{ model = "none" }}\n'
    return head + "".join(f'\n[[models]]\nname = "{m}"\nmodel = "openai/{m}"\n{_at(url)}' for m in models) + extra


def scripted(text: str, url: str) -> str:
    """Replace a configuration's embedded models by the scripted server."""
    return re.sub(r'^model = "embedded/([\w-]+)"$', rf'model = "openai/\1"\n{_at(url)}', text, flags=re.MULTILINE)


def _at(url: str) -> str:
    return f'api_base = "{url}"\napi_key = "os.environ/{KEY_VARIABLE}"\nprice = {{ input = 0, output = 0 }}\n'


def create_workspace(folder: Path, url: str) -> None:
    """Create all files and audits that the pages refer to; `folder` must be the working directory."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    for path in (folder / "examples").glob("*.toml"):
        path.write_text(scripted(path.read_text(encoding="utf-8"), url), encoding="utf-8")
    direct = "\n[conflicts]\nthreshold = 0.1\n[probes]\ndirect = { samples = 2 }\nreview = { traces = 1 }\n"
    for name in ("audit.toml", "mine.toml"):
        (folder / name).write_text(config(url, extra=direct), encoding="utf-8")
    (folder / "base").mkdir()
    shutil.copy(folder / "audit.toml", folder / "base" / "audit.toml")
    (folder / "small.toml").write_text(config(url, "may", ("gpt", "mine"), direct), encoding="utf-8")
    (folder / "june.toml").write_text(config(url, "june", ("gpt", "mine"), direct), encoding="utf-8")
    semantic = "\n[probes]\nsemantic = { limit = 3 }\n"
    moral = config(url, "moral", ("gpt",), semantic).replace('model = "none"', 'model = "letters"')
    (folder / "moral.toml").write_text(moral, encoding="utf-8")
    run_audit(folder / "audit.toml")
    run_audit(folder / "small.toml")
    run_audit(folder / "june.toml", storage="sqlite:///june.db")
    run_audit(folder / "moral.toml")
    _decide("my-audit")
    _tables(folder)
    _write_stories(folder / "CaTeRS")
    _write_ranked_passages(folder)
    for name, model in (("before", "base"), ("after", "tuned")):
        (folder / "s.csv").write_text(_scores((model, "same"), shift=len(name) / 50), encoding="utf-8")
        import_scores(folder / "s.csv", survey=str(folder / "my-survey.csv"), audit=name)


def _decide(name: str) -> None:
    """Rate most of an audit's conflicts as a blinded rater: judges' weights need decisions on ten answers of each."""
    with open_database("sqlite:///auditor.db", create=False) as db:
        audit = audits.get_audit(db, name)
        for number, c in enumerate(results.load_conflicts(db, audit.id)):
            if number % 9 == 0:
                continue
            decision = Decision.LEFT if _draw(*c.cell, c.left) > 0 else Decision.RIGHT
            at = STARTED + timedelta(minutes=number)
            add_rating(db, audit.id, Rating(c.cell, c.left, c.right, c.score_left, c.score_right, "ada", decision, at))


def _tables(folder: Path) -> None:
    cells = [(c, t) for c in (*COUNTRIES, "Brazil", "Egypt") for t in TOPICS]
    files = {
        "my-survey.csv": ["country,topic,score", *(f"{c},{t},{_draw(c, t):.2f}" for c, t in cells)],
        "scores.csv": _scores(("gpt", "mine")).splitlines(),
        "answers.csv": [
            "model,country,topic,sample,text",
            *(f"gpt,{c},{t},0,SCORE = {_draw(t, c):.2f}" for c, t in cells),
        ],
        "verdicts.csv": ["judge,model,country,topic,verdict", *(f"mine,gpt,{c},{t},VALID" for c, t in cells)],
        "moral.csv": [
            "model,question_id,paraphrase,answer",
            *(f"gpt,q{q},{p},It depends on {q} and {p}." for q in range(3) for p in range(3)),
        ],
        "judged.csv": ["judge,context,item_a,item_b,relation,decision", *_comparisons()],
        "quiz.csv": ["id,question,options,truth", "moon,How many moons has the Earth?,none|one|two,one"],
        "quiz-answers.csv": ["model,id,answer", "gpt,moon,one", "mine,moon,A"],
        "facts.csv": [
            "question_id,question,choices,correct,paraphrase",
            *(f"f{i},Is {i} even?,yes|no,{'no' if i % 2 else 'yes'},Is the number {i} even?" for i in range(4)),
        ],
        "table.csv": [
            "country,topic,n,p1,p2,p3,p4",
            "Japan,divorce,1353,0.05,0.15,0.45,0.35",
            "Kenya,divorce,1266,0.55,0.25,0.15,0.05",
        ],
        "two.csv": ["country,topic,n,p1,p2", "Germany,divorce,294,23,70"],
        "scales.csv": [
            "country,topic,n,low,high,answers,p1,p2,p3,p4,don't know,refused",
            "Japan,divorce,1353,1,4,,0.05,0.15,0.40,0.35,0.04,0.01",
            "Japan,voting,1200,,,no|perhaps|yes,0.20,0.30,0.45,,0.05,",
        ],
        "opinions.csv": [
            "model,country,topic,mode,p1,p2,p3",
            *(f"gpt,{country},getting a divorce,verbalized,0.2,0.3,0.5" for country in ("Australia", "Japan")),
        ],
        "labels.csv": [
            "rater,model,country,topic,sample,verdict,score_fit",
            *(f"ben,gpt,{c},{t},0,VALID,true" for c in COUNTRIES for t in TOPICS),
        ],
        "people.csv": ["rater,model,question_id,left,right,judgement", *_judgements()],
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_csv(folder / "WVS_Cross-National_Wave_7.csv", wvs_columns())
    pew_sav(folder / "Pew Research Global Attitudes Spring 2013.sav", pew_columns())
    results = [
        {"testIdx": i, "vars": {"country": c, "topic": t}, "provider": {"id": "openai:gpt"}, "prompt": {"label": "p"},
         "response": {"output": f"SCORE = {_draw(c, t):.2f}"}, "failureReason": 0}
        for i, (c, t) in enumerate(cells)
    ]  # fmt: skip
    tasks = [
        {
            "id": i,
            "data": {"model": "mine", "country": c, "topic": TOPICS[0], "sample": 0},
            "annotations": [
                {
                    "completed_by": {"id": 3, "email": "cleo@example.org"},
                    "was_cancelled": False,
                    "result": [{"from_name": "verdict", "type": "choices", "value": {"choices": ["INVALID"]}}],
                }
            ],
        }
        for i, c in enumerate(COUNTRIES, start=1)
    ]
    (folder / "project-1.json").write_text(json.dumps(tasks))
    (folder / "results.json").write_text(json.dumps({"evalId": "e", "results": {"version": 3, "results": results}}))


def _write_ranked_passages(folder: Path) -> None:
    """Write RankGPT's files `marco.jsonl` and `gpt3.5.json` with five queries, of four passages each."""
    queries = [{"query": f"q{n}?", "hits": [{"content": f"text {i} of {n}"} for i in range(1, 5)]} for n in range(5)]
    (folder / "marco.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries), encoding="utf-8")
    (folder / "gpt3.5.json").write_text(json.dumps(["[2] > [4] > [1] > [3]"] * 5), encoding="utf-8")


def _write_stories(folder: Path) -> None:
    """Write three stories of CaTeRS, with 7, 7 and 1 events, and a relation in the first."""
    folder.mkdir()
    stories = [[f"Event{story}{number}" for number in range(n)] for story, n in enumerate((7, 7, 1))]
    text = "\n***\n".join("\n".join(f"{event} was." for event in story) for story in stories)
    marks = [
        f"T{number}\tEvent {text.index(event)} {text.index(event) + len(event)}\t{event}"
        for number, event in enumerate(itertools.chain(*stories), start=1)
    ]
    (folder / "batch_1.txt").write_text(text, encoding="utf-8")
    (folder / "batch_1.ann").write_text("\n".join([*marks, "R1\tBEFORE Arg1:T1 Arg2:T2"]), encoding="utf-8")


def _judgements() -> Iterator[str]:
    for question in open_audit("moral").frame("moral_question")["id"]:
        for rater in ("ann", "bob"):
            for left, right in itertools.combinations(range(1, 4), 2):
                yield f"{rater},gpt,{question},{left},{right},{'Y' if _draw(rater, question, str(right)) > 0 else 'N'}"


def _comparisons() -> Iterator[str]:
    items = "abcd"
    for judge in ("ann", "bob"):
        for i, a in enumerate(items):
            for b in items[i + 1 :]:
                yield f"{judge},one,{a},{b},standard,{'A' if judge == 'ann' or _draw(a, b) > 0 else 'B'}"
                yield f"{judge},one,{b},{a},standard,{'B' if judge == 'ann' else 'A'}"


def _scores(models: Sequence[str], shift: float = 0.0) -> str:
    cells = [(c, t) for c in (*COUNTRIES, "Brazil", "Egypt") for t in TOPICS]
    score_by_key = {(m, c, t): 0.6 * _draw(c, t) + 0.3 * _draw(m, c, t) + shift for m in models for c, t in cells}
    rows = [f"{m},{c},{t},direct,{max(-1, min(1, score)):.3f}" for (m, c, t), score in score_by_key.items()]
    return "\n".join(["model,country,topic,method,score", *rows])


def _draw(*words: str) -> float:
    """A pseudo-random number in [-1, 1) that depends only on the words."""
    return int(hashlib.sha256(" ".join(words).encode()).hexdigest()[:8], 16) / 2**31 - 1
