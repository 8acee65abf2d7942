"""Tests of the commands `auditor surveys preview`, `import`, `show`, `check` and `regions`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from statsmodels.stats.weightstats import DescrStatsW

from auditor.cli.surveys import PLOT_WIDTH, draw_score_plot
from tests.support.cli_runner import auditor, fail, succeed
from tests.support.linearised_error import linearised_error
from tests.surveys import official_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an official file and the survey that was imported from it."""
    folder = tmp_path_factory.mktemp("surveys")
    official_files.write_csv(folder / "wvs.csv", official_files.wvs_columns(300))
    import_command = succeed("surveys", "import", "wvs.csv", "-o", "my_wvs.csv", cwd=folder)
    assert "300 respondents: 4 countries × 19 topics" in import_command.stderr
    assert import_command.stdout == ""
    return folder


def test_import_writes_figures_description_and_facts(folder: Path) -> None:
    written_names = {p.name for p in folder.iterdir()} - {"wvs.csv"}
    assert written_names == {"my_wvs.csv", "my_wvs.survey.toml", "my_wvs.facts.json", "my_wvs.distributions.json"}


def test_import_overwrites_a_survey_only_with_force(folder: Path) -> None:
    refused_import = auditor("surveys", "import", "wvs.csv", "-o", "my_wvs.csv", cwd=folder)
    assert (refused_import.returncode, refused_import.stderr.count("\n")) == (1, 1)
    assert "my_wvs.csv: already exists." in refused_import.stderr
    succeed("surveys", "import", "wvs.csv", "-o", "my_wvs.csv", "--force", cwd=folder)
    self_overwrite = auditor("surveys", "import", "wvs.csv", "-o", "wvs.csv", "--force", cwd=folder)
    assert (self_overwrite.returncode, "is an input of this command" in self_overwrite.stderr) == (1, True)


def test_import_with_another_surveys_mapping_fails(folder: Path) -> None:
    failed_import = auditor("surveys", "import", "wvs.csv", "--mapping", "pew2013", "-o", "x.csv", cwd=folder)
    assert (failed_import.returncode, failed_import.stderr.count("\n")) == (1, 1)
    assert "wvs.csv" in failed_import.stderr
    assert not (folder / "x.csv").exists()


def test_a_table_of_shares_is_a_survey(tmp_path: Path) -> None:
    table = "country,topic,n,dimension,group,p1,p2\nJapan,divorce,90,,,0.25,0.75\nJapan,divorce,40,sex,women,0.5,0.5\n"
    (tmp_path / "table.csv").write_text(table, encoding="utf-8")
    options = ("surveys", "import", "table.csv", "--shares", "-o", "my.csv")
    fail(*options, cwd=tmp_path, code=2, message="Add --low and --high")
    imported = succeed(*options, "--low", "1", "--high", "2", cwd=tmp_path)
    assert "1 country × 1 topic, 1 cell, 1 group." in imported.stderr
    assert "my.distributions.json" in imported.stderr
    show = auditor("surveys", "show", "my.csv", "--json", cwd=tmp_path)
    assert json.loads(show.stdout)["cells"][0]["score"] == pytest.approx(0.5)
    fail("surveys", "import", "table.csv", "--low", "1", cwd=tmp_path, code=2, message="Add --shares")
    codes = ("--country-codes", "iso-3166-numeric")
    fail("surveys", "import", "table.csv", *codes, cwd=tmp_path, code=2, message="in the mapping")
    (tmp_path / "table.csv").write_text(table.replace("Japan", "392"), encoding="utf-8")
    numbered = (*options, "--low", "1", "--high", "2", "--force")
    fail(*numbered, cwd=tmp_path, code=1, message="392 is a number without a meaning")
    succeed(*numbered, *codes, cwd=tmp_path)
    assert (tmp_path / "my.csv").read_text(encoding="utf-8").splitlines()[1].startswith("Japan,")


def test_show_as_json_has_statsmodels_figures(folder: Path) -> None:
    show_command = auditor("surveys", "show", "my_wvs.csv", "--country", "NGA", "--json", cwd=folder)
    cells = {c["topic"]: c for c in json.loads(show_command.stdout)["cells"]}
    assert {c["country"] for c in cells.values()} == {"Nigeria"}
    columns = official_files.wvs_columns(300)
    keys = (columns["B_COUNTRY_ALPHA"], columns["Q182"], columns["W_WEIGHT"])
    weighted_scores = [((q - 5.5) / 4.5, w) for c, q, w in zip(*keys, strict=True) if c == "NGA" and q > 0]
    scores, weights = [x for x, _ in weighted_scores], [w for _, w in weighted_scores]
    assert cells["homosexuality"]["score"] == pytest.approx(DescrStatsW(scores, weights).mean, abs=1e-9)
    expected_error = linearised_error(scores, weights)
    assert cells["homosexuality"]["standard_error"] == pytest.approx(expected_error, abs=1e-9)
    assert cells["homosexuality"]["n"] == len(weighted_scores)


def test_show_prints_a_table_and_a_plot(folder: Path) -> None:
    all_countries = succeed("surveys", "show", "wvs7-sample", cwd=folder, COLUMNS="200")
    assert "Japan" in all_countries.stdout
    assert all_countries.stdout.count("●") == 19
    one_country = auditor("surveys", "show", "my_wvs.csv", "--country", "Nigeria", cwd=folder, COLUMNS="200")
    assert one_country.stdout.count("●") == 19
    assert "─●" in one_country.stdout
    assert "no answer" in one_country.stdout
    without_facts = auditor("surveys", "show", "wvs7-sample", "--country", "Japan", cwd=folder, COLUMNS="200")
    assert "no answer" not in without_facts.stdout


def test_the_plot_is_to_scale() -> None:
    assert draw_score_plot(-1.0).index("●") == 0
    assert draw_score_plot(1.0).index("●") == PLOT_WIDTH - 1
    assert draw_score_plot(0.5, 0.4, 0.6)[20] == "│"
    assert draw_score_plot(0.0, -1.0, 1.0) == "─" * 20 + "●" + "─" * 20


def test_check_exits_with_1_if_there_are_findings(folder: Path) -> None:
    check_command = auditor("surveys", "check", "my_wvs.csv", "--json", cwd=folder)
    findings = json.loads(check_command.stdout)["odd"]
    assert check_command.returncode == 1
    assert findings
    printed_check = auditor("surveys", "check", "my_wvs.csv", cwd=folder, COLUMNS="300")
    assert f"{len(findings)} implausible value" in printed_check.stderr
    rows = [f"{c},{t},{s}" for c, t, s in [("Japan", "divorce", 0.1), ("Japan", "abortion", -0.4)]]
    rows += ["Kenya,divorce,-0.3", "Kenya,abortion,-0.6"]
    (folder / "plain.csv").write_text("country,topic,score\n" + "\n".join(rows) + "\n")
    check_without_findings = auditor("surveys", "check", "plain.csv", cwd=folder)
    assert (check_without_findings.returncode, check_without_findings.stdout) == (0, "")
    assert "no implausible values." in check_without_findings.stderr


def test_preview_shows_what_values_become_and_writes_a_draft(folder: Path, tmp_path: Path) -> None:
    preview = succeed("surveys", "preview", "wvs.csv", "--mapping", "wvs7", cwd=folder, COLUMNS="200")
    assert "Nigeria (ISO 3166 code)" in preview.stdout
    assert "nonresponse: don't know" in preview.stdout
    assert "countries: 4 by ISO 3166 code" in preview.stderr
    as_json = json.loads(auditor("surveys", "preview", "wvs.csv", "--mapping", "wvs7", "--json", cwd=folder).stdout)
    assert as_json["problem"] is None
    assert as_json["reading"]["empty"] == {"nonresponse": 0, "not_asked": 0}
    draft = tmp_path / "my.toml"
    options = ("surveys", "preview", "wvs.csv", "--column", "Q182", "--write", str(draft))
    succeed(*options, cwd=folder)
    refused = auditor("surveys", "import", "wvs.csv", "--mapping", str(draft), "-o", "draft.csv", cwd=folder)
    assert (refused.returncode, "the mapping is a draft" in refused.stderr) == (1, True)
    fail(*options, cwd=folder, code=2, message="is not replaced")


def test_an_import_lists_countries_with_unusual_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("c,q\nunited_kingdom,1\nGB-NIR,2\nJP,3\nPeru,4\n", encoding="utf-8")
    mapping = (
        'title = "t"\nsource = "s"\n[columns]\ncountry = ["c"]\n[topics]\nq = "war"\n[answers]\nlow = 1\nhigh = 4\n'
    )
    (tmp_path / "m.toml").write_text(mapping, encoding="utf-8")
    imported = succeed("surveys", "import", "a.csv", "--mapping", "m.toml", "-o", "o.csv", cwd=tmp_path)
    assert "as the file spells them: united_kingdom (United Kingdom)" in imported.stderr
    assert "(Japan)" not in imported.stderr


def test_an_import_says_what_the_file_labels_the_ends_of_a_scale(tmp_path: Path) -> None:
    labels: official_files.Labels = {1: "Strongly like", 5: "Strongly dislike"}
    columns: official_files.Columns = {"c": ["PE", "PE"], "q": [1.0, 4.0], "r": [2.0, 5.0], "s": [2.0, 5.0]}
    official_files.write_sav(tmp_path / "a.sav", columns, {"q": labels, "r": labels})
    mapping = (
        'title = "t"\nsource = "s"\nscale = ["never", "always"]\n[columns]\ncountry = ["c"]\n'
        '[topics]\nq = "divorce"\nr = "war"\ns = "peace"\n[answers]\nlow = 1\nhigh = 5\n'
    )
    (tmp_path / "m.toml").write_text(mapping, encoding="utf-8")
    imported = succeed("surveys", "import", "a.sav", "--mapping", "m.toml", "-o", "o.csv", cwd=tmp_path)
    expected = "scale of 2 topics: -1 (never) is 1 ('Strongly like'), +1 (always) is 5 ('Strongly dislike')\n"
    assert expected in imported.stderr
    (tmp_path / "m.toml").write_text(mapping + 'low_label = "Strongly dislike"\n', encoding="utf-8")
    turned = succeed("surveys", "preview", "a.sav", "--mapping", "m.toml", cwd=tmp_path)
    assert "scale of" not in turned.stderr


def test_preview_exits_with_1_where_an_import_would_stop(tmp_path: Path) -> None:
    columns = {name: list(values) for name, values in official_files.wvs_columns(40).items()}
    columns["Q182"][3] = 11
    official_files.write_csv(tmp_path / "wvs.csv", columns)
    preview = auditor("surveys", "preview", "wvs.csv", "--mapping", "wvs7", cwd=tmp_path, COLUMNS="200")
    assert preview.returncode == 1
    assert "STOPS: no meaning" in preview.stdout
    assert "row 4, column 'Q182': '11'" in preview.stderr


def test_an_unknown_survey_or_country_is_one_line(folder: Path) -> None:
    expected = {("show", "wvs9"): 1, ("check", "none.csv"): 1, ("show", "wvs7-sample", "--country", "Japn"): 2}
    for arguments, exit_code in expected.items():
        failed_command = auditor("surveys", *arguments, cwd=folder)
        assert (failed_command.returncode, failed_command.stderr.count("\n")) == (exit_code, 1)


def test_regions_shows_groups_and_ungrouped_countries(folder: Path) -> None:
    regions_command = auditor("surveys", "regions", "wvs7-sample", "--regions", "un_m49", "--json", cwd=folder)
    grouping = json.loads(regions_command.stdout)
    assert (regions_command.returncode, grouping["none"]) == (0, [])
    assert "Nigeria" in grouping["regions"]["Africa"]
    (folder / "groups.csv").write_text("country,region\nNGA,South\nJapan,North\n")
    printed_regions = auditor("surveys", "regions", "wvs7-sample", "--regions", "groups.csv", cwd=folder, COLUMNS="200")
    assert printed_regions.stdout.index("South") < printed_regions.stdout.index("North")
    assert "Countries in no region, and therefore in no comparison of regions: " in printed_regions.stderr
    assert "Germany" in printed_regions.stderr
    unknown_grouping = auditor("surveys", "regions", "wvs7-sample", "--regions", "un_m94", cwd=folder)
    assert (unknown_grouping.returncode, unknown_grouping.stderr.count("\n")) == (1, 1)
    assert "Did you mean 'un_m49'" in unknown_grouping.stderr


def test_check_shows_20_findings_of_a_kind_and_counts_the_others(folder: Path) -> None:
    topics = [f"a question about the topic number {i:03}" for i in range(40)]
    rows = [f"{country},{topic},0.1" for topic in topics for country in ("Peru", "Chile")]
    (folder / "alike.csv").write_text("country,topic,score\n" + "\n".join(rows) + "\n")
    findings = json.loads(auditor("surveys", "check", "alike.csv", "--json", cwd=folder).stdout)["odd"]
    spelling_findings = [line for line in findings if "have similar spelling" in line]
    assert len(spelling_findings) > 100
    printed_check = auditor("surveys", "check", "alike.csv", cwd=folder, COLUMNS="300")
    assert printed_check.returncode == 1
    assert printed_check.stdout.count("have similar spelling") == 20
    assert f"… and {len(spelling_findings) - 20:,} more of this kind; --json lists all." in printed_check.stdout
    assert f"{len(findings)} implausible value" in printed_check.stderr
