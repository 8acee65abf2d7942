"""Making a text that a model wrote safe and plain: nothing hidden, nothing that acts, no style of its author's."""

from __future__ import annotations

import re
import unicodedata

_ANSI_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_JOINERS = "\u200c\u200d"
_JOINING_SCRIPTS = re.compile("[\u0600-\u07ff\u0900-\u0dff]")
"""Scripts in which a joiner shapes words."""
_REMOVED_CATEGORIES = {"Cc", "Cf", "Co", "Cn", "Cs"}
_INVISIBLE_CHARACTERS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u115f\u1160\u3164\uffa0\u2800]")
"""Variation selectors and letters without a picture."""
_CHAT_TOKENS = re.compile(
    r"<\|[^<>|\n]{1,60}\|>|</?s>|\[/?(?:INST|SYS)\]|<</?SYS>>|</?(?:start|end)_of_turn>|<｜[^<>\n]{1,60}｜>"
    r"|</?(?:system|user|assistant|human|instructions?|tool_call|tool_response|function_calls?)\b[^<>\n]{0,60}>",
    re.IGNORECASE,
)
_SPEAKER_LABEL = re.compile(
    r"(?:system|assistant|user|human|developer|tool|ai|instruction|note to (?:the )?(?:judge|reviewer))"
    r"(?:\s+(?:prompt|message|note|override))?[\s*_\])]*+[:：>][ \t]*",
    re.IGNORECASE,
)
_LINE_LEAD_CHARACTER = re.compile(r"[\s>*#_\-=\[(]")
"""What may stand between the start of a line and a speaker's name."""
_FENCE_LINE = re.compile(
    r"^[ \t]*+(?:={6,}+|#{6,}+|-{6,}+|~{6,}+|(?:={3,}+|#{3,}+|-{3,}+|~{3,}+|<{3,}+)[^\n]{0,80}?"
    r"(?:={3,}+|#{3,}+|-{3,}+|~{3,}+|>{3,}+))[ \t]*+$",
    re.MULTILINE,
)
"""A line between marks, as what stands around a text that is judged."""
_MAX_PASSES = 5


def strip_control_sequences(text: str) -> str:
    """The text without what acts or hides: terminal sequences, control and format characters, turns of a chat.

    Joiners stay between letters of the scripts that need them. Removing one thing can put another together, so it is
    done until nothing changes.
    """
    text = _ANSI_SEQUENCES.sub("", unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n"))
    text = re.sub("[\u2028\u2029\u0085\x0b\x0c]", "\n", _INVISIBLE_CHARACTERS.sub("", text))
    text = "".join(c for i, c in enumerate(text) if _is_allowed_character(text, i, c))
    for _ in range(_MAX_PASSES):
        before, text = text, _FENCE_LINE.sub("", _strip_speaker_labels(_CHAT_TOKENS.sub("", text)))
        if text == before:
            break
    return text


def _strip_speaker_labels(text: str) -> str:
    """The text without what opens a turn of a chat at the start of a line ("System:"), in time linear in its length."""
    pieces, end = [], 0
    for speaker in _SPEAKER_LABEL.finditer(text):
        start = speaker.start()
        while start > end and _LINE_LEAD_CHARACTER.match(text[start - 1]):
            start -= 1
        line = start if start == 0 or text[start - 1] == "\n" else text.find("\n", start, speaker.start()) + 1
        if line or start == 0:
            pieces.append(text[end:line])
            end = speaker.end()
    return "".join([*pieces, text[end:]])


def _is_allowed_character(text: str, index: int, char: str) -> bool:
    if char in "\n\t":
        return True
    if char in _JOINERS:
        return 0 < index < len(text) - 1 and all(_JOINING_SCRIPTS.match(text[i]) for i in (index - 1, index + 1))
    return unicodedata.category(char) not in _REMOVED_CATEGORIES


# --- style ------------------------------------------------------------------------------------------------------

_BLOCK_MARKS = re.compile(
    r"^(?:[ \t]*+(?:```.*|~~~.*|[-*_=]{3,}+[ \t]*+)|(?=[^\n]*---)[ \t:|-]++)$",
    re.MULTILINE,
)
_LINE_MARKERS = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•‣◦▪–—·●○■□✓✔➤→][ \t]+|\(?\d{1,2}[.)][ \t]+)+", re.MULTILINE
)
_PAIRED_EMPHASIS = re.compile(r"(\*\*\*|\*\*|__|~~|`)(?=\S)(.{1,500}?)(?<=\S)\1")
_SINGLE_EMPHASIS = re.compile(r"(?<![\w*])([*_])(?=[^\s*_])([^*_\n]+?)(?<=[^\s*_])\1(?![\w*])")
_LINKS = re.compile(r"!?\[([^\]\n]*+)(\]\((?:[^()\s]|\([^()\s]*+\))*+\))?")
"""A link, or an opening bracket without one: what is looked at once is not looked at again."""
_TABLE_ROWS = re.compile(r"^[ \t]*\|(.+?)\|?[ \t]*$", re.MULTILINE)
_PICTOGRAPHS = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2460-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]+[ \t]?"
)
_ASCII_PUNCTUATION = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‟": '"', "’": "'", "‘": "'", "—": "-", "–": "-", "…": "..."}
)


def strip_style(text: str) -> str:
    """The text without marks by which one knows its author's habits: Markdown, bullets, emoji, curly quotes."""
    text = _TABLE_ROWS.sub(lambda row: row[1].replace("|", ","), _BLOCK_MARKS.sub("", text))
    text = _LINE_MARKERS.sub("", _BLOCK_MARKS.sub("", _unwrap_links(text)))
    for _ in range(_MAX_PASSES):
        before, text = text, _SINGLE_EMPHASIS.sub(r"\2", _PAIRED_EMPHASIS.sub(r"\2", text))
        if text == before:
            break
    text = _PICTOGRAPHS.sub("", text).translate(_ASCII_PUNCTUATION)
    text = re.sub(r"[ \t]+", " ", text)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r" *\n *", "\n", text)).strip()


def _unwrap_links(text: str) -> str:
    return _LINKS.sub(lambda link: link[1] if link[2] else link[0], text)
