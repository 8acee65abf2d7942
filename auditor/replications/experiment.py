"""How a paper's tables are run: the audits, the published settings, and the figures of their reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, model_validator

from auditor.reports.data.replication import FixedDeparture

Part: TypeAlias = str
"""Name of a part of an audit that figures depend on, such as `direct`; each preset has its own."""
EACH_MODEL = "each model"
"""Stands for the columns of a table that has one for each of our models."""
PRESET_CONFIG = ConfigDict(extra="forbid", frozen=True)


class FigureSource(BaseModel):
    """A figure of an audit's report that is set beside a published one.

    Attributes:
        figure: a key of `FIGURES` in `auditor.replications.figures`; empty if only a model's own figure is comparable.
        model_figure: the same of one model (`MODEL_FIGURES`), where a model of ours is set beside the row's.
        group_figure: the same of one model by group (`GROUP_FIGURES`), in a table without published figures. In the
            column `EACH_MODEL`, a group is a row and a model a column; else each group of each model is a row.
        audit: the audit that the published figure is of, such as of one survey; empty for each.
        over_audits: for a published figure of all audits together: the `sum` of their counts, or the `share` in all
            that is counted. Empty for a figure of each audit.
        trial: the trial of the audit that gives the figure; empty for the audit's report.
        label: what tells this figure from another one of the cell, such as the unit that is counted.
        parts: further parts that it depends on, besides those of its table.
        departures: ids of the departures of this figure from the published definition.
    """

    model_config = PRESET_CONFIG

    figure: str = ""
    model_figure: str = ""
    group_figure: str = ""
    audit: str = ""
    over_audits: Literal["", "sum", "share"] = ""
    trial: str = ""
    label: str = ""
    parts: frozenset[Part] = frozenset()
    departures: tuple[str, ...] = ()


class PublishedSetting(FixedDeparture):
    """A setting with which the paper measured; an audit with another value departs from it.

    Attributes:
        key: the setting in an audit's stored configuration, or one of `COMPUTED_SETTINGS`; see `read_setting`.
        value: as the paper says; by audit, or by trial, if it is a table.
        parts: the parts that it bears on; empty for all.
        is_wording: whether the same value still means other words, since the prompt was written anew.
        is_list_of_names: whether the value lists the names that may occur; an audit departs if it has others.
    """

    key: str
    value: Any
    parts: frozenset[Part] = frozenset()
    is_wording: bool = False
    is_list_of_names: bool = False

    def bears_on(self, parts: frozenset[Part]) -> bool:
        """Whether any of these parts depends on the setting."""
        return not self.parts or bool(self.parts & parts)


class SmallForm(BaseModel):
    """The small form of an experiment, for the model that comes with the program.

    Attributes:
        config: settings that replace those of the experiment; it names the models. Empty if there is no small form.
        audits: settings of each audit that replace those of the experiment, such as countries and topics.
        files: data files that come with the program, by name; those that the user names take precedence.
        trials: options of trials that are added to those of the experiment, by name.
    """

    model_config = PRESET_CONFIG

    config: dict[str, Any] = {}
    audits: dict[str, dict[str, Any]] = {}
    files: dict[str, str] = {}
    trials: dict[str, dict[str, Any]] = {}


class DataFile(BaseModel):
    """A file that the user names: `--data NAME=FILE`.

    Attributes:
        audit: the audit whose setting names it, or the import of it; empty if only a trial reads it.
        shared_with: further audits with the same file in the same setting.
        key: the setting, such as `survey.source`; empty for an import.
        is_required: whether the audits cannot be run without it.
        terms: under which its owner passes it on, in words; empty if they are not known.
        note: what is not checked about a file of the user, in words.
        converter: the data set's name in `auditor logic convert`, which writes the file; empty if it cannot.
    """

    model_config = PRESET_CONFIG

    audit: str = ""
    shared_with: tuple[str, ...] = ()
    key: str = ""
    is_required: bool = False
    terms: str = ""
    note: str = ""
    converter: str = ""

    @property
    def audits(self) -> tuple[str, ...]:
        """The audits and imports that read it."""
        return tuple(filter(None, (self.audit, *self.shared_with)))


class Trial(BaseModel):
    """An experiment on an audit (`auditor experiment NAME`), which may ask models further questions.

    Attributes:
        experiment: its name; `repair` measures the stages of REPAIR instead (`auditor logic repair`).
        audit: the audit that it is made on.
        options: its arguments and options.
        files: names of the data files that it reads, by option; without them it is not made.
        limit_option: the option that `--limit` sets; empty if the limit of the audit is that of the trial.
    """

    model_config = PRESET_CONFIG

    experiment: str
    audit: str
    options: dict[str, Any] = {}
    files: dict[str, str] = {}
    limit_option: str = ""


class Experiment(BaseModel):
    """The audits behind a paper's tables: one for each survey or data set.

    Attributes:
        needs: what the user provides, in words.
        cost: calls of one model in the full form, in words.
        config: settings of every audit but its models, as in a configuration file.
        audits: further settings of each audit, by name of its survey or data set.
        imports: names of the files with people's comparisons that become audits without a call (`auditor import
            comparisons`), by name of the audit.
        files: data files that the user may name, by name.
        limit_key: the setting that `--limit` sets.
        optional: settings that only some parts need, such as `probes.logprob`: they are left out for other tables.
        trials: experiments on the finished audits, by name.
        as_published: settings that the paper used, which lose information.
        as_published_note: what they do, in words.
        settings: with which the paper measured.
        bears_on: the parts that keys of a configuration bear on, by dotted key, or by that of a table of settings; by
            default those of the published settings that follow from a key or, without one, all. `judges` are the parts
            in which models judge each other.
        departures: of every audit.
    """

    model_config = PRESET_CONFIG

    needs: str = ""
    cost: str = ""
    config: dict[str, Any] = {}
    audits: dict[str, dict[str, Any]]
    imports: dict[str, str] = {}
    files: dict[str, DataFile] = {}
    limit_key: str = "limits.max_cells"
    optional: dict[str, frozenset[Part]] = {}
    trials: dict[str, Trial] = {}
    as_published: dict[str, Any] = {}
    as_published_note: str = ""
    small: SmallForm = SmallForm()
    settings: tuple[PublishedSetting, ...] = ()
    bears_on: dict[str, frozenset[Part]] = {}
    departures: tuple[FixedDeparture, ...] = ()

    def find_affected_parts(self, key: str) -> frozenset[Part] | None:
        """The parts that a setting bears on, by the longest key of `bears_on` that it is, or is in; None for all."""
        keys = [table for table in self.bears_on if is_within(key, table)]
        return self.bears_on[max(keys, key=len)] if keys else None

    @model_validator(mode="after")
    def _check_ids(self) -> Experiment:
        """Require that every departure has an id of its own."""
        ids = [setting.id for setting in self.settings] + [departure.id for departure in self.departures]
        if len(set(ids)) < len(ids):
            raise ValueError("two departures have the same id")
        return self

    @model_validator(mode="after")
    def _check_names(self) -> Experiment:
        """Require that files and trials name audits of this experiment, and files of trials those of `files`."""
        audits = {trial.audit for trial in self.trials.values()}
        audits |= {name for file in self.files.values() for name in file.audits}
        read_files = {name for trial in self.trials.values() for name in trial.files.values()}
        read_files |= {*self.imports.values(), *self.small.files}
        unknown = (audits - {*self.audits, *self.imports}) | (read_files - set(self.files))
        if unknown := unknown | (set(self.small.trials) - set(self.trials)):
            raise ValueError(f"there is no audit or file '{min(unknown)}'")
        return self


def is_within(key: str, table: str) -> bool:
    """Whether a dotted key is this key, or in this table."""
    return key == table or key.startswith(f"{table}.")


Figures: TypeAlias = Mapping[str, tuple[FigureSource, ...]]
"""The figures of our reports by column of a published table."""
