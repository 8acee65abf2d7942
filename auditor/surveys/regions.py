"""Group countries into regions: built-in groupings (`data/*.grouping.toml`) and grouping files of the user."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from auditor.domain import Grouping, Region, Survey
from auditor.errors import SurveyError, did_you_mean
from auditor.input_files import read_toml
from auditor.surveys.countries import (
    COUNTRY_NAME_ADVICE,
    DATA_FOLDER,
    country_code,
    country_key,
    is_country_number,
    known_codes,
)
from auditor.surveys.row_reader import read_rows

GROUPING_SUFFIX = ".grouping.toml"
DEFAULT_GROUPING = "western"
ZONE_GROUPING = "inglehart_welzel"
"""The grouping whose regions are the cultural zones by which intervals cluster countries."""
GROUPING_COLUMNS = ("country", "region")
GROUPING_FORMAT_HINT = "Use a CSV file with the columns country,region, or a TOML file with a table [regions]."


class _GroupingEntry(NamedTuple):
    """A country and its region; `location` names the file and line for error messages."""

    location: str
    country: str
    region: str


@dataclasses.dataclass(frozen=True, slots=True)
class _GroupingFile:
    """A grouping as read from its file; `default_region` is the region of all countries that it does not list."""

    title: str
    entries: tuple[_GroupingEntry, ...]
    default_region: str | None

    @property
    def region_by_country(self) -> dict[str, str]:
        """Region by `country_key` of each listed country."""
        return {country_key(entry.country): entry.region for entry in self.entries}


def builtin_groupings() -> tuple[str, ...]:
    """Names of the built-in groupings."""
    return tuple(sorted(path.name.removesuffix(GROUPING_SUFFIX) for path in DATA_FOLDER.glob(f"*{GROUPING_SUFFIX}")))


def region_of(country: str, grouping: str = DEFAULT_GROUPING) -> str | None:
    """Region of a country.

    Args:
        country: any spelling that `country_code` understands, or one that the grouping file itself uses.
        grouping: `western`, `un_m49`, `un_m49_subregions` or `inglehart_welzel`, or the path of a grouping file: CSV
            with the columns `country,region`, or TOML with a table `[regions]` of lists of countries and, optionally,
            `title` and `rest`, the region of all countries that are not listed.

    Returns:
        The region's name; None if the country is unknown or in no region.

    Raises:
        SurveyError, ImportFileError: the grouping does not exist, its file is invalid, or it lists a country twice.
    """
    return _find_region(country, _load_grouping(grouping))


def group_countries(survey: Survey, grouping: str = DEFAULT_GROUPING) -> Survey:
    """Return a copy of the survey with its countries grouped, and in cultural zones.

    Later changes of the grouping's file do not affect the copy.

    Raises:
        SurveyError, ImportFileError: as `region_of`; or a grouping file of the user names a country that is neither in
            ISO 3166 nor in the survey, or lists no country of the survey. A built-in grouping may list none.
    """
    grouping_file = _load_grouping(grouping)
    is_user_file = grouping not in builtin_groupings()
    if is_user_file:
        survey_keys = {country_key(country) for country in survey.countries}
        for entry in grouping_file.entries:
            if is_country_number(entry.country) and entry.country not in survey.countries:
                raise SurveyError(
                    f"{entry.location}: the country '{entry.country}' is a number without a meaning.",
                    COUNTRY_NAME_ADVICE,
                )
            if country_code(entry.country) is None and country_key(entry.country) not in survey_keys:
                how_to_fix = did_you_mean(
                    entry.country, survey.countries, "Use the survey's spelling, or the ISO 3166 code."
                )
                raise SurveyError(
                    f"{entry.location}: '{entry.country}' is not a country in ISO 3166 or in the survey.", how_to_fix
                )
    survey_grouping = _build_grouping(grouping_file, Path(grouping).name, survey.countries)
    if is_user_file and not survey_grouping.regions:
        raise SurveyError(
            f"{grouping}: it contains no country of the survey '{survey.name}'.", "Check that it is the right file."
        )
    return dataclasses.replace(survey, grouping=survey_grouping, zones=_find_zones(survey))


def get_grouping(survey: Survey) -> Grouping:
    """Return the survey's own grouping, or the default grouping (Western and other countries) if it has none."""
    return survey.grouping or _build_grouping(_load_grouping(DEFAULT_GROUPING), DEFAULT_GROUPING, survey.countries)


def get_zones(survey: Survey) -> Mapping[str, str]:
    """Cultural zone by country, of the countries that have one: as stored with the audit, else by the built-in map."""
    return _find_zones(survey) if survey.zones is None else survey.zones


def _find_zones(survey: Survey) -> dict[str, str]:
    zone_by_country = {country: region_of(country, ZONE_GROUPING) for country in survey.countries}
    return {country: zone for country, zone in zone_by_country.items() if zone is not None}


def _build_grouping(grouping_file: _GroupingFile, name: str, countries: Sequence[str]) -> Grouping:
    """Build the regions that contain a country of `countries`, in the file's order, with the default region last."""
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
    """Return a country's region, or None; the default region only applies to countries of `known_codes`."""
    region_by_key = grouping_file.region_by_country
    return region_by_key.get(
        country_key(country), grouping_file.default_region if country_code(country) in known_codes() else None
    )


# --- files ------------------------------------------------------------------------------------------------------


def _load_grouping(grouping: str) -> _GroupingFile:
    """Load a built-in grouping by name, or read a grouping file; raise SurveyError if there is neither."""
    if grouping in builtin_groupings():
        return _load_builtin_grouping(grouping)
    path = Path(grouping)
    if not path.is_file():
        hint = did_you_mean(
            grouping,
            builtin_groupings(),
            f"Built-in groupings: {', '.join(builtin_groupings())}. {GROUPING_FORMAT_HINT}",
        )
        raise SurveyError(f"'{grouping}' is neither a built-in grouping of countries nor an existing file.", hint)
    return _read_grouping_toml(path) if path.suffix.lower() == ".toml" else _read_grouping_csv(path)


@cache
def _load_builtin_grouping(name: str) -> _GroupingFile:
    """Read a built-in grouping, once."""
    return _read_grouping_toml(DATA_FOLDER / f"{name}{GROUPING_SUFFIX}")


def _read_grouping_csv(path: Path) -> _GroupingFile:
    """Read a CSV file with the columns country and region; raise SurveyError if a field is empty or there is no row."""
    entries = []
    for row in read_rows(path, GROUPING_COLUMNS, missing_column_hint=GROUPING_FORMAT_HINT):
        for column in GROUPING_COLUMNS:
            if not row.cells[column]:
                raise SurveyError(f"{row.location}: the column '{column}' is empty.", "Fill it, or remove the row.")
        entries.append(_GroupingEntry(row.location, row.cells["country"], row.cells["region"]))
    if not entries:
        raise SurveyError(f"{path}: the grouping is empty: there are no rows below the header.", GROUPING_FORMAT_HINT)
    return _GroupingFile(path.stem, _require_unique_countries(entries), None)


def _read_grouping_toml(path: Path) -> _GroupingFile:
    """Read a TOML file with lists of countries by region; raise SurveyError if a key has the wrong type."""
    grouping_table = read_toml(path, SurveyError)
    regions = grouping_table.get("regions")
    if not isinstance(regions, dict) or not all(
        isinstance(region_countries, list) and all(isinstance(element, str) for element in region_countries)
        for region_countries in regions.values()
    ):
        raise SurveyError(
            f"{path}: the section [regions] with lists of countries is missing.",
            'Add the line [regions], and below it, for each region: "Region" = ["Country", ...].',
        )
    title, default_region = grouping_table.get("title", path.stem), grouping_table.get("rest")
    for key, text in (("title", title), ("rest", default_region)):
        if text is not None and not isinstance(text, str):
            raise SurveyError(f"{path}: '{key}' is not a text in quotes.", f'Write it like this: {key} = "Others".')
    entries = (
        _GroupingEntry(str(path), country, region) for region, countries in regions.items() for country in countries
    )
    return _GroupingFile(title, _require_unique_countries(entries), default_region)


def _require_unique_countries(entries: Iterable[_GroupingEntry]) -> tuple[_GroupingEntry, ...]:
    """Return the entries as a tuple; raise SurveyError for a country or a region in two spellings."""
    entry_by_country: dict[str, _GroupingEntry] = {}
    region_by_folded: dict[str, str] = {}
    for entry in entries:
        if region_by_folded.setdefault(entry.region.casefold(), entry.region) != entry.region:
            regions = f"'{region_by_folded[entry.region.casefold()]}' and '{entry.region}'"
            problem = f"{entry.location}: the regions {regions} differ in capital letters only."
            raise SurveyError(problem, "Use one spelling for the region.")
        first_entry = entry_by_country.setdefault(country_key(entry.country), entry)
        if first_entry is not entry:
            problem = (
                f"in '{first_entry.region}' and in '{entry.region}'"
                if first_entry.region != entry.region
                else "listed twice"
            )
            raise SurveyError(
                f"{entry.location}: the country '{entry.country}' is {problem}.", "Remove one of the two entries."
            )
    return tuple(entry_by_country.values())
