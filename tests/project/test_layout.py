"""Test folders mirror the sources: auditor/<folder>/<module>.py is tested in tests/<folder>/test_<module>.py.

`test_<module>_<aspect>.py` is for tests that would make that file longer than 300 lines. Underscores around a module's
name are dropped: `__init__.py` is tested in `test_init.py`. Tests across folders are in `tests/e2e`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_MIRRORED = {"coverage", "e2e", "hostile", "project", "providers"}
"""Folders of the study of coverage, of complete audits, of the corpus of hostile replies, of checks of the project,
and of providers."""


def test_every_test_module_mirrors_a_source_module() -> None:
    test_modules = [path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    problems = [
        f"{path} mirrors no module of {Path('auditor', *path.parts[1:-1])}. "
        f"How to fix: Move it to {' or '.join([*mirrors_of_imports(path), 'tests/e2e'])}."
        for path in test_modules
        if path.parts[1] not in NOT_MIRRORED and not mirrors_a_source_module(path)
    ]
    assert len(test_modules) > 200
    assert not problems, "\n".join(problems)


def test_the_fix_names_the_test_modules_of_what_is_imported() -> None:
    assert not mirrors_a_source_module(Path("tests/storage/test_chain.py"))
    assert not mirrors_a_source_module(Path("tests/hash_chain/test_hash_chain.py"))
    assert "tests/storage/test_hash_chain.py" in mirrors_of_imports(Path("tests/storage/test_hash_chain.py"))


def test_every_folder_of_tests_is_a_package() -> None:
    """Without `__init__.py`, the type checker would take two test modules of one name for the same module."""
    folders = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (ROOT / folder / "__init__.py").is_file()] == []


def mirrors_a_source_module(test_module: Path) -> bool:
    """Whether the mirrored folder of `auditor` has a module whose name is the test module's, or a prefix of it."""
    name = test_module.stem.removeprefix("test_")
    sources = [path.stem.strip("_") for path in ROOT.joinpath("auditor", *test_module.parts[1:-1]).glob("*.py")]
    return any(name == source or name.startswith(f"{source}_") for source in sources)


def mirrors_of_imports(test_module: Path) -> list[str]:
    """Test modules that mirror the imports of a test module: those in its own folder, or all if there are none."""
    sources = [ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in imported_names(test_module)]
    folders = {source: Path("tests", *source.relative_to(ROOT).parts[1:-1]) for source in sources if source.is_file()}
    mirrors = [folder / f"test_{source.stem.strip('_')}.py" for source, folder in folders.items()]
    nearest = [mirror for mirror in mirrors if mirror.parent == test_module.parent]
    return [mirror.as_posix() for mirror in nearest or mirrors]


def imported_names(test_module: Path) -> Iterator[str]:
    """Dotted names imported from `auditor`, which may be modules or members of modules."""
    for node in ast.walk(ast.parse((ROOT / test_module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("auditor"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
