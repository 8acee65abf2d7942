"""Draw strings that users can meet, for a stranger to rate: `python -m tests.project.user_strings [SEED]`.

A string counts as understood if a reader who does not know the project can say what it means. A sentence within a
paragraph comes after the sentence before it and the mark ». Each kind has the same share, since the documentation would
otherwise be nearly all of the sample.
"""

from __future__ import annotations

import ast
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEFAULT_SEED = 25
SAMPLE_SIZE = 100
MIN_WORDS = 4
"""Shorter strings are labels, which mean nothing without their place."""
MESSAGE_FUNCTIONS = frozenset({"print_message", "notify", "show_message", "set_status"})
MESSAGE_SUFFIXES = ("Error", "Interrupted", "Refused", "Exceeded")
"""Ends of the names of exceptions whose text is shown."""
VALIDATED_PACKAGES = ("config", "surveys", "tasks")
"""Packages whose ValueError reaches users, in messages on a configuration or a file; others are for programmers."""
INTERNAL_ERRORS = frozenset({"TypeError", "KeyError", "AttributeError", "RuntimeError", "NotImplementedError"})
MARK = " » "


def collect_strings() -> dict[str, list[str]]:
    """All strings of each kind, sorted and without duplicates."""
    kinds: Mapping[str, Callable[[], Iterator[str]]] = {
        "help": iterate_help, "configuration": iterate_settings, "message": iterate_messages,
        "report": iterate_report_sentences, "documentation": iterate_docs_sentences,
    }  # fmt: skip
    return {
        kind: sorted({text for text in map(_normalize, iterate()) if _has_enough_words(text)})
        for kind, iterate in kinds.items()
    }


def draw_sample(strings: Mapping[str, list[str]], seed: int, size: int = SAMPLE_SIZE) -> list[tuple[str, str]]:
    """Draw equally many strings of each kind, as kind and string, in random order."""
    generator = random.Random(seed)
    share = size // len(strings)
    sample = [(kind, text) for kind, texts in strings.items() for text in generator.sample(texts, share)]
    generator.shuffle(sample)
    return sample


def iterate_help() -> Iterator[str]:
    """Yield the help of every command and of its options and arguments."""
    from typer.main import get_command

    from auditor.cli.app import build_app

    shown: set[str] = set()  # options of several commands count once

    def walk(command: Any, name: str) -> Iterator[str]:
        for paragraph in (command.help or "").split("\n\n"):
            if not paragraph.startswith("Example:"):
                yield from _split_sentences(paragraph, name)
        for parameter in command.params:
            if getattr(parameter, "help", None) and parameter.help not in shown:
                shown.add(parameter.help)
                yield f"{name} {' / '.join(parameter.opts)}{MARK}{parameter.help}"
        for child_name, child in getattr(command, "commands", {}).items():
            yield from walk(child, f"{name} {child_name}")

    return walk(get_command(build_app()), "auditor")


def iterate_settings() -> Iterator[str]:
    """Yield the descriptions of all settings of the configuration."""
    from auditor.config import AuditConfig

    schema = AuditConfig.model_json_schema()
    for table in (schema, *schema["$defs"].values()):
        for name, field in table.get("properties", {}).items():
            yield f"{name}{MARK}{field.get('description', '')}"


def iterate_messages() -> Iterator[str]:
    """Yield the texts of errors and messages in the sources; `…` stands for a value."""
    for path in sorted((ROOT / "auditor").rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            target.id: node.value
            for node in module.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(module):
            if isinstance(node, ast.Call) and _is_message_call(node.func, path.relative_to(ROOT / "auditor").parts[0]):
                arguments = [constants.get(getattr(argument, "id", ""), argument) for argument in node.args]
                yield " ".join(_format_literal(argument) or "…" for argument in arguments)


def iterate_report_sentences() -> Iterator[str]:
    """Yield the sentences of the report of a synthetic audit, without those that its made-up models write."""
    from auditor.reports.data.build import build_report
    from auditor.reports.document import Quote
    from auditor.reports.document.blocks import iterate_blocks
    from auditor.reports.render.plain_text import flatten_text
    from auditor.reports.sections.report import build_report_document
    from auditor.storage.database import open_database
    from tests.support.synthetic_audit import populate

    with tempfile.TemporaryDirectory() as folder, open_database(f"sqlite:///{folder}/audit.db") as db:
        document = build_report_document(build_report(db, populate(db, models=4).name))
    for block in iterate_blocks(document):
        if isinstance(block, Quote):
            continue
        texts = [getattr(block, name, "") for name in ("title", "content", "caption", "summary")]
        texts += [getattr(item, "content", item) for item in getattr(block, "items", ())]
        for text in filter(None, texts):
            if not (isinstance(text, tuple) and len(text) == 2 and all(isinstance(part, str) for part in text)):
                yield from _split_sentences(flatten_text(text))


def iterate_docs_sentences() -> Iterator[str]:
    """Yield the sentences of the README and of all pages, without code blocks."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
        for paragraph in re.split(r"\n\s*\n|\n(?=[-|#>]|\d+\. )", text):
            cells = paragraph.strip("| ").split(" | ") if paragraph.startswith("|") else [paragraph.lstrip("-# >")]
            for place, cell in zip([path.stem, *[cells[0]] * (len(cells) - 1)], cells, strict=True):
                if "::" not in cell:  # the name of a test
                    yield from _split_sentences(cell, place)


def _is_message_call(function: ast.expr, package: str) -> bool:
    """Whether a call in a package shows its text to users, by the name of the function or exception."""
    name = getattr(function, "id", getattr(function, "attr", ""))
    if name == "ValueError":
        return package in VALIDATED_PACKAGES
    return name in MESSAGE_FUNCTIONS or (name.endswith(MESSAGE_SUFFIXES) and name not in INTERNAL_ERRORS)


def _format_literal(node: ast.expr) -> str:
    """The text of a string in the source; empty for any other expression."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_format_literal(value) if isinstance(value, ast.Constant) else "…" for value in values)
        case _:
            return ""


def _split_sentences(text: str, place: str = "") -> list[str]:
    """The sentences of a text, each after the one before it; the first after the place where it stands, if any."""
    sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z“‘`*])", " ".join(text.split()))
    return [f"{before}{MARK}{sentence}".removeprefix(MARK) for before, sentence in pairwise([place, *sentences])]


def _has_enough_words(text: str) -> bool:
    """Whether the string itself, without what comes before it, is more than a label or a row of figures."""
    return len(re.findall(r"[^\W\d_]{2,}", text.rpartition(MARK)[2])) >= MIN_WORDS


def _normalize(text: str) -> str:
    """A string on one line, without marks of emphasis."""
    return " ".join(text.replace("**", "").split())


def main() -> None:
    """Print the sample, one numbered string a line."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_SEED
    strings = collect_strings()
    counts = ", ".join(f"{len(texts)} {kind}" for kind, texts in strings.items())
    print(f"{SAMPLE_SIZE} of {sum(map(len, strings.values()))} strings ({counts}), seed {seed}.")
    for number, (kind, text) in enumerate(draw_sample(strings, seed), 1):
        print(f"{number:3}. [{kind}] {text}")


if __name__ == "__main__":
    main()
