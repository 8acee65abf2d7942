from __future__ import annotations

import re
from importlib import resources

import pytest

from auditor.agents.answer_parsing import parse_score, parse_trace
from auditor.domain import LANGUAGES, Answer, Cell, Outcome
from auditor.errors import ConfigError
from auditor.prompts import fill_placeholders, load_prompt
from auditor.prompts.loader import PLACEHOLDER, parse_prompt
from tests.prompts.test_survey_translations import OTHERS
from tests.support.language_samples import SAMPLES

FILE = "---\nid: x\nversion: 1\npurpose: p\nfields: [a]\n---\n[system]\nS {a}\n[user]\nU\n"


def test_every_template_loads() -> None:
    files = (resources.files("auditor.prompts") / "en").iterdir()
    names = [f.name.removesuffix(".md") for f in files if f.name.endswith(".md")]
    assert {"direct.structured", "direct.text", "review", "semantic.answer.text"} <= set(names)
    for name in names:
        assert load_prompt(name).id == name


def test_values_are_filled_in_one_pass() -> None:
    assert fill_placeholders("{a} {b}", {"a": "{b}", "b": "x"}) == "{b} x"
    messages = parse_prompt(FILE, "en", source="x").render(preamble="P", a='{"norms": {a}}')
    assert [m.content for m in messages] == ['P\n\nS {"norms": {a}}', "U"]


def test_a_prompt_may_begin_with_a_request_and_a_reply() -> None:
    text = FILE.replace("[system]\nS {a}\n", "[user]\nR {a}\n[assistant]\nOf course.\n")
    prompt = parse_prompt(text, "en", source="x")
    messages = [("user", "R 1"), ("assistant", "Of course."), ("user", "U")]
    assert [(m.role, m.content) for m in prompt.render(a="1")] == messages
    assert [(m.role, m.content) for m in prompt.render(preamble="P", a="1")] == [("system", "P"), *messages]


@pytest.mark.parametrize(
    ("change", "message"),
    [(("fields: [a]", "fields: [a, b]"), "declares the fields"), (("S {a}", "S"), "declares the fields"),
     (("[user]", "[human]"), "front matter"), (("version: 1\n", ""), "the front matter has fields, id, purpose")],
)  # fmt: skip
def test_a_broken_template_is_an_error_when_it_is_loaded(change: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_prompt(FILE.replace(*change), "en", source="prompts/en/x.md")


def test_wrong_values_are_an_error() -> None:
    with pytest.raises(ValueError, match="takes"):
        parse_prompt(FILE, "en", source="x").render(b="1")


def test_an_unknown_prompt_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no prompt 'direct' in the language 'xx'"):
        load_prompt("direct", "xx")


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("mode", ["structured", "text"])
def test_a_template_has_what_the_english_one_has(language: str, mode: str) -> None:
    prompt, english = load_prompt(f"direct.{mode}", language), load_prompt(f"direct.{mode}")
    assert prompt.fields == english.fields
    assert prompt.system != english.system
    for name in ('"norms"', '"reasoning"', '"score"') if mode == "structured" else ("\nSCORE = x",):
        assert name in prompt.system
    assert "-1.0 " in prompt.system.replace("（", " ")


@pytest.mark.parametrize("language", OTHERS)
def test_the_last_line_asked_for_is_read(language: str) -> None:
    line = load_prompt("direct.text", language).system.splitlines()[-1]
    assert parse_score(f"…\n{line.replace('= x', '= ' + HALF.get(language, '0,5'))}") == 0.5
    assert parse_score(line) is None


IN_ITS_LANGUAGE = {code: samples["in_its_language"] for code, samples in SAMPLES.items() if code != "en"}
STEPS = re.compile(r"[.。।] ?([^.。।:：{]{2,12}[:：])")
"""The names of the three steps in the text of a prompt."""
HALF = {code: samples["half"] for code, samples in SAMPLES.items() if "half" in samples}


@pytest.mark.parametrize("language", sorted(IN_ITS_LANGUAGE))
@pytest.mark.parametrize("mode", ["structured", "text"])
def test_a_template_asks_for_an_answer_in_its_own_language(language: str, mode: str) -> None:
    assert IN_ITS_LANGUAGE[language] in load_prompt(f"direct.{mode}", language).system


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("form", "sign"),
    [
        ("SCORE = {n}", 1), ("SCORE = -{n}", -1), ("SCORE = −{n}", -1), ("SCORE={n}", 1), ("**SCORE = {n}**", 1),
        ("SCORE：{n}", 1), ("SCORE = {n}。", 1), ("SCORE = x = {n}", 1), ("{step} SCORE = {n}", 1),
        ("{step}\nSCORE = {n}", 1), ("**{step} SCORE = {n}**", 1), ("\u200fSCORE = {n}\u200f", 1),
        ("SCORE = \u200e-{n}", -1), ("SCORE = {n} ({scale})", 1),
    ],
)  # fmt: skip
def test_the_last_step_is_read_as_models_write_it(language: str, form: str, sign: int) -> None:
    [_, _, step] = STEPS.findall(load_prompt("direct.text", language).system)
    scale = {"ar": "يُبرَّر أحيانًا", "hi": "कभी-कभी"}.get(language, "…")
    line = form.format(n=HALF.get(language, "0,5"), step=step, scale=scale)
    assert parse_score(f"…\n{line}") == 0.5 * sign


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_reasoning_keeps_its_words_and_loses_the_line(language: str) -> None:
    reasoning = load_prompt("direct.text", language).system.splitlines()[0]
    answer = Answer("k", Outcome.OK, text=f"{reasoning}\nSCORE = {HALF.get(language, '0,5')}")
    trace = parse_trace(answer, "m", Cell("Japan", "divorce"), 0, "text")
    assert (trace.outcome, trace.score, trace.text) == (Outcome.OK, 0.5, reasoning)


FIXED = {"aspects", "max_words", "never", "always", "count", "least", "most"}
"""What is the same in all calls of an audit to a model."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_differs_from_call_to_call_comes_after_what_does_not(language: str) -> None:
    """Providers keep the beginning of a prompt that many calls share; the first word that differs ends it."""
    files = [f.name for f in (resources.files("auditor.prompts") / language).iterdir()]
    prompts = [load_prompt(name.removesuffix(".md"), language) for name in files if name.endswith(".md")]
    assert {"direct.structured", "direct.text"} <= {p.id for p in prompts}
    for prompt in prompts:
        if prompt.system:
            assert set(PLACEHOLDER.findall(prompt.system)) <= FIXED, prompt.id
