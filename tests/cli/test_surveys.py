"""`auditor surveys`: import, show and check, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from statsmodels.stats.weightstats import DescrStatsW

from auditor.cli.surveys import PLOT_WIDTH, draw_score_plot
from tests.support.cli_runner import auditor
from tests.surveys import official_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an official file and the survey that was made of it."""
    folder = tmp_path_factory.mktemp("surveys")
    official_files.write_csv(folder / "wvs.csv", official_files.wvs_columns(300))
    done = auditor("surveys", "import", "wvs.csv", "-o", "my_wvs.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "300 respondents: 4 countries × 19 topics" in done.stderr
    assert done.stdout == ""
    return folder


def test_import_writes_figures_description_and_facts(folder: Path) -> None:
    made = {p.name for p in folder.iterdir()} - {"wvs.csv"}
    assert made == {"my_wvs.csv", "my_wvs.survey.toml", "my_wvs.facts.json"}


def test_import_replaces_nothing_unless_told(folder: Path) -> None:
    done = auditor("surveys", "import", "wvs.csv", "-o", "my_wvs.csv", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "my_wvs.csv: is there already." in done.stderr
    assert auditor("surveys", "import", "wvs.csv", "-o", "my_wvs.csv", "--force", cwd=folder).returncode == 0
    own = auditor("surveys", "import", "wvs.csv", "-o", "wvs.csv", "--force", cwd=folder)
    assert (own.returncode, "is the official file itself" in own.stderr) == (2, True)


def test_import_by_another_mapping_says_what_is_missing(folder: Path) -> None:
    done = auditor("surveys", "import", "wvs.csv", "--mapping", "pew2013", "-o", "x.csv", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "wvs.csv" in done.stderr
    assert not (folder / "x.csv").exists()


def test_show_as_json_has_statsmodels_figures(folder: Path) -> None:
    done = auditor("surveys", "show", "my_wvs.csv", "--country", "NGA", "--json", cwd=folder)
    cells = {c["topic"]: c for c in json.loads(done.stdout)["cells"]}
    assert {c["country"] for c in cells.values()} == {"Nigeria"}
    columns = official_files.wvs_columns(300)
    keys = (columns["B_COUNTRY_ALPHA"], columns["Q182"], columns["W_WEIGHT"])
    kept = [((q - 5.5) / 4.5, w) for c, q, w in zip(*keys, strict=True) if c == "NGA" and q > 0]
    expected = DescrStatsW([x for x, _ in kept], [w for _, w in kept])
    assert cells["homosexuality"]["score"] == pytest.approx(expected.mean, abs=1e-9)
    assert cells["homosexuality"]["standard_error"] == pytest.approx(expected.std_mean, abs=1e-9)
    assert cells["homosexuality"]["n"] == len(kept)


def test_show_prints_a_table_and_a_plot(folder: Path) -> None:
    whole = auditor("surveys", "show", "wvs7-sample", cwd=folder, COLUMNS="200")
    assert whole.returncode == 0
    assert "Japan" in whole.stdout
    assert whole.stdout.count("●") == 19
    one = auditor("surveys", "show", "my_wvs.csv", "--country", "Nigeria", cwd=folder, COLUMNS="200")
    assert one.stdout.count("●") == 19
    assert "─●" in one.stdout
    assert "no answer" in one.stdout
    bare = auditor("surveys", "show", "wvs7-sample", "--country", "Japan", cwd=folder, COLUMNS="200")
    assert "no answer" not in bare.stdout


def test_the_plot_is_to_scale() -> None:
    assert draw_score_plot(-1.0).index("●") == 0
    assert draw_score_plot(1.0).index("●") == PLOT_WIDTH - 1
    assert draw_score_plot(0.5, 0.4, 0.6)[20] == "│"
    assert draw_score_plot(0.0, -1.0, 1.0) == "─" * 20 + "●" + "─" * 20


def test_check_tells_by_its_exit_code(folder: Path) -> None:
    done = auditor("surveys", "check", "my_wvs.csv", "--json", cwd=folder)
    odd = json.loads(done.stdout)["odd"]
    assert done.returncode == 1
    assert odd
    text = auditor("surveys", "check", "my_wvs.csv", cwd=folder, COLUMNS="300")
    assert f"{len(odd)} odd." in text.stderr
    rows = [f"{c},{t},{s}" for c, t, s in [("Japan", "divorce", 0.1), ("Japan", "abortion", -0.4)]]
    rows += ["Kenya,divorce,-0.3", "Kenya,abortion,-0.6"]
    (folder / "plain.csv").write_text("country,topic,score\n" + "\n".join(rows) + "\n")
    plain = auditor("surveys", "check", "plain.csv", cwd=folder)
    assert (plain.returncode, plain.stdout) == (0, "")
    assert "nothing odd." in plain.stderr


@pytest.mark.parametrize("command", ["import", "show", "check", "list", "regions"])
def test_every_command_has_an_example(command: str) -> None:
    assert f"Example: auditor surveys {command}" in " ".join(auditor("surveys", command, "--help").stdout.split())


def test_an_unknown_survey_or_country_is_one_line(folder: Path) -> None:
    for words in (("show", "wvs9"), ("check", "none.csv"), ("show", "wvs7-sample", "--country", "Japn")):
        done = auditor("surveys", *words, cwd=folder)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_regions_shows_groups_and_who_is_in_none(folder: Path) -> None:
    done = auditor("surveys", "regions", "wvs7-sample", "--regions", "un_m49", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert (done.returncode, found["none"]) == (0, [])
    assert "Nigeria" in found["regions"]["Africa"]
    (folder / "groups.csv").write_text("country,region\nNGA,South\nJapan,North\n")
    text = auditor("surveys", "regions", "wvs7-sample", "--regions", "groups.csv", cwd=folder, COLUMNS="200")
    assert text.stdout.index("South") < text.stdout.index("North")
    assert "Not grouped, and in no comparison of regions: " in text.stderr
    assert "Germany" in text.stderr
    bad = auditor("surveys", "regions", "wvs7-sample", "--regions", "un_m94", cwd=folder)
    assert (bad.returncode, bad.stderr.count("\n")) == (1, 1)
    assert "Did you mean 'un_m49'" in bad.stderr


def test_check_shows_some_findings_of_a_kind_and_counts_the_rest(folder: Path) -> None:
    topics = [f"a question about the topic number {i:03}" for i in range(40)]
    rows = [f"{country},{topic},0.1" for topic in topics for country in ("Peru", "Chile")]
    (folder / "alike.csv").write_text("country,topic,score\n" + "\n".join(rows) + "\n")
    every = json.loads(auditor("surveys", "check", "alike.csv", "--json", cwd=folder).stdout)["odd"]
    alike = [line for line in every if "spelt almost alike" in line]
    assert len(alike) > 100
    shown = auditor("surveys", "check", "alike.csv", cwd=folder, COLUMNS="300")
    assert shown.returncode == 1
    assert shown.stdout.count("spelt almost alike") == 20
    assert f"… and {len(alike) - 20:,} more of this kind; --json lists all." in shown.stdout
    assert f"{len(every)} odd." in shown.stderr
