"""Sanitizing model output: removing invisible and control characters, chat markup, and signs of personal style."""

from __future__ import annotations

import re
import unicodedata

_ANSI_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_JOINERS = "\u200c\u200d"
_JOINING_SCRIPTS = re.compile("[\u0600-\u07ff\u0900-\u0dff]")
"""Scripts in which joiners affect the spelling of words."""
_LINE_BREAKS_AND_TABS = str.maketrans("", "", "\n\t")
_REMOVED_CATEGORIES = {"Cc", "Cf", "Co", "Cn", "Cs"}
_INVISIBLE_CHARACTERS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u115f\u1160\u3164\uffa0\u2800]")
"""Variation selectors and invisible letters."""
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
"""Characters allowed between the start of a line and a speaker's name."""
_FENCE_LINE = re.compile(
    r"^[ \t]*+(?:={6,}+|#{6,}+|-{6,}+|~{6,}+|(?:={3,}+|#{3,}+|-{3,}+|~{3,}+|<{3,}+)[^\n]{0,80}?"
    r"(?:={3,}+|#{3,}+|-{3,}+|~{3,}+|>{3,}+))[ \t]*+$",
    re.MULTILINE,
)
"""A line of marks, like the delimiters around a text in a judge's prompt."""
_FENCE_MARKS = ("===", "###", "---", "~~~", "<<<")
"""What each line of marks has. A look for the characters that a pattern needs takes a hundredth of its time, and most
texts have none of them."""
_MAX_PASSES = 5


def strip_control_sequences(text: str) -> str:
    """Remove terminal sequences, control and format characters, chat tokens, speaker labels and delimiter lines.

    Joiners are kept between letters of the scripts that need them. A removal can create a new match, so the last three
    steps are repeated until nothing changes, at most `_MAX_PASSES` times.
    """
    if not (text.isascii() and _is_printable(text)):  # as most texts in English are: nothing is to be removed there
        text = _ANSI_SEQUENCES.sub("", unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n"))
        text = re.sub("[\u2028\u2029\u0085\x0b\x0c]", "\n", _INVISIBLE_CHARACTERS.sub("", text))
        text = _strip_disallowed_characters(text)
    for _ in range(_MAX_PASSES):
        previous = text
        if "<" in text or "[" in text:
            text = _CHAT_TOKENS.sub("", text)
        text = _strip_speaker_labels(text)
        if any(marks in text for marks in _FENCE_MARKS):
            text = _FENCE_LINE.sub("", text)
        if text == previous:
            break
    return text


def _strip_speaker_labels(text: str) -> str:
    """Remove speaker labels at the start of a text's lines ("System:"), in time linear in the length of the text."""
    if not (":" in text or "：" in text or ">" in text):
        return text
    pieces, end = [], 0
    for label in _SPEAKER_LABEL.finditer(text):
        start = label.start()
        while start > end and _LINE_LEAD_CHARACTER.match(text[start - 1]):
            start -= 1
        line_start = start if start == 0 or text[start - 1] == "\n" else text.find("\n", start, label.start()) + 1
        if line_start or start == 0:
            pieces.append(text[end:line_start])
            end = label.end()
    return "".join([*pieces, text[end:]])


def _strip_disallowed_characters(text: str) -> str:
    if _is_printable(text):  # as most texts are; faster than a look at each character
        return text
    return "".join(char for index, char in enumerate(text) if _is_allowed_character(text, index, char))


def _is_printable(text: str) -> bool:
    """Whether a text has printable characters, line feeds and tabs only."""
    return text.translate(_LINE_BREAKS_AND_TABS).isprintable()


def _is_allowed_character(text: str, index: int, char: str) -> bool:
    """Whether to keep the character at an index of a text: False for control, format and unassigned characters."""
    if char in "\n\t":
        return True
    if char in _JOINERS:
        return 0 < index < len(text) - 1 and all(
            _JOINING_SCRIPTS.match(text[neighbour]) for neighbour in (index - 1, index + 1)
        )
    return unicodedata.category(char) not in _REMOVED_CATEGORIES


# --- style ------------------------------------------------------------------------------------------------------

_BLOCK_MARKS = re.compile(
    r"^(?:[ \t]*+(?:```.*|~~~.*|[-*_=]{3,}+[ \t]*+)|(?=[^\n]*---)[ \t:|-]++)$",
    re.MULTILINE,
)
_THREE_MARKS = re.compile(r"[-*_=`~]{3}")
_LINE_MARKERS = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+•‣◦▪–—·●○■□✓✔➤→][ \t]+|\(?\d{1,2}[.)][ \t]+)+", re.MULTILINE
)
_PAIRED_EMPHASIS = re.compile(r"(\*\*\*|\*\*|__|~~|`)(?=\S)(.{1,500}?)(?<=\S)\1")
_SINGLE_EMPHASIS = re.compile(r"(?<![\w*])([*_])(?=[^\s*_])([^*_\n]+?)(?<=[^\s*_])\1(?![\w*])")
_LINKS = re.compile(r"!?\[([^\]\n]*+)(\]\((?:[^()\s]|\([^()\s]*+\))*+\))?")
"""A link, or bracketed text without one; matching both ensures that no character is scanned twice."""
_TABLE_ROWS = re.compile(r"^[ \t]*\|(.+?)\|?[ \t]*$", re.MULTILINE)
_PICTOGRAPHS = re.compile(
    "[\u2190-\u21ff\u2300-\u23ff\u2460-\u27bf\u2900-\u297f\u2b00-\u2bff\U0001f000-\U0001faff]+[ \t]?"
)
_ASCII_PUNCTUATION = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‟": '"', "’": "'", "‘": "'", "—": "-", "–": "-", "…": "..."}
)


def strip_style(text: str) -> str:
    """Remove formatting that can identify a text's author: Markdown, bullets, emoji, curly quotes."""
    # Group 1 of a table row is what stands between its outer bars.
    text = _strip_block_marks(text)
    if "|" in text:
        text = _TABLE_ROWS.sub(lambda row: row[1].replace("|", ","), text)
    text = _LINE_MARKERS.sub("", _strip_block_marks(_unwrap_links(text)))
    if any(mark in text for mark in "*_~`"):
        text = _strip_emphasis(text)
    if not text.isascii():
        text = _PICTOGRAPHS.sub("", text).translate(_ASCII_PUNCTUATION)
    if "  " in text or "\t" in text:
        text = re.sub(r"[ \t]+", " ", text)
    if " \n" in text or "\n " in text:
        text = re.sub(r" *\n *", "\n", text)
    return (re.sub(r"\n{3,}", "\n\n", text) if "\n\n\n" in text else text).strip()


def _strip_block_marks(text: str) -> str:
    """Remove lines of marks; each has three of them in a row."""
    return _BLOCK_MARKS.sub("", text) if _THREE_MARKS.search(text) else text


def _strip_emphasis(text: str) -> str:
    """Remove marks of emphasis around words; removing one can create another pair."""
    for _ in range(_MAX_PASSES):
        # Group 2 is the text between the marks.
        previous, text = text, _SINGLE_EMPHASIS.sub(r"\2", _PAIRED_EMPHASIS.sub(r"\2", text))
        if text == previous:
            break
    return text


def _unwrap_links(text: str) -> str:
    """Replace Markdown links by their text; other bracketed text stays as it is."""
    # Group 1 is the text in brackets, group 2 the target, which only a link has; group 0 is the whole match.
    return _LINKS.sub(lambda link: link[1] if link[2] else link[0], text) if "[" in text else text
