"""The audits that tables need, the options of the command, and which model is set against which published one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.config import AuditConfig
from auditor.errors import UsageError
from auditor.probes.semantic.settings import SemanticProbe
from auditor.replications.figures import FIGURES, GROUP_FIGURES, MODEL_FIGURES
from auditor.replications.planning import (
    ReplicationOptions,
    build_named_models,
    match_models,
    plan_audits,
    split_named_models,
)
from auditor.replications.presets import list_paper_ids, load_paper
from auditor.replications.survey_figures import AGREEMENT_FIGURES, DISTRIBUTION_FIGURES, DISTRIBUTION_MODES
from tests.support.cli_runner import auditor, succeed
from tests.support.stored_rows import find_part

MODELS = 'name = "x"\nsurvey = { source = "wvs7-sample" }\n' + "".join(
    f'[[models]]\nname = "{name}"\nmodel = "openai/{name}"\n' for name in "abc"
)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(MODELS, encoding="utf-8")
    return path


def plan(models: Path, table: str | None = None, **options: object) -> dict[str, AuditConfig]:
    return plan_audits(load_paper("evalmoraal"), ReplicationOptions(table, models_file=models, **options))  # type: ignore[arg-type]


def test_each_survey_is_an_ordinary_audit_with_the_users_models(models: Path) -> None:
    audits = plan(models)
    assert {survey: audit.name for survey, audit in audits.items()} == {
        "WVS": "rep-evalmoraal-wvs",
        "PEW": "rep-evalmoraal-pew",
    }
    for audit in audits.values():
        assert [model.name for model in audit.models] == ["a", "b", "c"]
        assert (audit.direct.samples, audit.direct.mode, audit.direct.form) == (5, "text", "paper")
        assert audit.judges == "peers"
        assert audit.probes.review.traces == 1


def test_limits_on_cost_and_time_of_the_models_file_are_those_of_each_audit(models: Path) -> None:
    limits = "[limits]\nbudget_usd = 2.5\nmax_attempts = 3\nmax_cells = 5\n"
    models.write_text(MODELS + limits, encoding="utf-8")
    audits = plan(models)
    assert {audit.limits.budget_usd for audit in audits.values()} == {2.5}
    assert {audit.limits.max_attempts for audit in audits.values()} == {3}
    assert {audit.limits.max_cells for audit in audits.values()} == {None}


def test_a_table_needs_only_its_parts_and_has_audits_of_its_own(models: Path) -> None:
    table_1 = plan(models, "1")["WVS"]
    assert (table_1.name, table_1.judges, table_1.probes.logprob is not None) == ("rep-evalmoraal-wvs-1", [], True)
    peer = plan(models, "peer")["PEW"]
    assert (peer.judges, peer.probes.logprob) == ("peers", None)


def test_options_change_the_audits(models: Path, tmp_path: Path) -> None:
    survey = tmp_path / "mine.csv"
    survey.write_text("country,topic,score\nGhana,divorce,0.5\n", encoding="utf-8")
    audits = plan(models, limit=7, files={"PEW": str(survey)}, is_as_published=True)
    assert {audit.limits.max_cells for audit in audits.values()} == {7}
    sections = {name: audit.survey for name, audit in audits.items()}
    assert {section.nonresponse for section in sections.values() if section} == {"zero"}
    assert [section.source for section in sections.values() if section] == ["wvs7-sample", str(survey)]
    assert audits["WVS"].name == "rep-evalmoraal-wvs-as-published-limit-7"


def test_the_small_form_asks_the_embedded_model_only() -> None:
    audits = plan_audits(load_paper("evalmoraal"), ReplicationOptions(is_small=True))
    models = [model for audit in audits.values() for model in audit.judge_models + audit.models]
    assert {model.model for model in models} == {"embedded/smollm2-135m"}
    assert {audit.direct.mode for audit in audits.values()} == {"structured"}
    assert {audit.direct.form for audit in audits.values()} == {"paper"}
    assert all(audit.name.endswith("-small") for audit in audits.values())


def test_a_table_of_the_audits_name_is_named_once() -> None:
    for table, name in (("example", "rep-consistency-example-small"), ("questions", "rep-consistency-questions-small")):
        configs = plan_audits(load_paper("consistency"), ReplicationOptions(table, is_small=True))
        assert [config.name for config in configs.values()] == [name]


def test_weights_and_helpers_of_the_users_file_are_used(tmp_path: Path) -> None:
    weights = tmp_path / "stsb-distilroberta-base-v2"
    path = tmp_path / "semantic.toml"
    path.write_text(
        'name = "x"\njudges = []\n[[models]]\nname = "a"\nmodel = "openai/a"\n[probes.semantic]\nlimit = 3\n'
        f'encoder = "{weights}"\nbertscore_model = "{tmp_path}/bert-base-uncased"\nparaphraser = "a"\n',
        encoding="utf-8",
    )
    paper = load_paper("sage")
    for as_published in (False, True):
        options = ReplicationOptions("1", models_file=path, is_as_published=as_published)
        probe = find_part(plan_audits(paper, options)["MCC"].probes, SemanticProbe)
        assert (probe.encoder, probe.paraphraser, probe.limit) == (str(weights), "a", None)
        assert probe.bertscore_model == f"{tmp_path}/bert-base-uncased"
        assert ("bertscore_bert_base" in probe.rivals) == as_published


def test_figures_that_presets_name_exist() -> None:
    for paper in map(load_paper, list_paper_ids()):
        for table in paper.tables:
            for row in table.rows:
                assert row.form in ("", *table.forms)
            for source in table.list_sources():
                assert source.figure == "" or source.figure in FIGURES
                assert source.model_figure == "" or source.model_figure in MODEL_FIGURES
                assert source.group_figure == "" or source.group_figure in GROUP_FIGURES
                assert [source.figure, source.model_figure, source.group_figure].count("") == 2
            assert {column for figures in table.list_figures() for column in figures} <= set(table.columns)


def test_all_figures_are_in_a_preset_or_agreement_or_distances_of_distributions() -> None:
    """Built-in presets have not all figures of agreement, and none of distributions: these are for papers in files."""
    named = {
        name
        for paper in map(load_paper, list_paper_ids())
        for table in paper.tables
        for source in table.list_sources()
        for name in (source.figure, source.model_figure, source.group_figure)
    }
    agreement = {f"{figure}.{method}" for figure in AGREEMENT_FIGURES for method in ("direct", "logprob")}
    distributions = {f"{figure}.{mode}" for figure in DISTRIBUTION_FIGURES for mode in DISTRIBUTION_MODES}
    assert {*FIGURES, *MODEL_FIGURES, *GROUP_FIGURES} - named - agreement == distributions


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("evalmoraal --small --table ramezani-xu", "no experiment for table ramezani-xu"),
        ("evalmoraal", "--published, --recorded FOLDER, --models FILE and --small"),
        ("evalmoraal --small --published", "--published and --small cannot be combined"),
        ("evalmoraal --small --models x.toml", "--models and --small cannot be combined"),
        ("evalmoraal --published --as a=b", "--as: no effect with --published"),
        ("evalmoraal --recorded . --limit 5 --dry-run", "--limit, --dry-run: no effect with --recorded"),
        ("list --table 1", "--table: no effect with `replicate list`"),
        ("sge --small --as-published", "--as-published: no effect on 'sge'"),
        ("lst", "auditor replicate list"),
        ("evalmoraal --small --data EVS=x.csv", "has no data 'EVS'"),
        ("evalmoraal --small --as gpt", "--as A=B"),
        ("evalmoraal --small --as a=x --as a=x", "--as: 'a' is given twice"),
        ("evalmoraal --small --data WVS=x --data WVS=y", "--data: 'WVS' is given twice"),
        ("evalmoraal --small --as smollm2-0.4=GPT-4o --as smollm2-0.7=GPT-4o",
         "two models are beside 'GPT-4o': 'smollm2-0.4' and 'smollm2-0.7'"),
        ("evalmoraal --small --as smollm2-0.4=GPT-9", "there is no published model 'GPT-9'"),
        ("evalmoraal --models absent.toml", "absent.toml"),
    ],
)  # fmt: skip
def test_wrong_use_is_refused_before_any_call(words: str, message: str, tmp_path: Path, storage: str) -> None:
    result = auditor("replicate", *words.split(), cwd=tmp_path, AUDITOR_STORAGE=storage)
    assert result.returncode in (1, 2)
    assert message in result.stderr


def test_a_data_file_that_does_not_exist_is_wrong_use(models: Path, storage: str) -> None:
    result = auditor(
        "replicate", "evalmoraal", "--models", models, "--data", "WVS=absent.csv", "--dry-run", AUDITOR_STORAGE=storage
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "--data WVS: there is no file 'absent.csv'. " in result.stderr


def test_the_questions_of_the_program_are_named_as_built_in(storage: str, tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text(
        '[[models]]\nname = "a"\nmodel = "simulated/knows-every-culture"\n'
        '[[judges]]\nname = "b"\nmodel = "simulated/careful-judge-1"\n'
    )
    words = ("replicate", "consistency", "--models", file, "--table", "questions", "--dry-run")
    result = succeed(*words, "--data", "QUESTIONS=built-in", AUDITOR_STORAGE=storage)
    result = auditor(*words, "--data", "QUESTIONS=absent.csv", AUDITOR_STORAGE=storage)
    assert result.returncode == 2
    assert "--data QUESTIONS=built-in for the questions of this program" in result.stderr


def test_a_dry_run_estimates_each_audit_and_writes_nothing(models: Path, tmp_path: Path) -> None:
    storage = tmp_path / "new.db"
    result = succeed(
        "replicate", "evalmoraal", "--models", models, "--dry-run", "--json", "--storage", f"sqlite:///{storage}"
    )
    assert "rep-evalmoraal-wvs: About" in result.stderr
    assert "rep-evalmoraal-pew: About" in result.stderr
    assert not storage.exists()
    forecasts = json.loads(result.stdout)
    assert set(forecasts) == {"rep-evalmoraal-wvs", "rep-evalmoraal-pew"}
    assert all(forecast["calls"]["expected"] > 0 for forecast in forecasts.values())


def test_without_models_no_audit_is_planned() -> None:
    with pytest.raises(UsageError, match="Which models should be asked"):
        plan_audits(load_paper("evalmoraal"), ReplicationOptions(files={"WVS": "x.csv"}))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("absent", "GPT-4o")], "no audited model 'absent'"),
        ([("GPT-4o", "a")], "'GPT-4o' is the published model, and 'a' is yours. Write it as --as a=GPT-4o"),
        ([("a", "GPT-9")], r"no published model 'GPT-9'.*PaLM-2"),
        ([("a", "GPT-4o"), ("b", "GPT-4o")], "two models are beside 'GPT-4o': 'a' and 'b'"),
        ([("a", "GPT-4")], "two models are beside 'GPT-4': 'GPT-4' and 'a'"),
    ],
)
def test_pairs_that_cannot_be_used_are_refused(pairs: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        match_models(load_paper("evalmoraal"), ["a", "b", "GPT-4"], pairs)


def test_a_named_model_has_the_name_of_a_published_one() -> None:
    tuned = ("repaired", "hosted_vllm/my/tuned")
    pairs = [tuned, ("mine", "perturbed"), ("perturbed", "mine"), ("a/b", "repaired"), tuned]
    assert split_named_models(load_paper("logic"), pairs) == (dict([tuned]), [pairs[1], pairs[2], pairs[3]])
    with pytest.raises(UsageError, match="two models are beside 'repaired': 'hosted_vllm/my/tuned' and 'openai/x'"):
        split_named_models(load_paper("logic"), [tuned, ("repaired", "openai/x")])


def test_a_named_model_is_asked_at_the_server_of_its_provider() -> None:
    vllm = {"model": "hosted_vllm/base", "api_base": "http://127.0.0.1:1", "temperature": 0.3}
    sections: list[dict[str, Any]] = [
        {"name": "a", "model": "openai/a", "api_key": "os.environ/KEY"},
        {"name": "b", **vllm},
        {"name": "c", **vllm, "api_base": "http://127.0.0.1:2"},
        {"name": "d", "model": "azure/d", "timeout_s": 9, "params": {"api_version": "1", "top_k": 5}},
    ]
    named = {"repaired": "hosted_vllm/my/tuned", "perturbed": "openai/ft", "zero-shot": "groq/x", "cot": "azure/ft"}
    assert build_named_models(named, sections) == [
        {"name": "repaired", "model": "hosted_vllm/my/tuned", "api_base": "http://127.0.0.1:1"},
        {"name": "perturbed", "model": "openai/ft", "api_key": "os.environ/KEY"},
        {"name": "zero-shot", "model": "groq/x"},
        {"name": "cot", "model": "azure/ft", "timeout_s": 9, "params": {"api_version": "1"}},
    ]
    with pytest.raises(UsageError, match=r"the address of the server is not known.*model = 'hosted_vllm/…'"):
        build_named_models(named, sections[:1])
    with pytest.raises(UsageError, match="the file has another model 'a'"):
        build_named_models({"a": "openai/b"}, sections)


def test_models_of_equal_names_are_compared() -> None:
    pairs = [("mine", "GPT-4o"), ("mine", "PaLM-2"), ("GPT-4", "GPT-4")]
    assert match_models(load_paper("evalmoraal"), ["GPT-4", "mine"], pairs) == {
        "GPT-4": "GPT-4",
        "GPT-4o": "mine",
        "PaLM-2": "mine",
    }
