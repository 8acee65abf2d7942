"""Groups of countries: the built-in groupings, `data/*.grouping.toml`, and files of the user's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from auditor.domain import Grouping, Region, Survey
from auditor.errors import SurveyError, did_you_mean
from auditor.input_files import read_toml
from auditor.surveys.countries import DATA_FOLDER, country_code, country_key, known_codes
from auditor.surveys.row_reader import read_rows

GROUPING_SUFFIX = ".grouping.toml"
DEFAULT_GROUPING = "western"
GROUPING_COLUMNS = ("country", "region")
GROUPING_FORMAT_HINT = "Give a CSV file with the columns country,region, or a TOML file with a table [regions]."


class _GroupingEntry(NamedTuple):
    """One line of a grouping: where it stands, for messages."""

    location: str
    country: str
    region: str


@dataclasses.dataclass(frozen=True, slots=True)
class _GroupingFile:
    """A grouping as its file has it; `rest` is the region of all other countries."""

    title: str
    entries: tuple[_GroupingEntry, ...]
    default_region: str | None

    @property
    def region_by_country(self) -> dict[str, str]:
        """Region by country."""
        return {country_key(entry.country): entry.region for entry in self.entries}


def builtin_groupings() -> tuple[str, ...]:
    """Names of the built-in groupings."""
    return tuple(sorted(path.name.removesuffix(GROUPING_SUFFIX) for path in DATA_FOLDER.glob(f"*{GROUPING_SUFFIX}")))


def region_of(country: str, grouping: str = DEFAULT_GROUPING) -> str | None:
    """The group that a country belongs to.

    Args:
        country: any spelling that `country_code` understands, or one that the grouping file itself uses.
        grouping: `western`, `un_m49`, `un_m49_subregions` or `inglehart_welzel`, or the path of a file of the user's
            own: CSV with the columns `country,region`, or TOML with a table `[regions]` of lists of countries and, if
            wanted, `title`, and `rest`, the name of all others.

    Returns:
        The group's name; None where the country is unknown or in no group.

    Raises:
        SurveyError, ImportFileError: there is no such grouping, its file cannot be used, or a country is there twice.
    """
    return _find_region(country, _load_grouping(grouping))


def group_countries(survey: Survey, grouping: str = DEFAULT_GROUPING) -> Survey:
    """The survey with its countries in groups, which stay with it however the file changes.

    Raises:
        SurveyError, ImportFileError: as `region_of`; or the file names a country that is none of ISO 3166 and none of
            the survey's; or it places no country of the survey. A built-in grouping may place none.
    """
    grouping_file = _load_grouping(grouping)
    is_user_file = grouping not in builtin_groupings()
    if is_user_file:
        _check_country_names(grouping_file, survey.countries)
    survey_grouping = _build_grouping(grouping_file, Path(grouping).name, survey.countries)
    if is_user_file and not survey_grouping.regions:
        raise SurveyError(f"{grouping}: no country of the survey '{survey.name}' is in it.", "Is it the right file?")
    return dataclasses.replace(survey, grouping=survey_grouping)


def get_grouping(survey: Survey) -> Grouping:
    """The groups that a survey's countries are in: those it was given, or Western and others."""
    return survey.grouping or _build_grouping(_load_grouping(DEFAULT_GROUPING), DEFAULT_GROUPING, survey.countries)


def _build_grouping(grouping_file: _GroupingFile, name: str, countries: Sequence[str]) -> Grouping:
    """Groups in the order of the file, the rest last; only those that have a country."""
    region_by_country = {country: _find_region(country, grouping_file) for country in countries}
    region_names = dict.fromkeys(
        [
            *(entry.region for entry in grouping_file.entries),
            *([grouping_file.default_region] if grouping_file.default_region else []),
        ]
    )
    regions = (
        Region(region_name, tuple(country for country in countries if region_by_country[country] == region_name))
        for region_name in region_names
    )
    return Grouping(name, grouping_file.title, tuple(region for region in regions if region.countries))


def _find_region(country: str, grouping_file: _GroupingFile) -> str | None:
    region_by_key = grouping_file.region_by_country
    return region_by_key.get(
        country_key(country), grouping_file.default_region if country_code(country) in known_codes() else None
    )


def _check_country_names(grouping_file: _GroupingFile, countries: Sequence[str]) -> None:
    survey_keys = {country_key(country) for country in countries}
    for entry in grouping_file.entries:
        if country_code(entry.country) is None and country_key(entry.country) not in survey_keys:
            how_to_fix = did_you_mean(entry.country, countries, "Spell it as the survey does, or as its ISO 3166 code.")
            raise SurveyError(
                f"{entry.location}: '{entry.country}' is no country of ISO 3166 and none of the survey's.", how_to_fix
            )


# --- files ------------------------------------------------------------------------------------------------------


def _load_grouping(grouping: str) -> _GroupingFile:
    if grouping in builtin_groupings():
        return _load_builtin_grouping(grouping)
    path = Path(grouping)
    if not path.is_file():
        hint = did_you_mean(
            grouping, builtin_groupings(), f"Built in are {', '.join(builtin_groupings())}. {GROUPING_FORMAT_HINT}"
        )
        raise SurveyError(f"there is no grouping '{grouping}', neither built in nor a file.", hint)
    return _read_grouping_toml(path) if path.suffix.lower() == ".toml" else _read_grouping_csv(path)


@cache
def _load_builtin_grouping(name: str) -> _GroupingFile:
    return _read_grouping_toml(DATA_FOLDER / f"{name}{GROUPING_SUFFIX}")


def _read_grouping_csv(path: Path) -> _GroupingFile:
    entries = []
    for row in read_rows(path, GROUPING_COLUMNS, missing_column_hint=GROUPING_FORMAT_HINT):
        for column in GROUPING_COLUMNS:
            if not row.cells[column]:
                raise SurveyError(f"{row.location}: the column '{column}' is empty.", "Fill it, or take the row out.")
        entries.append(_GroupingEntry(row.location, row.cells["country"], row.cells["region"]))
    if not entries:
        raise SurveyError(f"{path}: the grouping is empty: no row under the header.", GROUPING_FORMAT_HINT)
    return _GroupingFile(path.stem, _require_unique_countries(entries), None)


def _read_grouping_toml(path: Path) -> _GroupingFile:
    grouping_table = read_toml(path, SurveyError)
    regions = grouping_table.get("regions")
    if not isinstance(regions, dict) or not all(
        _is_text_list(region_countries) for region_countries in regions.values()
    ):
        raise SurveyError(
            f"{path}: has no table [regions] of lists of countries.", 'Write: "Group" = ["Country", ...].'
        )
    title, default_region = grouping_table.get("title", path.stem), grouping_table.get("rest")
    for key, text in (("title", title), ("rest", default_region)):
        if text is not None and not isinstance(text, str):
            raise SurveyError(f"{path}: '{key}' is no text.", f'Write: {key} = "Others".')
    entries = (
        _GroupingEntry(str(path), country, region) for region, countries in regions.items() for country in countries
    )
    return _GroupingFile(title, _require_unique_countries(entries), default_region)


def _is_text_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(element, str) for element in value)


def _require_unique_countries(entries: Iterable[_GroupingEntry]) -> tuple[_GroupingEntry, ...]:
    entry_by_country: dict[str, _GroupingEntry] = {}
    for entry in entries:
        first_entry = entry_by_country.setdefault(country_key(entry.country), entry)
        if first_entry is not entry:
            problem = (
                f"in '{first_entry.region}' and in '{entry.region}'"
                if first_entry.region != entry.region
                else "there twice"
            )
            raise SurveyError(f"{entry.location}: '{entry.country}' is {problem}.", "Keep one.")
    return tuple(entry_by_country.values())
