"""The command `auditor import opinions`, from a table of shares to the report."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli_runner import auditor, succeed


def test_answers_become_an_audit_whose_report_compares_them_with_people(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("country,topic,n,p1,p2\nJapan,divorce,90,0.25,0.75\n", encoding="utf-8")
    rows = "m,Japan,divorce,verbalized,30,75\nm,Japan,taxes,verbalized,1,9\n"
    (tmp_path / "o.csv").write_text(f"model,country,topic,mode,p1,p2\n{rows}", encoding="utf-8")
    options = ("--shares", "--low", "1", "--high", "2", "-o", "my.csv")
    succeed("surveys", "import", "table.csv", *options, cwd=tmp_path)
    arguments = ("import", "opinions", "o.csv", "--survey", "my.csv", "--audit", "a", "--storage", "sqlite:///a.db")
    imported = succeed(*arguments, cwd=tmp_path)
    assert "2 answers of 1 model in audit 'a'." in imported.stderr
    assert "1 row of shares that were divided by their sum." in imported.stderr
    assert "1 row without a usable answer: counted as failed." in imported.stderr
    assert "the survey does not have: taxes (1)." in imported.stderr
    report_command = ("report", "a", "--storage", "sqlite:///a.db", "-o", "a.json")
    succeed(*report_command, cwd=tmp_path)
    distribution = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["distribution"]
    [row] = distribution["models"]
    assert (row["model"], row["mode"], row["n_cells"], row["unusable"]) == ("m", "verbalized", 1, 1)
    assert round(row["w1"]["value"], 6) == round(30 / 105 - 0.25, 6)


def test_a_survey_without_shares_says_what_to_run(tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("model,country,topic,mode,p1,p2\n", encoding="utf-8")
    refused = auditor("import", "opinions", "o.csv", "--survey", "wvs7-sample", "--audit", "a", cwd=tmp_path)
    assert refused.returncode == 1
    assert "auditor surveys import" in refused.stderr
