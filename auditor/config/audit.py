"""The whole configuration of an audit: all tables of the file, and the rules that hold between them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, overload

from pydantic import Field, PrivateAttr, ValidationError, create_model, field_validator, model_validator

from auditor.config.base import ConfigSection
from auditor.config.cross_table_rules import (
    is_same_model,
    require_distinct_models,
    require_enough_judges,
    require_known_rewriter,
    require_local_weights,
    require_no_renamed_models,
    require_recorded_answers,
    require_same_model_for_shared_names,
    require_same_rate_limits,
    require_simulated_models_only,
    require_standalone_task,
    require_unique_names,
    require_usable_weights,
    require_weights_source,
)
from auditor.config.installed_probes import add_probe_fields, list_built_in_probes, load_probe
from auditor.config.model_section import ModelSection
from auditor.config.probes import KEEP_MISSING_PROBES, DirectProbe, Probes
from auditor.config.providers import REPLAY, SIMULATED
from auditor.config.result_settings import select_result_settings
from auditor.config.sections import (
    AUDIT_NAME_PATTERN,
    DEFAULT_MIN_COVERAGE,
    BatchSection,
    CheckSection,
    CompareSection,
    ConflictSection,
    EmbeddingSection,
    LabelSection,
    LimitsSection,
    PanelSection,
    RunSection,
    SurveySection,
    TaskSection,
    TelemetrySection,
    check_language,
)
from auditor.config.validation_messages import list_wrong_settings
from auditor.domain import ENGLISH, LANGUAGES, NATIVE, Cell, Survey, canonical_hash
from auditor.errors import ConfigError, did_you_mean
from auditor.text_safety import truncate_text


class AuditConfig(ConfigSection):
    """One audit."""

    name: Annotated[str, Field(pattern=AUDIT_NAME_PATTERN)]
    """The audit's name: letters, digits, dots, dashes and underscores."""
    survey: SurveySection | None = None
    """The survey of people's answers that models are compared with. Needed if questions are about countries and
    topics."""
    task: TaskSection | None = None
    """Questions of your own, from a file, which models answer instead of a survey's questions."""
    language: str | list[str] = ENGLISH
    """Language of the prompts: an ISO 639-1 code, or `native` for each country's main languages (English if there are
    no prompts in them). With a list such as `["en", "native"]`, every cell is sampled in each of the languages; each
    language is used once for a country."""
    models: Annotated[list[ModelSection], Field(min_length=1)]
    """The audited models, each in a section of its own that begins with the line `[[models]]`."""
    judges: Literal["peers"] | list[ModelSection] = "peers"
    """The models that review the reasoning of the audited models. `peers`: every audited model reviews all others,
    never itself. Or a list of models; `[]` for no review."""
    probes: Probes = Probes(direct=DirectProbe())
    """What is asked of the models, and how it is measured."""
    conflicts: ConflictSection = ConflictSection()
    """How far the scores of two models must differ to count as a conflict."""
    panel: PanelSection = PanelSection()
    """How judges are assigned to answers, and how their votes are counted."""
    embedding: EmbeddingSection = EmbeddingSection()
    """The sentence encoder, which turns texts into vectors, so that the similarity of a model's answers can be measured
    (self-consistency)."""
    limits: LimitsSection = LimitsSection()
    """Limits on the number of questions, the cost, the repeated requests and the time of the audit."""
    check: CheckSection = CheckSection()
    """Requirements that `auditor check` tests, such as a minimum correlation. They do not change results."""
    compare: CompareSection = CompareSection()
    """A claim that `auditor compare` tests. It does not change results."""
    labels: LabelSection = LabelSection()
    """Who labels a random sample of the traces (`auditor review --sample`). It does not change results."""
    run: RunSection = RunSection()
    """Where requests are sent from: this computer or a cluster. It does not change results."""
    telemetry: TelemetrySection | None = None
    """Sends the time, cost and errors of each call to a monitoring server that you name (OpenTelemetry). Without this
    section, nothing is sent. This does not change results."""
    batch: BatchSection | None = None
    """Sends questions to providers in batches, for about half the price; answers may take a day. This does not change
    results."""
    storage: str | None = None
    """Address of the database that stores the audit. The option `--storage` and the environment variable
    AUDITOR_STORAGE take precedence. If none is set: `sqlite:///auditor.db`. A relative path is taken from the folder of
    the configuration's file. A server on another machine that only the configuration names must be allowed first:
    `auditor trust CONFIG`."""
    seed: int = 0
    """Starting value of all random numbers: the same seed gives the same random selections. The seed that is sent with
    each request is derived from it."""

    _folder: Path | None = PrivateAttr(None)

    @property
    def folder(self) -> Path | None:
        """Folder of the configuration's file, where its database is by default; None for one without a file."""
        return self._folder

    def with_folder(self, folder: Path | None) -> AuditConfig:
        """Return a copy whose file is in another folder; None for a configuration without a file."""
        copy = self.model_copy()
        copy._folder = folder
        return copy

    @field_validator("storage")
    @classmethod
    def _reject_password(cls, value: str | None) -> str | None:
        """Reject a database URL with a password: `//USER:PASSWORD@` or a query parameter that ends with `password`."""
        if value is not None and re.search(r"//[^/@]*:[^/@]+@|[?&]\w*password=", value):
            raise ValueError(
                "the URL contains a password, which is not allowed in a configuration. "
                "How to fix: Remove it from the URL; set PGPASSWORD or use ~/.pgpass."
            )
        return value

    @field_validator("language")
    @classmethod
    def _check_languages(cls, value: str | list[str]) -> str | list[str]:
        """Reject an empty list of languages, duplicates and unknown languages; returns the value unchanged."""
        languages = [value] if isinstance(value, str) else value
        if not languages:
            raise ValueError('the list of languages is empty. How to fix: Add at least one, such as "en".')
        if len(set(languages)) < len(languages):
            raise ValueError("a language is listed twice. How to fix: List each language once.")
        for name in languages:
            check_language(name, (*LANGUAGES, NATIVE))
        return value

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages as configured, in order; `native` stands for a country's main languages."""
        return (self.language,) if isinstance(self.language, str) else tuple(self.language)

    def languages_in(self, native_languages: Sequence[str]) -> tuple[str, ...]:
        """The languages of the prompts for a country, in order, without duplicates.

        Args:
            native_languages: the country's main languages that there are prompts in; if empty, English replaces them.
        """
        codes = (
            code
            for name in self.languages
            for code in (tuple(native_languages) or (ENGLISH,) if name == NATIVE else (name,))
        )
        return tuple(dict.fromkeys(codes))

    def samples_per_cell(self, native_languages: Sequence[str]) -> int:
        """Largest number of samples of one cell by one model, over all languages; 0 without the direct probe."""
        return self.direct.samples * len(self.languages_in(native_languages)) if self.probes.direct else 0

    def first_samples(self, native_languages: Sequence[str]) -> range:
        """Numbers of a cell's first sample in each language; see `DirectProbe.split_sample`."""
        return range(0, self.samples_per_cell(native_languages), self.direct.samples)

    def guaranteed_samples_per_cell(self, native_languages: Sequence[str]) -> int:
        """As `samples_per_cell`, but only the samples that are taken even if sampling stops early."""
        return len(self.first_samples(native_languages)) * self.direct.guaranteed_samples

    @property
    def is_simulated(self) -> bool:
        """Whether a model is simulated. The others are then simulated or recorded: no request leaves the process."""
        return any(model.provider is SIMULATED for model in self.models_by_name.values())

    @property
    def review_varies_by_trace(self) -> bool:
        """Whether a trace's judges, or whether it is judged at all, depend on the trace's number within its cell."""
        return self.panel.judges_per_trace is not None or self.direct.tolerance is not None

    def samples_by_cell(self, survey: Survey, *, guaranteed_only: bool = False) -> dict[Cell, int]:
        """Number of samples by one model for each cell that is asked: the most, or with `guaranteed_only` the least."""
        count_samples = self.guaranteed_samples_per_cell if guaranteed_only else self.samples_per_cell
        return {cell: count_samples(survey.native.get(cell.country, ())) for cell in survey.asked_cells}

    @property
    def asks_for_structures(self) -> bool:
        """Whether answers are requested as structures, and not only as free text and log-probabilities."""
        has_structured_answers = self.probes.direct is not None and self.probes.direct.mode == "structured"
        return has_structured_answers or bool(self.judge_models or self.probes.with_stage)

    @property
    def direct(self) -> DirectProbe:
        """Settings of the direct probe; its defaults if the audit does not use it."""
        return self.probes.direct or DirectProbe()

    @model_validator(mode="after")
    def _require_survey_or_task(self) -> AuditConfig:
        """Require a survey if a probe asks about its cells; a task goes without one and with the direct probe only."""
        survey_probes = [name for name in ("direct", "logprob") if getattr(self.probes, name)]
        if self.task is not None:
            require_standalone_task(self.probes, self.languages, has_survey=self.survey is not None)
        elif self.survey is None and survey_probes:
            raise ValueError(
                f"the key 'survey' is missing. How to fix: Add it; the probe '{survey_probes[0]}' asks about its "
                "countries and topics. Or add 'task' to ask your own questions."
            )
        return self

    @model_validator(mode="after")
    def _require_local_engine_for_batches(self) -> AuditConfig:
        """Reject batches together with workers on a Ray cluster."""
        if self.batch is not None and self.run.engine != "local":
            raise ValueError(
                "batch: batches are sent only with run.engine = 'local'. How to fix: Remove the section [batch], or "
                "run.engine."
            )
        return self

    @model_validator(mode="after")
    def _reject_target_width_with_logprob(self) -> AuditConfig:
        """Reject early stopping over cells with the probe `logprob`, which covers all cells."""
        if self.direct.target_width is not None and self.probes.logprob:
            raise ValueError(
                "probes.direct.target_width: cannot be combined with the probe 'logprob', which needs all cells. "
                "How to fix: Remove one of them."
            )
        return self

    @model_validator(mode="after")
    def _check_models_without_a_provider(self) -> AuditConfig:
        """Check replayed and simulated models; see the rules that are called."""
        require_recorded_answers(self.models, self.judge_models, self.probes.review)
        require_simulated_models_only(self.name, [*self.models, *self.judge_models])
        return self

    @model_validator(mode="after")
    def _check_models(self) -> AuditConfig:
        """Check what models need on this machine, and the limits that they share; see the rules that are called."""
        require_local_weights(self.models, self.probes)
        require_same_rate_limits([*self.models, *self.judge_models])
        return self

    @model_validator(mode="after")
    def _check_names_and_judges(self) -> AuditConfig:
        """Check that names are unique, that every model has enough judges, and that the judges' weights can be used."""
        require_unique_names([model.name for model in self.models], "models")
        require_distinct_models(self.models)
        if isinstance(self.judges, list):
            require_unique_names([judge.name for judge in self.judges], "judges")
            require_same_model_for_shared_names(self.models, self.judges)
            require_no_renamed_models(self.models, self.judges)
        for model in self.models if self.probes.direct else ():
            if self.judges != [] and not self.judges_of(model.name):
                raise ValueError(
                    f"model '{model.name}' has no judge: a model never judges "
                    f"itself{self._family_exclusion_phrase(model)}. How to fix: Add another model or judge, or set "
                    "judges = [] for no review."
                )
        if self.probes.direct and self.judges != []:
            require_enough_judges(self.panel, {model.name: len(self.judges_of(model.name)) for model in self.models})
        require_weights_source(self.panel, self.probes)
        if self.panel.weights_from is None:
            require_usable_weights(self.panel, [judge.name for judge in self.judge_models])
        require_known_rewriter(self.probes.review, list(self.models_by_name))
        return self

    @model_validator(mode="after")
    def _check_stage_probes(self) -> AuditConfig:
        """Check the rules between the tables of probes with a stage of their own and the other tables."""
        for name, settings in self.probes.with_stage.items():
            load_probe(name).check_settings(settings, self)
        for name, thresholds in self.check.probes.items():
            if name not in self.probes.missing:
                _check_thresholds(name, list(thresholds), self.probes)
        return self

    @property
    def judge_models(self) -> list[ModelSection]:
        """All judges of the audit. Models that replay recorded answers judge only with recorded verdicts."""
        if self.judges != "peers":
            return list(self.judges)
        return [model for model in self.models if model.verdicts or model.provider is not REPLAY]

    @property
    def max_in_flight(self) -> dict[str, int]:
        """By model, how many requests are sent at most before one is answered; empty with batches, sent as a whole."""
        return {} if self.batch else {name: model.max_concurrency for name, model in self.models_by_name.items()}

    @property
    def models_by_name(self) -> dict[str, ModelSection]:
        """Audited models, then judges, by name; a model that is also a judge is there once."""
        return {model.name: model for model in [*self.models, *self.judge_models]}

    def model(self, name: str) -> ModelSection:
        """Return the audited model or judge of that name; raises KeyError if there is none."""
        return self.models_by_name[name]

    def judges_of(self, name: str) -> list[ModelSection]:
        """The judges that may judge a model: all but the same model and, with `exclude_family`, models of its family.

        A judge is the same model if it has the same name, or if `is_same_model` holds.
        """
        author = next(model for model in self.models if model.name == name)
        other_judges = [judge for judge in self.judge_models if judge.name != name and not is_same_model(judge, author)]
        return [
            judge
            for judge in other_judges
            if not self.panel.exclude_family or judge.resolved_family != author.resolved_family
        ]

    def panel_size(self, name: str) -> int:
        """Number of judges of each trace of the model with this name."""
        return min(len(self.judges_of(name)), self.panel.judges_per_trace or len(self.judge_models))

    def shared_judges(self, *names: str) -> list[ModelSection]:
        """The judges that may judge every one of the models, in order; they vote on a conflict between the models."""
        judge_name_sets = [{judge.name for judge in self.judges_of(name)} for name in names]
        return [
            judge for judge in self.judge_models if all(judge.name in judge_names for judge_names in judge_name_sets)
        ]

    def _family_exclusion_phrase(self, model: ModelSection) -> str:
        """Part of an error message: that judges of the model's family are excluded; empty if they are not."""
        return f", nor one of its family ({model.resolved_family})" if self.panel.exclude_family else ""

    def with_run(self, **overrides: str | None) -> AuditConfig:
        """Return a copy with some keys of `run` replaced; a value of None leaves the key as it is."""
        changes = {key: value for key, value in overrides.items() if value is not None}
        return self.model_copy(update={"run": self.run.model_copy(update=changes)})

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> dict[str, Any]:
        """The JSON schema of a configuration, with the tables of the built-in probes; see pydantic's method."""
        probes = create_model("Probes", __base__=Probes, __module__=Probes.__module__, __doc__=Probes.__doc__)
        add_probe_fields(probes, {probe.name: probe.settings for probe in list_built_in_probes()})
        field: Any = (probes, cls.model_fields["probes"])
        bases: Any = (
            CheckSection,
            *(probe.thresholds for probe in list_built_in_probes() if probe.thresholds.model_fields),
        )
        check: Any = create_model(
            "CheckSection", __base__=bases, __module__=CheckSection.__module__, __doc__=CheckSection.__doc__
        )
        fields: Any = {"probes": field, "check": (check, cls.model_fields["check"])}
        config = create_model(cls.__name__, __base__=cls, __module__=cls.__module__, __doc__=cls.__doc__, **fields)
        schema: dict[str, Any] = super(AuditConfig, config).model_json_schema(*arguments, **options)
        return schema

    @property
    def hash(self) -> str:
        """SHA-256 of the settings that determine the results; see `select_result_settings`."""
        return canonical_hash(select_result_settings(self))


def _check_thresholds(probe: str, names: Sequence[str], probes: Probes) -> None:
    """Require that a probe is configured, and that it declares thresholds of these names.

    Raises:
        ValueError: it does not; the message says how to fix it.
    """
    if probe not in probes.plugins:
        advice = did_you_mean(probe, probes.plugins, f"Remove [check.probes.{probe}], or add the probe.")
        raise ValueError(f"check.probes: there is no table 'probes.{probe}'. How to fix: {advice}")
    gates = load_probe(probe).probe.gates
    for name in names:
        if name not in gates:
            advice = did_you_mean(name, gates, f"Known: {', '.join(gates) or 'none'}.")
            raise ValueError(f"check.probes.{probe}: there is no threshold '{name}'. How to fix: {advice}")


MAX_SHOWN_SETTINGS = 5
REMOVED_KEYS = (("run", "processes"), ("probes", "review", "schema_version"))
"""Keys that configurations stored by auditor 0.2 have, and that have no effect."""


@overload
def load_stored_config(text: str, *, new_name: str | None = None) -> AuditConfig: ...
@overload
def load_stored_config(text: str | None, *, new_name: str | None = None) -> AuditConfig | None: ...
def load_stored_config(text: str | None, *, new_name: str | None = None) -> AuditConfig | None:
    """Read the stored configuration of an audit.

    Args:
        text: JSON of the configuration, as in `Audit.config`; None for an audit of imported scores.
        new_name: a name that replaces the audit's.

    Returns:
        None without a text.

    Raises:
        ConfigError: this version cannot read it; the message names the audit and the keys.
    """
    if text is None:
        return None
    try:
        settings = _drop_removed_keys(text, new_name)
        config = AuditConfig.model_validate_json(settings, context={KEEP_MISSING_PROBES: True})
        return _restore_default_coverage(_restore_first_schema(config))
    except ValidationError as error:
        raise ConfigError(
            f"the stored configuration of {_describe_audit(text)} cannot be read by this version of auditor"
            f"{_describe_wrong_settings(error, text)}.",
            "Use the version that ran the audit, or run the audit again from a configuration file.",
        ) from None


def _drop_removed_keys(text: str, new_name: str | None) -> str:
    """The JSON of a stored configuration without `REMOVED_KEYS`, under another name if there is one."""
    settings = _parse_json(text)
    if isinstance(settings, dict) and new_name is not None:
        settings["name"] = new_name
    for *tables, key in REMOVED_KEYS:
        table = settings
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if isinstance(table, dict):
            table.pop(key, None)
    return text if settings is None else json.dumps(settings)


def _restore_first_schema(config: AuditConfig) -> AuditConfig:
    """The stored configuration with version 1 of the direct schema, if it was stored before there were versions."""
    direct = config.probes.direct
    if direct is None or "schema_version" in direct.model_fields_set:
        return config
    direct = direct.model_copy(update={"schema_version": 1})
    return config.model_copy(update={"probes": config.probes.model_copy(update={"direct": direct})})


def _restore_default_coverage(config: AuditConfig) -> AuditConfig:
    """The stored configuration without the minimum coverage that earlier versions stored where none was set."""
    check = config.check
    if check.min_coverage != DEFAULT_MIN_COVERAGE or "probes" in check.model_fields_set:
        return config
    return config.model_copy(update={"check": check.model_copy(update={"min_coverage": None})})


def _describe_audit(text: str) -> str:
    """Name the audit of a stored configuration, if it is readable that far."""
    data = _parse_json(text)
    name = data.get("name") if isinstance(data, dict) else None
    return f"audit '{truncate_text(name)}'" if isinstance(name, str) else "an audit"


def _describe_wrong_settings(error: ValidationError, text: str) -> str:
    """List the keys of a configuration that cannot be read; empty if the text is no JSON."""
    keys = list_wrong_settings(error, _parse_json(text), AuditConfig)
    omitted_note = f" and {len(keys) - MAX_SHOWN_SETTINGS} more" if len(keys) > MAX_SHOWN_SETTINGS else ""
    return f": {', '.join(keys[:MAX_SHOWN_SETTINGS])}{omitted_note}" if keys else ""


def _parse_json(text: str) -> Any:
    """Parse a text; None if it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
