"""A server script that answers calls of any purpose, and small audits that together make calls of every purpose."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from auditor.config import AuditConfig
from auditor.domain.decisions import SURVEY_REVIEWS, TASK_REVIEWS
from auditor.experiments.judges import bias, planted
from auditor.experiments.robustness import robustness
from auditor.experiments.stored_audit import ExperimentContext
from auditor.models.answer_schemas import DESIGN_SCHEMAS
from auditor.probes.logic.ranking import RankingOptions, rank_items
from auditor.probes.semantic.experiments.runs import accuracy, rules, temperature
from auditor.run import run_audit
from tests.models.test_logprobs import choice, echo, listed
from tests.support import audit_configs
from tests.support.audit_configs import with_schema_version
from tests.support.comparison_judge import COMPARISON_SCHEMAS, choice_reply, scripted
from tests.support.fake_batches import as_anthropic, as_openai
from tests.support.fake_server import DIRECT_SCHEMAS, Reply, Request, answer, completion, error, review_of_answer
from tests.support.families_of_tests import run_checked
from tests.support.fixed_address import HOST, URL
from tests.support.opinion_surveys import write_opinion_survey
from tests.support.scripted_tasks import sum_task

CELLS = {"source": "wvs7-sample", "countries": ["Germany"], "topics": ["divorce", "abortion"]}
BATCH = {"poll_s": 0.02, "quiet_s": 0.05, "least": 1}


# --- answers ------------------------------------------------------------------------------------------------------


def numbered_reply(request: Request) -> Reply:
    """Like `reply`, with the request's number as the served model, so that the request can be identified."""
    plain_reply = reply(request)
    return replace(plain_reply, body=plain_reply.body | {"model": f"request-{request.number}"})


def reply(request: Request) -> Reply:
    """Answer a request; depends only on its body."""
    if request.path.endswith("/messages"):
        chat = replace(request, path="/v1/chat/completions", body=as_openai(request.body))
        return Reply(body=as_anthropic(request.body, _reply(chat)))
    return _reply(request)


def _reply(request: Request) -> Reply:
    if request.path.endswith("/completions") and "prompt" in request.body:
        if "echo" in request.body:
            return error(400, "no echo") if str(request.body["model"]).endswith("-b") else echo(request)
        return listed(request)
    if request.body.get("logprobs"):
        return choice({"A": math.log(0.7), " B": math.log(0.3)})
    tools = request.body.get("tools") or []
    schema = tools[0]["function"]["name"] if tools else request.schema
    content = _content(schema, request, [m["role"] for m in request.body["messages"]].count("user") > 1)
    if tools:
        calls = [{"id": "call_1", "type": "function", "function": {"name": schema, "arguments": content}}]
        return completion(None, finish="tool_calls", tool_calls=calls)
    return completion(content)


def _content(schema: str | None, request: Request, is_repeated: bool) -> str:
    """Text of the answer. The first question on abortion gets an unreadable answer, so that it is repeated."""
    if ("SCORE =" in request.text or schema in DIRECT_SCHEMAS) and "abortion" in request.text and not is_repeated:
        return "Opinions differ." if schema is None else json.dumps({"norms": "Opinions differ."})
    if schema in SURVEY_REVIEWS:
        review = json.loads(_text(answer(_with_schema(request, schema))))
        words = 3 if is_repeated else 80
        return json.dumps(review | {"justification": " ".join(["word"] * words)})
    if schema in ("TaskAnswer", "ScoredAnswer") or (schema or "").startswith("ChosenOf"):
        if "What is 5 + 8?" in request.text and not is_repeated:
            return "That is hard to say."
        answer_value: object = {"TaskAnswer": "10", "ScoredAnswer": 10}.get(schema or "", "A")
        return json.dumps({"reasoning": f"Step {int(100 * request.draw())}.", "answer": answer_value})
    if schema in TASK_REVIEWS:
        return json.dumps(review_of_answer(request.draw() < 0.7))
    if schema in COMPARISON_SCHEMAS:
        return _preference(request)
    if schema in DESIGN_SCHEMAS:
        options = re.search(r"word for word: (.*?)[.:\n]", request.text)
        score = (
            options[1].split("; ")[1]
            if options
            else 1 + round(request.draw(), 1)
            if str(schema).endswith("Ten")
            else 0.5
        )
        return json.dumps({"norms": "They vary.", "reasoning": "It follows.", "score": score})
    if (schema or "").startswith("CountsOf"):
        is_readable = is_repeated or "abortion" not in request.text
        return json.dumps({"counts": [10] * 10 if is_readable else [100]})
    if schema == "OpinionAnswer":
        return json.dumps({"answer": 1 + int(10 * request.draw())})
    if schema in SEMANTIC:
        return json.dumps(SEMANTIC[schema](request))
    if schema is None and "ANSWER =" in request.text:
        if "What is 5 + 8?" in request.text and not is_repeated:
            return "That is hard to say."
        return f"It follows.\nANSWER = {'A' if 'A)' in request.text else '10'}"
    if schema is None and "SCORE =" not in request.text:
        return RULES[0] if "Rule of thumb:" in request.text else ANSWERS[request.draw() < 0.5]
    return _text(answer(_with_schema(request, schema)))


def _preference(request: Request) -> str:
    try:
        return _text(scripted(len)(request))
    except AssertionError:  # in another language than English
        return _text(choice_reply(request, "A"))


ANSWERS = ("No, it harms somebody who has done no wrong.", "Yes, people are free to choose it.")
RULES = ("You should not harm the innocent.", "It is fine for people to choose for themselves.")
SEMANTIC: dict[str, Callable[[Request], dict[str, Any]]] = {
    "MoralAnswer": lambda r: {"answer": ANSWERS[r.draw() < 0.5]},
    "OpenAnswer": lambda r: {"answer": ANSWERS[r.draw() < 0.5]},
    "RuleOfThumb": lambda r: {"rule": RULES[ANSWERS[1] in r.text]},
    "Choice": lambda r: {"reason": ANSWERS[r.draw() < 0.5], "choice": 1},
    "Paraphrases": lambda r: {"paraphrases": ["May one keep a borrowed book?", "Is a borrowed book yours to keep?"]},
    "Support": lambda r: {"reason": "They say the same.", "supported": r.draw() < 0.5},
    "Contradiction": lambda r: {"reason": "One says no.", "contradict": r.draw() < 0.5},
}


def _with_schema(request: Request, schema: str | None) -> Request:
    schema_fields = {} if schema is None else {"response_format": {"json_schema": {"name": schema}}}
    return replace(request, body=request.body | schema_fields)


def _text(completion_reply: Reply) -> str:
    return str(completion_reply.body["choices"][0]["message"]["content"])


# --- audits -------------------------------------------------------------------------------------------------------


def config(url: str, models: int = 3, **changes: Any) -> AuditConfig:
    """An audit with version 1 of the direct schema: its recorded calls are those of audits begun before version 2."""
    return with_schema_version(audit_configs.config(url, models, **changes), 1)


def _of_model(model: dict[str, str], **probes: Any) -> AuditConfig:
    base = config(URL, 1, survey=CELLS, judges=[]).model_dump(exclude_none=True)
    return with_schema_version(AuditConfig.model_validate(base | {"models": [model], "probes": probes}), 1)


def survey(storage: str, _: Path) -> None:
    """Direct scores as JSON, all questions to judges, and experiments on judges."""
    review = {"guess": True, "rewrite": "neutral", "rewriter": "model-c"}
    probes = {"direct": {"samples": 1}, "review": review}
    audit = config(URL, survey=CELLS, probes=probes, conflicts={"threshold": 0.05})
    changes = {"system": "You are terse.", "params": {"top_p": 0.9}, "temperature": 0.3}
    models = [m.model_copy(update=changes) if m.name == "model-b" else m for m in audit.models]
    run_audit(audit.model_copy(update={"models": models}), storage=storage)
    run_checked(planted, ExperimentContext(storage), "scripted", 1)
    run_checked(bias, ExperimentContext(storage), "scripted", 1)


def designs(storage: str, _: Path) -> None:
    """Direct scores with each place of the reasons on each scale, as JSON and as text."""
    cells = {**CELLS, "countries": ["Germany", "Japan"]}
    for mode in ("structured", "text"):
        probes = {"direct": {"samples": 1, "mode": mode}}
        run_audit(config(URL, 1, name=mode, survey=cells, judges=[], probes=probes), storage=storage)
        choices = ["wording", "answer", "temperature", "language", "role"]
        run_checked(robustness, ExperimentContext(storage), mode, without=choices, ask=True)


def reasoned_judgement(storage: str, _: Path) -> None:
    """Direct scores as JSON by the present version of the schema."""
    run_audit(audit_configs.config(URL, 1, survey=CELLS, judges=[], probes={"direct": {"samples": 1}}), storage=storage)


def survey_as_text(storage: str, folder: Path) -> None:
    """The question in the papers' text form, and a judge with its own prompt."""
    prompt = folder / "review.md"
    front = "---\nid: own\nversion: 1\npurpose: A prompt of its own.\nfields: [trace, fence, score]\n---\n"
    prompt.write_text(f"{front}[system]\nJudge in JSON.\n[user]\n{{fence}}\n{{trace}}\n{{fence}}\nScore: {{score}}\n")
    judge = {"name": "judge", "model": "openai/judge", "api_base": URL, "review_prompt": str(prompt)}
    run_audit(
        config(URL, 1, survey=CELLS, probes={"direct": {"samples": 1, "mode": "text"}}, judges=[judge]), storage=storage
    )


def paper_form(storage: str, _: Path) -> None:
    """The question and the review in the form of the paper, answered as JSON."""
    probes = {"direct": {"samples": 1, "form": "paper"}, "review": {"form": "paper"}}
    run_audit(config(URL, 2, survey=CELLS, probes=probes), storage=storage)


def native_language(storage: str, _: Path) -> None:
    """Direct scores and comparisons in the language of the country."""
    cells = {"source": "wvs7-sample", "countries": ["Japan"], "topics": ["divorce", "suicide"]}
    probes = {"direct": {"samples": 1}, "logic": {"samples": 0}}
    run_audit(config(URL, 1, survey=cells, language="native", judges=[], probes=probes), storage=storage)


def echoed(storage: str, _: Path) -> None:
    """Log-probabilities of sentences in both formats of the completions endpoint."""
    audit = config(URL, 2, survey=CELLS, judges=[], probes={"logprob": {"method": "echo"}})
    models = [m.model_copy(update={"model": m.model.replace("openai/", "hosted_vllm/")}) for m in audit.models]
    run_audit(audit.model_copy(update={"models": models}), storage=storage)


def lettered(storage: str, _: Path) -> None:
    """Log-probabilities of two letters as the next token of a chat."""
    survey = {**CELLS, "topics": ["divorce"]}
    run_audit(config(URL, 1, survey=survey, judges=[], probes={"logprob": {"method": "choice"}}), storage=storage)


def continued(storage: str, _: Path) -> None:
    """Log-probabilities by weights on this machine, which need no request."""
    scorer = mock.Mock(continuation_logprobs=lambda prefix, continuations: [-float(len(end)) for end in continuations])
    model = {"name": "local", "model": "openai/local", "api_base": URL, "weights": "some/weights"}
    audit = _of_model(model, logprob={"method": "continuation"})
    with (
        mock.patch("auditor.models.continuation.REQUIRED_PACKAGES", ()),
        mock.patch("auditor.models.continuation.load_continuation_scorer", return_value=scorer),
    ):
        run_audit(audit, storage=storage)


def embedded(storage: str, _: Path) -> None:
    """A model on this machine behind its own server, which takes other JSON schemas."""
    model = {"name": "local", "model": "embedded/smollm2-135m"}
    with mock.patch("auditor.models.embedded_server.start_server_replicas", return_value=((URL, "none"),)):
        run_audit(_of_model(model, direct={"samples": 1}), storage=storage)


def replayed(storage: str, folder: Path) -> None:
    """Recorded answers, which need no request; the record is part of the key."""
    record = folder / "record.csv"
    record.write_text("model,country,topic,sample,text\nold,DE,divorce,0,SCORE = 0.5\nold,DE,abortion,0,SCORE = 0.1\n")
    model = {"name": "old", "model": "replay/old", "answers": str(record)}
    run_audit(_of_model(model, direct={"samples": 1, "mode": "text"}), storage=storage)


def logic(storage: str, _: Path) -> None:
    """Comparisons of topics: repeated, reworded and negated, then ranked."""
    probe = {"samples": 1, "sampled_pairs": 1, "paraphrases": 2}
    audit = config(URL, 1, survey=CELLS, judges=[], probes={"logic": probe})
    rank_items(audit, RankingOptions(calibrated=True), storage=storage)
    run_audit(audit, storage=storage)


def logic_with_reasons(storage: str, _: Path) -> None:
    """Comparisons after a chain of thought."""
    audit = config(URL, 1, survey=CELLS, judges=[], probes={"logic": {"samples": 0, "cot": True}})
    run_audit(audit, storage=storage)


def logic_of_letters(storage: str, _: Path) -> None:
    """Comparisons by the probabilities of two letters, also as a ranking asks for them."""
    audit = config(URL, 1, survey=CELLS, judges=[], probes={"logic": {"samples": 0, "answer": "probability"}})
    rank_items(audit, RankingOptions(beam=2), storage=storage)
    run_audit(audit, storage=storage)


def logic_in_paper_form(storage: str, _: Path) -> None:
    """Comparisons without a tie, with repeats after a chain of thought."""
    probe = {"form": "paper", "samples": 1, "sampled_pairs": 1, "sample_answer": "cot", "max_pairs": 2}
    run_audit(config(URL, 1, survey=CELLS, judges=[], probes={"logic": probe}), storage=storage)


def logic_of_traces(storage: str, _: Path) -> None:
    """Comparisons of what models wrote."""
    probes = {"direct": {"samples": 1}, "logic": {"samples": 0, "items": "traces"}}
    run_audit(config(URL, 2, survey=CELLS, judges=[], probes=probes), storage=storage)


def distribution(storage: str, folder: Path) -> None:
    """Opinions in all modes about people of a country, of its groups, and of no country; some are repaired."""
    section = {"source": str(write_opinion_survey(folder)), "countries": ["Germany"], "topics": ["divorce", "abortion"]}
    probe = {"modes": ["verbalized", "sampled", "tokens"], "samples": 4, "groups": ["sex"]}
    run_audit(config(URL, 1, survey=section, judges=[], probes={"distribution": probe}), storage=storage)


def native_distribution(storage: str, folder: Path) -> None:
    section = {
        "source": str(write_opinion_survey(folder)), "countries": ["Japan"], "topics": ["divorce"],
        "rephrase": {"question": {"ja": "{country}: {topic}"}, "scale": {"ja": ["never", "always"]}},
    }  # fmt: skip
    probe = {"modes": ["verbalized", "sampled"], "samples": 4}
    probes = {"distribution": probe}
    run_audit(config(URL, 1, survey=section, language="native", judges=[], probes=probes), storage=storage)


def _moral(**probe: Any) -> AuditConfig:
    moral = {"limit": 1, "paraphrases": 2, **probe}
    return config(URL, 3, survey=None, probes={"semantic": moral}, embedding={"model": "words"})


def semantic(storage: str, folder: Path) -> None:
    """Moral questions that a model paraphrases, judged in pairs, and the experiments on them."""
    questions = folder / "questions.csv"
    questions.write_text("question_id,question\nbook,Is it wrong to keep a borrowed book?\n")
    judge_options = {"consistency": {"judge": "model-c", "samples": 2}, "contradiction": "model-c", "worst": 1}
    question_options = {"questions": str(questions), "paraphraser": "model-b", "threshold": 0.01}
    run_audit(_moral(**question_options, **judge_options), storage=storage)
    run_checked(temperature, ExperimentContext(storage), "scripted", "0,1")
    run_checked(rules, ExperimentContext(storage), "scripted")
    facts = folder / "facts.csv"
    rows = [f"1,Is water wet?,no|yes,yes,{wording}" for wording in ("Is it wet?", "Is water a wet thing?")]
    facts.write_text("\n".join(["question_id,question,choices,correct,paraphrase", *rows]))
    run_checked(accuracy, ExperimentContext(storage), "scripted", facts)


def semantic_of_facts(storage: str, folder: Path) -> None:
    """Questions on any subject, judged in pairs, in the published form of the consistency score."""
    questions = folder / "questions.csv"
    questions.write_text("question_id,question\nwater,When does water boil?\n")
    question_options = {"questions": str(questions), "subject": "any", "rot": False, "paraphraser": "model-b"}
    judge_options = {"consistency": {"judge": "model-c", "samples": 2, "form": "paper"}, "contradiction": "model-c"}
    run_audit(_moral(**question_options, **judge_options, threshold=0.01, worst=1), storage=storage)


def semantic_as_text(storage: str, _: Path) -> None:
    """Moral questions that are answered in plain words."""
    run_audit(_moral(mode="text"), storage=storage)
    run_checked(rules, ExperimentContext(storage), "scripted")


def semantic_of_cultures(storage: str, folder: Path) -> None:
    """Moral questions about countries, in two languages, with translations of answers."""
    questions = folder / "questions.csv"
    rows = [
        f"{country},Is it wrong to keep a borrowed book?,May one keep it? ({language}),{country},{language}"
        for country in ("Germany", "Japan")
        for language in ("en", "de")
    ]
    questions.write_text("\n".join(["question_id,question,paraphrase,country,language", *rows]))
    run_audit(_moral(questions=str(questions), limit=2, translator="model-b"), storage=storage)


def _task(storage: str, folder: Path, kind: str, mode: str, models: int = 1, **changes: Any) -> None:
    task = sum_task(folder, kind, items=2)
    probes = {"direct": {"samples": 1, "mode": mode}}
    run_audit(config(URL, models, survey=None, task=task, probes=probes, **changes), storage=storage)


def task_exact(storage: str, folder: Path) -> None:
    """Items with an exact answer, as JSON and as text, and reviews of the answers."""
    _task(storage, folder, "exact", "structured", 2, name="structured")
    _task(storage, folder, "exact", "text", judges=[], name="text")


def task_choice(storage: str, folder: Path) -> None:
    """Items of which one option is to be chosen, as JSON and as text."""
    _task(storage, folder, "choice", "structured", judges=[], name="structured")
    _task(storage, folder, "choice", "text", judges=[], name="text")


def task_score(storage: str, folder: Path) -> None:
    """Items that are answered with a score of a range, as JSON and as text."""
    _task(storage, folder, "score", "structured", judges=[], name="structured")
    _task(storage, folder, "score", "text", judges=[], name="text")


def task_judges(storage: str, folder: Path) -> None:
    """Guesses at the author of answers to a task, and the experiments on its judges."""
    probes = {"direct": {"samples": 1}, "review": {"guess": True}}
    task = sum_task(folder, "exact", items=2)
    run_audit(config(URL, 3, survey=None, task=task, probes=probes, name="judged"), storage=storage)
    run_checked(planted, ExperimentContext(storage), "judged", 1)
    run_checked(bias, ExperimentContext(storage), "judged", 1)


def short_verdicts(storage: str, folder: Path) -> None:
    """Reviews of answers to a survey and to a task, with another limit on words than the default."""
    probes = {"direct": {"samples": 1, "mode": "text"}, "review": {"max_words": 20}}
    run_audit(audit_configs.config(URL, 2, survey=CELLS, probes=probes), storage=storage)
    task = sum_task(folder, "exact", items=2)
    run_audit(audit_configs.config(URL, 2, survey=None, task=task, probes=probes, name="task"), storage=storage)


def other_providers(storage: str, _: Path) -> None:
    """A provider with a protocol of its own, and one that takes a tool in place of a schema."""
    audit = config(URL, 2, survey=CELLS, judges="peers", probes={"direct": {"samples": 1}})
    providers = ({"model": "anthropic/scripted-a", "api_base": f"http://{HOST}"}, {"model": "volcengine/scripted-b"})
    models = [m.model_copy(update=provider) for m, provider in zip(audit.models, providers, strict=True)]
    run_audit(audit.model_copy(update={"models": models}), storage=storage)


def openai_batches(storage: str, _: Path) -> None:
    run_audit(config(URL, 2, survey=CELLS, probes={"direct": {"samples": 1}}, batch=BATCH), storage=storage)


def anthropic_batches(storage: str, _: Path) -> None:
    audit = config(URL, 2, survey=CELLS, judges=[], probes={"direct": {"samples": 1}}, batch=BATCH)
    changes = [{"model": f"anthropic/scripted-{x}", "api_base": f"http://{HOST}"} for x in "ab"]
    models = [m.model_copy(update=change) for m, change in zip(audit.models, changes, strict=True)]
    run_audit(audit.model_copy(update={"models": models}), storage=storage)


AUDITS: dict[str, Callable[[str, Path], None]] = {
    audit.__name__: audit
    for audit in (
        survey, designs, reasoned_judgement, survey_as_text, paper_form, native_language, echoed, lettered, continued,
        embedded, replayed, logic, logic_with_reasons, logic_of_letters, logic_in_paper_form, logic_of_traces,
        distribution, native_distribution, semantic, semantic_of_facts, semantic_as_text, semantic_of_cultures,
        task_judges, task_exact, task_choice, task_score, short_verdicts, other_providers, openai_batches,
        anthropic_batches,
    )
}  # fmt: skip
