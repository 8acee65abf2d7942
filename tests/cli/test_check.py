"""`auditor check` tests an audit against the thresholds of a configuration and of options."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

from auditor.run import open_audit
from auditor.storage.database import open_database
from tests.support.cli_runner import auditor
from tests.support.synthetic_audit import populate

CONFIG = """
name = "population"
survey = {{ source = "wvs7-sample" }}
judges = []
[[models]]
name = "alder"
model = "openai/alder-1"
[probes]
direct = {{ samples = 1 }}
[check]
max_mae = {max_mae}
min_coverage = 0.5
"""


def test_thresholds_of_another_configuration_replace_those_of_the_audit(tmp_path: Path) -> None:
    """Continuous integration judges a pull request by the base branch's thresholds; options take precedence."""
    url = f"sqlite:///{tmp_path}/audit.db"
    with open_database(url) as db:
        populate(db, models=1, countries=3, topics=3, judges=0)
    for name, max_mae in (("strict", 0.0), ("lenient", 2.0)):
        (tmp_path / f"{name}.toml").write_text(CONFIG.format(max_mae=max_mae))

    def check(*options: str) -> tuple[int, dict[str, float]]:
        shown = auditor("check", "population", *options, "--storage", url, "--json", cwd=tmp_path)
        gates = json.loads(shown.stdout)["gates"] if shown.stdout else []
        return shown.returncode, {gate["name"]: gate["threshold"] for gate in gates}

    assert "max_mae" not in check()[1], "the audit has no thresholds of its own"
    returncode, thresholds = check("--thresholds", "strict.toml")
    assert (returncode, thresholds["max_mae"], thresholds["min_coverage"]) == (3, 0.0, 0.5)
    assert check("--thresholds", "lenient.toml")[0] == 0
    assert check("--thresholds", "lenient.toml", "--max-mae", "0")[0] == 3
    one = auditor("check", "population:alder", "--storage", url, "--json", cwd=tmp_path)
    assert [row["model"] for row in json.loads(one.stdout)["models"]] == ["alder"]
    assert "only completion and coverage were tested" in one.stderr
    unknown = auditor("check", "population", "--models", "alder, elder", "--storage", url, cwd=tmp_path)
    assert unknown.returncode == 2
    assert "has no model 'elder'" in unknown.stderr
    for words in (("check", "population:"), ("check", "population", "--models", ","), ("compare", "population:")):
        unnamed = auditor(*words, "--storage", url, cwd=tmp_path)
        assert unnamed.returncode == 2, "an unset variable of a script does not mean all models"
        assert "no model" in unnamed.stderr
    missing = auditor("check", "population", "--thresholds", "none.toml", "--storage", url, cwd=tmp_path)
    assert missing.returncode == 2
    assert "none.toml" in missing.stderr


def test_a_configuration_that_names_the_audit_has_its_present_thresholds(tmp_path: Path) -> None:
    """Whoever raises a threshold in the file would pass by that of the last run, also one of a probe that is gone."""
    url = f"sqlite:///{tmp_path}/audit.db"
    file = tmp_path / "audit.toml"
    with open_database(url) as db:
        populate(db, models=1, countries=3, topics=3, judges=0)
    with contextlib.closing(sqlite3.connect(tmp_path / "audit.db")) as connection, connection:
        thresholds = json.dumps({"max_mae": 0.0, "min_skill": 0.9})
        connection.execute("UPDATE audit SET config = json_set(config, '$.check', json(?))", [thresholds])
    file.write_text(CONFIG.format(max_mae=0.0))

    def check(*words: str) -> dict[str, float]:
        shown = auditor("check", *words, "--storage", url, "--json", cwd=tmp_path)
        return {gate["name"]: gate["threshold"] for gate in json.loads(shown.stdout)["gates"]}

    assert check("population")["max_mae"] == check("audit.toml")["max_mae"] == 0
    file.write_text(CONFIG.format(max_mae=2.0))
    assert check("population")["max_mae"] == 0, "a name means the last run"
    assert "min_skill" in check("population")
    assert check("audit.toml")["max_mae"] == check("audit.toml:alder")["max_mae"] == 2
    assert "min_skill" not in check("audit.toml")
    assert check("audit.toml", "--max-mae", "1")["max_mae"] == 1
    file.write_text(CONFIG.format(max_mae=2.0) + "[probes.gone]\n")
    assert check("audit.toml")["max_mae"] == 2, "the package of a probe may be missing by now"
    gates = open_audit(file, storage=url).check().gates
    assert {gate.name: gate.threshold for gate in gates}["max_mae"] == 2


def test_both_files_of_a_result_are_written_or_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/audit.db"
    with open_database(url) as db:
        populate(db, models=1, countries=3, topics=3, judges=0)
    (tmp_path / "table.csv").write_text("model,mae\nmine,0.1\n", encoding="utf-8")
    options = ("check", "population", "--storage", url, "--junit", "check.xml")
    refused = auditor(*options, "--markdown", "table.csv", cwd=tmp_path)
    assert "table.csv: is another table" in refused.stderr
    assert not (tmp_path / "check.xml").exists()
    assert "check.xml" in auditor(*options, "--markdown", "new.md", cwd=tmp_path).stderr
    assert (tmp_path / "check.xml").exists()
    assert (tmp_path / "new.md").exists()
