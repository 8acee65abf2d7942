"""A missing optional package is named with the command that installs it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from auditor.errors import UsageError
from auditor.extras import load_extra
from tests.console.test_options import import_audits
from tests.support.cli_runner import auditor


def test_an_installed_module_is_returned() -> None:
    assert load_extra("json.decoder", "none").__name__ == "json.decoder"


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(UsageError) as caught:
        load_extra("no_such_package.module", "docs")
    assert str(caught.value) == (
        "the package no_such_package is not installed. Install the extra 'docs': pip install 'auditor[docs]'"
    )


def test_an_export_to_inspect_without_its_package_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_audits(tmp_path, "mine")
    for name in [name for name in sys.modules if name.split(".")[0] == "inspect_ai"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    refused = auditor("export", "inspect", "mine", cwd=tmp_path)
    assert refused.returncode == 2
    assert "Install the extra 'inspect': pip install 'auditor[inspect]'" in refused.stderr
