"""Exit codes are explained in one place, a table in docs/commands.md, and every page and help text agrees with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from auditor.cli.app import build_app
from auditor.errors import AuditorError
from auditor.reports.data.gates.estimates import CheckResult, GateStatus

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXPLANATION = ROOT / "docs" / "commands.md"
LINK = "commands.md#exit-codes"
EXIT_CODE = re.compile(r"(?:exit|exits|exit status)(?: code)?s?(?: of `[^`]+`)?:?\**:?(?: with)? (\d+)", re.IGNORECASE)
"""A code that a text names, as in `exit code 4`, `exits with 1` and `Exit codes: 0`."""
EXPLAINED_CODE = re.compile(r"(?:^|[:;,.] )(\d{1,3}) (?=[a-z])")
"""A code with its meaning in a list, as in `0 all models passed, 3 a model failed`."""


def read_table() -> dict[int, set[str]]:
    """The commands that end with each code, as the explanation says."""
    section = EXPLANATION.read_text(encoding="utf-8").split("## Exit codes\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", section, re.MULTILINE)
    return {int(code): set(re.findall(r"`([^`]+)`", commands)) or {commands} for code, commands in rows}


def iterate_subclasses(error: type[AuditorError]) -> Iterator[type[AuditorError]]:
    yield error
    for subclass in error.__subclasses__():
        yield from iterate_subclasses(subclass)


def iterate_commands(command: Any, name: str = "") -> Iterator[tuple[str, str]]:
    yield name, " ".join((command.help or "").split())
    for part, subcommand in getattr(command, "commands", {}).items():
        yield from iterate_commands(subcommand, f"{name} {part}".strip())


def named_codes(text: str) -> set[int]:
    codes = {int(code) for code in EXIT_CODE.findall(text)}
    for listing in re.findall(r"[Ee]xit codes?(?: of `[^`]+`)?:\**([^|\n]*)", text):
        codes |= {int(code) for code in EXPLAINED_CODE.findall(f": {listing.strip()}")}
    return codes


def test_the_table_has_every_code_of_the_program() -> None:
    checks = {
        CheckResult(audit="a", complete=True, confident=False, verdict=verdict, models=[], gates=[]).exit_code
        for verdict in (GateStatus.PASSED, GateStatus.FAILED, GateStatus.UNDECIDED)
    }
    errors = {error.exit_code for error in iterate_subclasses(AuditorError) if error.__module__.startswith("auditor")}
    assert set(read_table()) == checks | errors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_names_exit_codes_links_to_their_explanation(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert named_codes(text) <= set(read_table())
    if page != EXPLANATION:
        assert not re.search(r"exit codes?(?: of `[^`]+`)?:?\**:? \d+ [a-z].*[;,] \d+ [a-z]", text, re.IGNORECASE), (
            "codes are explained in docs/commands.md only"
        )
        assert LINK in text or not named_codes(text)


def test_help_texts_name_only_codes_that_the_explanation_gives_their_command() -> None:
    table = read_table()
    named = {name: codes for name, text in iterate_commands(get_command(build_app())) if (codes := named_codes(text))}
    assert named["check"] == {0, 3, 4}
    assert named["compare"] == {0, 3, 4}
    assert named["run"] == {0, 1, 2, 4, 130}
    for name, codes in named.items():
        assert {code for code in codes if table[code] & {"all", name}} == codes, name
