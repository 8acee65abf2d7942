"""The check of a release: versions, links of the README, and which extras are installed."""

from __future__ import annotations

from email.parser import Parser

import pytest

from tests.project.release_check import ROOT, ReleaseError, check_version, list_broken_links, list_extras

METADATA = Parser().parsestr(
    """Version: 1.0.0
Provides-Extra: small
Provides-Extra: large
Provides-Extra: all
Requires-Dist: numpy>=2
Requires-Dist: polars>=1.30; extra == "small"
Requires-Dist: torch>=2.6; extra == "large"
Requires-Dist: auditor[large,small]; extra == "all"
"""
)


def test_the_changelog_begins_with_the_version_and_its_date() -> None:
    check_version("1.0.0", METADATA, "# Changelog\n\n## [1.0.0] - 2026-01-02\n\n## [0.9.0]\n")
    for changelog in ("## [Unreleased]\n\n## [1.0.0] - 2026-01-02", "## [1.0.0]\n", ""):
        with pytest.raises(ReleaseError, match=r"## \[1\.0\.0\] - DATE"):
            check_version("1.0.0", METADATA, changelog)
    with pytest.raises(ReleaseError, match=r"the wheel has version 1\.0\.0"):
        check_version("1.1.0", METADATA, "## [1.1.0] - 2026-01-02")


def test_links_and_pictures_without_a_file_are_named() -> None:
    readme = '[a](docs/a.md#x) ![p](docs/p.png "title") [web](https://example.org/b) [here](#c) <img src="q.svg">'
    assert list_broken_links(readme, {"docs/a.md"}) == ["docs/p.png", "q.svg"]
    assert list_broken_links((ROOT / "README.md").read_text(encoding="utf-8"), set())


def test_extras_with_torch_are_installed_on_request_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(list_extras(METADATA, [])) == ["small"]
    assert "EXTRAS=large" in capsys.readouterr().out
    assert list(list_extras(METADATA, ["large"])) == ["large"]
    with pytest.raises(ReleaseError, match="no extra huge"):
        list(list_extras(METADATA, ["huge"]))
