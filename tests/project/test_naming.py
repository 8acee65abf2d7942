"""Checks of names and words find what they are for, accept what is published, and know where a probe is named."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from auditor.config.installed_probes import list_built_in_names, list_folder_probes
from tests.project import naming
from tests.project.product_sources import ROOT, iterate_modules
from tests.project.user_strings import MARK, draw_sample, iterate_docs_sentences, iterate_help, iterate_settings

RULES = naming.load_rules()


@pytest.mark.parametrize(
    "source",
    ["found = 1", "def load(wanted): ...", "def tell_audit(): ...", "class Desk: ...", "MOST_HELPERS = 8",
     "for said in texts: ...", "self.told = True", "with opened() as there: ...", "import words as telling",
     "try: ...\nexcept OSError as why: ...", "match x:\n    case [*rest]: ..."],
)  # fmt: skip
def test_a_listed_word_is_refused(source: str) -> None:
    assert len(naming.find_refused("auditor/module.py", source, RULES)) == 1


@pytest.mark.parametrize("source", ["conflicts = 1", "not_found = 1", "MAX_HELPERS = 8", "almost = 1", "x = found"])
def test_other_names_are_accepted(source: str) -> None:
    assert naming.find_refused("auditor/module.py", source, RULES) == []


def test_the_name_of_a_module_counts_too() -> None:
    assert [d.name for d in naming.find_refused("tui/chrome.py", "", RULES)] == ["chrome"]
    assert [d.name for d in naming.find_refused("tests/tui/test_chrome.py", "", RULES)] == ["chrome"]


def test_a_published_name_stays_where_it_is_published_and_nowhere_else() -> None:
    source = "seats: int"
    assert naming.find_refused("storage/review_tables.py", source, RULES) == []
    assert naming.find_refused("auditor/run/replay.py", source, RULES) != []


NOT_CORE = ("auditor/cli/", "auditor/replications/", "auditor/probes/", "storage/migrations/", "prompts/")
"""Modules above the probes; migrations, which are about the tables of their day; and prompts."""
ORDINARY_WORDS = {"reasoning"}
"""Names of probes that the program uses for something else: what models write before their answers."""
NAMES = {*list_built_in_names(), *(probe.name for probe in list_folder_probes())}
WORD = re.compile(rf"(?<![a-z.:-])(?:auditor\.)?(probes\.)?({'|'.join(sorted(NAMES))})(?![a-z])")
ALLOWED = {
    ("auditor/config/result_settings.py", "semantic"): "the hashes of stored audits have the key whatever its value is",
    ("auditor/config/result_settings.py", "logic"): "the hashes of stored audits have the key whatever its value is",
    ("auditor/domain/decisions.py", "logic"): "the English word, for an aspect of reasoning",
    ("auditor/reports/sections/baselines.py", "memory"): "a caution names the probe that tests it",
}


def list_names(module: ast.Module) -> Iterator[str]:
    """Yield the probes that the strings, names and imports of a module name; docstrings and prose name none."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("auditor.probes"):
            yield from NAMES & {*(node.module or "").split(".")}
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        is_text = " " in node.value and not re.fullmatch(r"[a-z_ ]+", node.value)
        for prefix, name in WORD.findall(node.value):
            if prefix or not (is_text or name in ORDINARY_WORDS):
                yield name


def test_core_names_no_probe() -> None:
    modules = ((path.relative_to(ROOT).as_posix(), module) for path, module in iterate_modules("|".join(NAMES)))
    named = {(path, name) for path, module in modules for name in list_names(module)}
    assert {(path, name) for path, name in named if not path.startswith(NOT_CORE)} == set(ALLOWED)


def test_the_sample_has_every_kind_and_depends_only_on_the_seed() -> None:
    help_texts = sorted({*iterate_help()})
    assert any(text.startswith(f"auditor run --dry-run{MARK}Show the calls") for text in help_texts)
    strings = {
        "help": help_texts, "configuration": sorted({*iterate_settings()}),
        "documentation": sorted({*iterate_docs_sentences()}),
    }  # fmt: skip
    sample = draw_sample(strings, 1, size=30)
    assert len(set(sample)) == 30
    assert Counter(kind for kind, _ in sample) == dict.fromkeys(strings, 10)
    assert draw_sample(strings, 1, size=30) == sample != draw_sample(strings, 2, size=30)
