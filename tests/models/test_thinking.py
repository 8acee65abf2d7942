"""Thinking is removed from a text, whichever tags it has and whether or not they are complete."""

from __future__ import annotations

import pytest

from auditor.models.thinking import strip_thinking
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


@pytest.mark.parametrize("text", [" I think 1 < 2. ", "[1] a list", '{"norms": "a <b> c"}', "", "thinking"])
def test_a_text_without_such_tags_is_unchanged(text: str) -> None:
    assert strip_thinking(text) == text


@pytest.mark.parametrize("part", ["<think>", "</think>", "<", "[", "<think>a</think>", "<thinking></think>", "[THINK]"])
def test_a_megabyte_takes_linear_time(part: str) -> None:
    with hang_limit():
        strip_thinking(part * (1_000_000 // len(part)))
