"""Report names that this project does not use, since a newcomer would not know what they hold.

Run by `make check`. `naming.toml` lists the names, and the published ones that stay. A finding names the file, the line
and the name; to fix it, name the thing for what it holds (a variable) or does (a function).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RULES_FILE = Path(__file__).with_suffix(".toml")


class Definition(NamedTuple):
    """A name that a file defines: a module, class, function, parameter, attribute or variable."""

    line: int
    name: str


class Rules(NamedTuple):
    """Names that are refused.

    Attributes:
        names: refused as a whole name, compared in lower case without leading underscores.
        words: refused as one of a name's words.
        prefixes: refused as the first word of a constant.
        allowed: names that stay, by a pattern of the files they are in.
    """

    names: frozenset[str]
    words: frozenset[str]
    prefixes: frozenset[str]
    allowed: dict[str, frozenset[str]]


def load_rules(path: Path = RULES_FILE) -> Rules:
    """Read the rules from a TOML file."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    allowed = {entry["files"]: frozenset(entry["names"]) for entry in table["allowed"]}
    return Rules(frozenset(table["names"]), frozenset(table["words"]), frozenset(table["prefixes"]), allowed)


def iterate_definitions(tree: ast.AST) -> Iterator[Definition]:
    """Every name that a syntax tree defines; names that it only uses are left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield Definition(node.lineno, node.name)
        elif isinstance(node, ast.arg):
            yield Definition(node.lineno, node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield Definition(node.lineno, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield Definition(node.lineno, node.attr)
        elif isinstance(node, ast.alias) and node.asname:
            yield Definition(node.lineno, node.asname)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield Definition(node.lineno, node.name)


def split_words(name: str) -> list[str]:
    """The words of a name in snake case, camel case or capitals, in lower case."""
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", part)]


def is_refused(name: str, rules: Rules) -> bool:
    """Whether a name breaks the rules; whether it is allowed in its file is not asked here."""
    words = split_words(name)
    is_constant = name.isupper() and len(words) > 1
    return (
        name.strip("_").lower() in rules.names
        or bool(rules.words.intersection(words))
        or (is_constant and words[0] in rules.prefixes)
    )


def find_refused(path: str, source: str, rules: Rules) -> list[Definition]:
    """The refused names of a file, its own name among them; `path` is relative to the project's root."""
    allowed: set[str] = set()
    for pattern, names in rules.allowed.items():
        if fnmatch(path, pattern):
            allowed |= names
    module = Definition(1, Path(path).stem.removeprefix("test_"))
    definitions: Iterable[Definition] = (module, *iterate_definitions(ast.parse(source)))
    return sorted({d for d in definitions if d.name not in allowed and is_refused(d.name, rules)})


def list_sources() -> list[str]:
    """Python files of the project, relative to its root; the steps of the database's history stay as they ran."""
    listed: Any = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split() if "/migrations/versions/" not in path and (ROOT / path).is_file()]


def main() -> int:
    """Print each refused name; the exit code is 1 if there is one."""
    rules = load_rules()
    n_refused = 0
    for path in list_sources():
        for definition in find_refused(path, (ROOT / path).read_text(encoding="utf-8"), rules):
            n_refused += 1
            print(f"{path}:{definition.line}: `{definition.name}` does not say what it is. See {RULES_FILE.name}.")
    print(f"names: {n_refused} refused" if n_refused else "names: fine")
    return 1 if n_refused else 0


if __name__ == "__main__":
    sys.exit(main())
