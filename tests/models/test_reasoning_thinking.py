"""Thinking is removed from a text, whichever tags it has and whether or not they are complete."""

from __future__ import annotations

import pytest

from auditor.models.reasoning import THINKING_FORMS, starts_thinking, strip_thinking
from tests.support.hang_limit import hang_limit


@pytest.mark.parametrize(
    ("text", "visible_text"),
    [
        ("<think>secret</think>SCORE = 0.1", "SCORE = 0.1"),
        ("<think>\n\n</think>\n\nSCORE = 0.1\n", "SCORE = 0.1"),
        ("secret</think>\nSCORE = 0.1", "SCORE = 0.1"),
        ("SCORE = 0.1\n<think>secret", "SCORE = 0.1"),
        ("<think>secret", ""),
        ("<THINKING>secret</THINKING> SCORE = 0.1", "SCORE = 0.1"),
        ("<thought>secret</thought>SCORE = 0.1", "SCORE = 0.1"),
        ("<seed:think>secret</seed:think>SCORE = 0.1", "SCORE = 0.1"),
        ("<reasoning>secret</reasoning>SCORE = 0.1", "SCORE = 0.1"),
        ("<reason>secret</reason>SCORE = 0.1", "SCORE = 0.1"),
        ("<mm:think>secret</mm:think>SCORE = 0.1", "SCORE = 0.1"),
        ("secret</longcat_think>SCORE = 0.1", "SCORE = 0.1"),
        ("<think >secret</think >SCORE = 0.1", "SCORE = 0.1"),
        ("<reflection>secret</reflection>SCORE = 0.1", "SCORE = 0.1"),
        ("[THINK]secret[/THINK]SCORE = 0.1", "SCORE = 0.1"),
        ("secret[/THINK]SCORE = 0.1", "SCORE = 0.1"),
        ("◁think▷secret◁/think▷SCORE = 0.1", "SCORE = 0.1"),
        ("◁think▷secret", ""),
        ("<think>one <think>two</think> three</think>SCORE = 0.1", "SCORE = 0.1"),
        ("<think>a</think>first <think>b</think>second", "first second"),
    ],
)
def test_thinking_is_removed(text: str, visible_text: str) -> None:
    assert strip_thinking(text) == visible_text


HARMONY = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    "text",
    [
        f"<|channel|>analysis<|message|>secret SCORE = 0.9<|end|>{HARMONY}SCORE = 0.1",
        f"<|channel|>analysis<|message|>secret{HARMONY}SCORE = 0.1<|return|>",
        f"<|start|>assistant<|channel|>analysis<|message|>secret<|end|>{HARMONY}SCORE = 0.1<|end|>",
        f"analysis<|message|>secret<|end|>{HARMONY}SCORE = 0.1",
        f"secret<|end|>{HARMONY}SCORE = 0.1",
        "<|channel|>analysis<|message|>a<|end|><|channel|>analysis<|message|>b<|channel|>final<|message|>SCORE = 0.1",
        "<|channel|>final <|constrain|>json<|message|>SCORE = 0.1",
        "<|channel|>analysis<|message|>secret<|end|>SCORE = 0.1",
        "<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>commentary to=functions.A "
        "<|constrain|>json<|message|>SCORE = 0.1<|call|>",
        "analysisWe need secret.assistantfinalSCORE = 0.1",
        "Here is my thought process:\nsecret\nHere is my response:\nSCORE = 0.1",
        "<|channel>thought\nsecret<channel|>SCORE = 0.1<turn|>",
        "<|channel>thought\n<channel|>SCORE = 0.1",
        "secret<channel|>SCORE = 0.1",
        "<unused94>thought\nsecret<unused95>SCORE = 0.1",
        "<|START_THINKING|>secret<|END_THINKING|><|START_RESPONSE|>SCORE = 0.1<|END_RESPONSE|>",
        "<|begin_of_thought|>secret<|end_of_thought|>\n<|begin_of_solution|>SCORE = 0.1<|end_of_solution|>",
        "<|inner_prefix|>secret<|inner_suffix|>SCORE = 0.1",
        "secret<|think:end|>SCORE = 0.1",
        "<think>`</think>` secret</think>SCORE = 0.1",
        "SCORE = 0.1<think>secret",
        "SCORE = 0.1\n<|channel|>analysis<|message|>secret",
        "SCORE = 0.1<|im_end|>",
        "<|im_start|>assistant\nSCORE = 0.1<|im_end|>\n<|endoftext|>",
        "SCORE = 0.1</s>",
        "SCORE = 0.1<｜end▁of▁sentence｜>",
        "<answer>SCORE = 0.1</answer>",
        "<think>secret</think><answer>SCORE = 0.1</answer>",
        "SCORE = 0.1<|im_end|>\n<|im_start|>user\nsecret question<|im_end|>\n<|im_start|>assistant\nSCORE = 0.9",
        "SCORE = 0.1<end_of_turn>\n<start_of_turn>user\nsecret",
    ],
)
def test_thinking_and_chat_tokens_of_other_models_are_removed(text: str) -> None:
    assert strip_thinking(text) == "SCORE = 0.1"


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>analysis<|message|>secret",
        "<|channel>thought\nsecret",
        "<unused94>thought\nsecret",
        "[THINK]",
        "analysisWe need secret",
    ],
)
def test_thinking_without_an_end_leaves_nothing(text: str) -> None:
    assert strip_thinking(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The tag `<think>` begins it.\nSCORE = 0.1",
        "The tags `<think>` and `</think>` enclose it.\nSCORE = 0.1",
        'It ends with "</think>".\nSCORE = 0.1',
        "Some write <think> before it.\nSCORE = 0.1",
        "As in `<think>this</think>`, they weigh it.\nSCORE = 0.1",
        "“<|channel|>” is a token.\nSCORE = 0.1",
    ],
)
def test_tags_quoted_within_an_answer_stay(text: str) -> None:
    assert strip_thinking(text) == text


def test_each_form_has_a_source_and_is_known_by_its_first_token() -> None:
    assert all(form.source for form in THINKING_FORMS)
    for token in (
        "<|channel|>",
        "<|channel>",
        "<unused94>",
        "<think",
        " <think>",
        "[THINK]",
        "◁think▷",
        "<seed:think>",
    ):
        assert starts_thinking(token), token
    for token in ("A", "", " The", "<", "thought"):
        assert not starts_thinking(token), token


@pytest.mark.parametrize("text", [" I think 1 < 2. ", "[1] a list", '{"norms": "a <b> c"}', "", "thinking"])
def test_a_text_without_such_tags_is_unchanged(text: str) -> None:
    assert strip_thinking(text) == text


@pytest.mark.parametrize(
    "part",
    [
        *("<think>", "</think>", "<", "[", "<think>a</think>", "<thinking></think>", "[THINK]", "`</think>` <think> "),
        *(
            "<|channel|>",
            "<|channel|>analysis",
            "<|channel|>final",
            "<|im_end|>",
            "</s>\n",
            "<|a|>",
            "analysis",
            "`<think></think>`",
        ),
    ],
)
def test_a_megabyte_takes_linear_time(part: str) -> None:
    with hang_limit():
        strip_thinking(part * (1_000_000 // len(part)))
