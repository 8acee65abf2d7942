"""Import models' answers on a survey's own scale as an audit, without calling any model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from auditor.config import require_audit_name
from auditor.domain import Cell, Outcome, Survey, canonical_hash
from auditor.errors import ImportFileError, UsageError, did_you_mean
from auditor.imports.recorded_audits import UnmatchedRows, count_unmatched_rows
from auditor.input_files import parse_json
from auditor.probes.distribution.opinion_rows import replace_opinions
from auditor.probes.distribution.opinions import MAX_SUM_ERROR, PLACEBO, Opinion, OpinionMode, ScaleOrder
from auditor.run import describe_environment, resolve_storage_url
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.surveys import SurveyDistributions, group_countries, load_distributions, load_survey
from auditor.surveys.column_reader import is_missing_marker
from auditor.surveys.countries import (
    COUNTRY_CODES_ADVICE,
    CountryCodes,
    make_country_speller,
    make_topic_speller,
)
from auditor.surveys.distributions import format_distributions, parse_enum_cell
from auditor.surveys.mapping import normalize_label
from auditor.surveys.row_reader import TextRow, read_column_names, read_rows
from auditor.surveys.share_tables import require_first_share
from auditor.surveys.table_formats import parse_number
from auditor.text_safety import clean_name, truncate_text

REQUIRED_COLUMNS = ("model", "country", "topic", "mode")
OPTIONAL_COLUMNS = ("dimension", "group", "order", "sample", "n", "outcome")


class ImportedOpinions(NamedTuple):
    """Counts of what `import_opinions` read and stored.

    Attributes:
        rows: rows read.
        models: different models.
        unusable: rows without a usable answer, counted as failed.
        rescaled: rows of shares that were divided by their sum.
        unmatched: rows about cells or groups for which the survey has no shares.
        replaced: whether an earlier import of this name was replaced.
        unknown_answer: a sentence on the first answer that is not on its topic's scale; empty if there is none.
    """

    rows: int
    models: int
    unusable: int
    rescaled: int
    unmatched: UnmatchedRows
    replaced: bool
    unknown_answer: str = ""


def import_opinions(
    file: Path,
    *,
    survey: str,
    audit: str,
    storage: str | None = None,
    regions: str = "western",
    is_strict: bool = False,
    country_codes: CountryCodes | None = None,
) -> ImportedOpinions:
    """Store a file of answers as an audit. An earlier import of the same name is replaced.

    Args:
        file: CSV, JSONL or Parquet with `model,country,topic,mode[,dimension,group][,order]` and either shares,
            `p1,...,pK[,n]`, from the scale's low end to its high end, or single answers, `sample,answer`. A mode is
            verbalized, sampled or tokens; an order is up or down. `n` is the number of answers behind sampled shares.
            Rows of the dimension `placebo` are about an irrelevant attribute.
        survey: a built-in survey or a file, with shares of answers.
        audit, storage, regions, is_strict, country_codes: as in `recorded_audits.import_scores`.

    Raises:
        SurveyError: the survey has no shares of answers.
        ImportFileError: a row cannot be used; the message names it, and nothing is stored.
        UsageError: the name is invalid, or belongs to an audit that was run.
    """
    require_audit_name(audit)
    truth = group_countries(load_survey(survey), regions)
    distributions = load_distributions(survey)
    reader = _OpinionReader(
        distributions, truth, make_country_speller(truth, file, country_codes, COUNTRY_CODES_ADVICE)
    )
    opinions = list(reader.read(file))
    if not opinions:
        raise ImportFileError(f"{file}: has no rows.", "Check that it is the right file.")
    unmatched = _count_unmatched_opinions(truth, distributions, opinions)
    if is_strict:
        unmatched.require_none(str(file))
    shares_json = format_distributions(distributions)
    with open_database(resolve_storage_url(storage)) as db:
        previous_audit = audits.find_audit(db, audit)
        if previous_audit is not None and previous_audit.config is not None:
            raise UsageError(f"audit '{audit}' was run, not imported.", "Choose another name with --audit.")
        audits.save_finished_audit(
            db,
            name=audit,
            config_hash=canonical_hash([shares_json, [str(opinion) for opinion in opinions]]),
            survey=truth,
            environment=describe_environment(),
            write_results=lambda connection, audit_id: replace_opinions(connection, audit_id, opinions, shares_json),
        )
    return ImportedOpinions(
        rows=len(opinions),
        models=len({opinion.model for opinion in opinions}),
        unusable=sum(opinion.shares is None for opinion in opinions),
        rescaled=reader.counts["rescaled"],
        unknown_answer=reader.unknown_answer,
        unmatched=unmatched,
        replaced=previous_audit is not None,
    )


def _count_unmatched_opinions(
    survey: Survey, distributions: SurveyDistributions, opinions: Sequence[Opinion]
) -> UnmatchedRows:
    """Count the opinions about cells for which the survey has no shares, or none of the group."""
    known_cells = {Cell(cell.country, cell.topic) for cell in distributions.cells}
    known_groups = {(Cell(cell.country, cell.topic), cell.dimension, cell.group) for cell in distributions.cells}
    rows_by_cell = Counter(opinion.cell for opinion in opinions)
    rows_by_group = Counter(
        Cell(opinion.cell.country, f"{opinion.cell.topic} × {opinion.group}" if opinion.group else opinion.cell.topic)
        for opinion in opinions
        if opinion.cell in known_cells
        and opinion.dimension != PLACEBO
        and (opinion.cell, opinion.dimension, opinion.group) not in known_groups
    )
    unmatched = count_unmatched_rows(survey, rows_by_cell, known_cells)
    return replace(unmatched, rows=unmatched.rows + rows_by_group.total(), cells={**unmatched.cells, **rows_by_group})


class _OpinionReader:
    """Reads the rows of a file as opinions on the scale of a survey."""

    def __init__(self, distributions: SurveyDistributions, survey: Survey, spell_country: Callable[[str], str]) -> None:
        self.groups = distributions.groups
        self.distributions = distributions
        self.spell = spell_country
        self.spell_topic = make_topic_speller(survey)
        self.counts: Counter[str] = Counter()
        self.order_column = "order"
        self.unknown_answer = ""

    def read(self, file: Path) -> Iterator[Opinion]:
        """Yield the opinions of a file; raise ImportFileError for a row that cannot be used or occurs twice."""
        columns = {name.casefold() for name in read_column_names(file)}
        has_answers = "answer" in columns
        scales = [self.distributions, *self.distributions.scales.values()]
        n_points = max(len(scale.points) for scale in scales)
        is_exported = "shares" in columns  # by `auditor export tables`
        self.order_column = "scale_order" if is_exported else "order"
        values = ["sample", "answer"] if has_answers else [f"p{position}" for position in range(1, n_points + 1)]
        values = ["shares", "scale_order"] if is_exported else values
        require_first_share(file, columns)
        extra = f"p{n_points + 1}"
        if not has_answers and extra in columns:
            raise ImportFileError(
                f"{file}: the file has the column '{extra}', but the survey's scale has {n_points} answers.",
                "Use the survey's scale.",
            )
        optional = [name for name in OPTIONAL_COLUMNS if name not in values]
        seen: set[tuple[object, ...]] = set()
        for row in read_rows(file, [*REQUIRED_COLUMNS, *values], optional):
            opinion = self._parse_row(row, values, has_answers=has_answers)
            key = (
                opinion.model,
                *opinion.cell,
                opinion.dimension,
                opinion.group,
                opinion.mode,
                opinion.scale_order,
                opinion.sample,
            )
            if key in seen:
                raise ImportFileError(
                    f"{row.location}: this answer occurs twice.",
                    "Give each repetition its own number in the column sample, or delete the duplicate row.",
                )
            seen.add(key)
            yield opinion

    def _parse_row(self, row: TextRow, values: list[str], *, has_answers: bool) -> Opinion:
        """The opinion of a row."""
        mode = OpinionMode(_parse_choice(row, "mode", [str(mode) for mode in OpinionMode]))
        if has_answers and mode is not OpinionMode.SAMPLED:
            raise row.make_cell_error(
                "mode", f"{mode} answers are shares", "Give the columns p1, p2, … in a file without the column answer."
            )
        dimension, group = self._parse_group(row)
        topic = self.spell_topic(row.required_text("topic"))
        points = self.distributions.scale_of(topic).points
        names = [point.name for point in points]
        if "shares" in values:
            shares = _parse_exported_shares(row, len(points))
        else:
            shares = _parse_answer(row, names) if has_answers else self._parse_shares(row, values, len(points))
        outcome = parse_enum_cell(row, "outcome", Outcome, str.lower)
        if has_answers and shares is None and outcome in (None, Outcome.OK) and not self.unknown_answer:
            self.unknown_answer = _describe_unknown_answer(row, names)
        if outcome not in (None, Outcome.OK):
            shares = None  # a call that failed, or an answer that a person declared invalid
        elif shares is None or outcome is None:
            outcome = Outcome.OK if shares is not None else Outcome.UNPARSED
        n = None
        if mode is OpinionMode.SAMPLED:
            n = 1 if has_answers else row.integer("n") or None
            if n is None and (outcome is Outcome.OK or not row.cells["outcome"]):
                raise row.make_cell_error("n", "is empty or 0", "Give the number of answers behind sampled shares.")
        return Opinion(
            model=clean_name(row.required_text("model")),
            cell=Cell(self.spell(row.required_text("country")), topic),
            dimension=dimension,
            group=group,
            mode=mode,
            scale_order=ScaleOrder(
                _parse_choice(row, self.order_column, ["up", "down"]) if row.cells[self.order_column] else ""
            ),
            sample=row.integer("sample"),
            outcome=outcome,
            shares=shares,
            n=n,
        )

    def _parse_group(self, row: TextRow) -> tuple[str, str]:
        """The dimension and the group, both empty for everyone."""
        dimension, group = row.cells["dimension"], row.cells["group"]
        if bool(dimension) != bool(group):
            empty = "dimension" if group else "group"
            raise row.make_cell_error(empty, "is empty", "Fill both columns, or leave both empty.")
        if dimension and dimension != PLACEBO:
            _parse_choice(row, "dimension", [*self.groups, PLACEBO])
            _parse_choice(row, "group", list(self.groups[dimension]))
        return dimension, group

    def _parse_shares(self, row: TextRow, columns: list[str], n_points: int) -> tuple[float, ...] | None:
        """Shares that add up to 1; None without shares, or if they are negative or add up to something else.

        Args:
            columns: of all shares of the file; the topic's scale has the first `n_points`, and the others none.
        """
        if any(not is_missing_marker(row.cells[column]) and row.number(column) for column in columns[n_points:]):
            return None
        columns = columns[:n_points]
        numbers = [row.number(column) for column in columns]
        shares = [number for number in numbers if number is not None and number >= 0]
        total = sum(shares)
        unit = 100 if total > 2 else 1
        if len(shares) < len(columns) or abs(total / unit - 1) > MAX_SUM_ERROR:
            return None
        self.counts["rescaled"] += abs(total / unit - 1) > 1e-3
        return tuple(share / total for share in shares)


def _parse_exported_shares(row: TextRow, n_points: int) -> tuple[float, ...] | None:
    """Shares as a JSON list, as `auditor export tables` writes them; None if the cell is empty.

    Raises:
        ImportFileError: the cell has no list of as many shares as the scale has answers.
    """
    if not row.cells["shares"]:
        return None
    shares = parse_json(row.cells["shares"], f"{row.location}, column 'shares'", ImportFileError)
    is_valid = isinstance(shares, list) and len(shares) == n_points
    if not is_valid or not all(isinstance(share, int | float) and share >= 0 for share in shares):
        raise row.make_cell_error("shares", f"is no list of {n_points} shares", "Use the survey's scale.")
    total = sum(shares)
    if abs(total - 1) > MAX_SUM_ERROR:
        raise row.make_cell_error("shares", f"the shares add up to {total:g}", "Write shares that add up to 1.")
    return tuple(float(share) for share in shares)


def _parse_answer(row: TextRow, names: Sequence[str]) -> tuple[float, ...] | None:
    """A single answer as shares; None if it is empty or not on the scale.

    3.0 is the answer 3, and `Not a moral issue` the answer `not_a_moral_issue`.
    """
    answer = row.cells["answer"]
    if answer not in names:
        number, label = parse_number(answer), _normalize_answer(answer)
        equal = [name for name in names if parse_number(name) == number or _normalize_answer(name) == label]
        answer = equal[0] if len(equal) == 1 else answer
    return tuple(float(name == answer) for name in names) if answer in names else None


def _describe_unknown_answer(row: TextRow, names: Sequence[str]) -> str:
    """A sentence on an answer that is not on its topic's scale, with the scale; empty for an empty answer."""
    answer = truncate_text(row.cells["answer"])
    return answer and f"{row.location}: '{answer}' is not on the scale: {', '.join(names)}."


def _normalize_answer(text: str) -> str:
    """An answer as labels are compared; an underscore is a space."""
    return normalize_label(text.replace("_", " "))


def _parse_choice(row: TextRow, column: str, choices: list[str]) -> str:
    """The text of a cell, one of several; raise ImportFileError for another."""
    text = row.required_text(column)
    if text not in choices:
        listed = f"Use one of: {', '.join(choices) or 'none, since the survey has no groups'}."
        raise row.make_cell_error(column, f"'{text}' is unknown", did_you_mean(text, choices, listed))
    return text
