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
        return {country_key(p.country): p.region for p in self.entries}


def builtin_groupings() -> tuple[str, ...]:
    """Names of the built-in groupings."""
    return tuple(sorted(p.name.removesuffix(GROUPING_SUFFIX) for p in DATA_FOLDER.glob(f"*{GROUPING_SUFFIX}")))


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
    rules = _load_grouping(grouping)
    own = grouping not in builtin_groupings()
    if own:
        _check_country_names(rules, survey.countries)
    found = _build_grouping(rules, Path(grouping).name, survey.countries)
    if own and not found.regions:
        raise SurveyError(f"{grouping}: no country of the survey '{survey.name}' is in it.", "Is it the right file?")
    return dataclasses.replace(survey, grouping=found)


def get_grouping(survey: Survey) -> Grouping:
    """The groups that a survey's countries are in: those it was given, or Western and others."""
    return survey.grouping or _build_grouping(_load_grouping(DEFAULT_GROUPING), DEFAULT_GROUPING, survey.countries)


def _build_grouping(grouping_file: _GroupingFile, name: str, countries: Sequence[str]) -> Grouping:
    """Groups in the order of the file, the rest last; only those that have a country."""
    placed = {country: _find_region(country, grouping_file) for country in countries}
    names = dict.fromkeys(
        [
            *(p.region for p in grouping_file.entries),
            *([grouping_file.default_region] if grouping_file.default_region else []),
        ]
    )
    regions = (Region(n, tuple(c for c in countries if placed[c] == n)) for n in names)
    return Grouping(name, grouping_file.title, tuple(region for region in regions if region.countries))


def _find_region(country: str, grouping_file: _GroupingFile) -> str | None:
    members = grouping_file.region_by_country
    return members.get(
        country_key(country), grouping_file.default_region if country_code(country) in known_codes() else None
    )


def _check_country_names(grouping_file: _GroupingFile, countries: Sequence[str]) -> None:
    known = {country_key(c) for c in countries}
    for place in grouping_file.entries:
        if country_code(place.country) is None and country_key(place.country) not in known:
            mend = did_you_mean(place.country, countries, "Spell it as the survey does, or as its ISO 3166 code.")
            raise SurveyError(
                f"{place.location}: '{place.country}' is no country of ISO 3166 and none of the survey's.", mend
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
    places = []
    for row in read_rows(path, GROUPING_COLUMNS, missing_column_hint=GROUPING_FORMAT_HINT):
        for column in GROUPING_COLUMNS:
            if not row.cells[column]:
                raise SurveyError(f"{row.location}: the column '{column}' is empty.", "Fill it, or take the row out.")
        places.append(_GroupingEntry(row.location, row.cells["country"], row.cells["region"]))
    if not places:
        raise SurveyError(f"{path}: the grouping is empty: no row under the header.", GROUPING_FORMAT_HINT)
    return _GroupingFile(path.stem, _require_unique_countries(places), None)


def _read_grouping_toml(path: Path) -> _GroupingFile:
    data = read_toml(path, SurveyError)
    regions = data.get("regions")
    if not isinstance(regions, dict) or not all(_is_text_list(v) for v in regions.values()):
        raise SurveyError(
            f"{path}: has no table [regions] of lists of countries.", 'Write: "Group" = ["Country", ...].'
        )
    title, rest = data.get("title", path.stem), data.get("rest")
    for key, value in (("title", title), ("rest", rest)):
        if value is not None and not isinstance(value, str):
            raise SurveyError(f"{path}: '{key}' is no text.", f'Write: {key} = "Others".')
    places = (_GroupingEntry(str(path), c, region) for region, countries in regions.items() for c in countries)
    return _GroupingFile(title, _require_unique_countries(places), rest)


def _is_text_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _require_unique_countries(entries: Iterable[_GroupingEntry]) -> tuple[_GroupingEntry, ...]:
    seen: dict[str, _GroupingEntry] = {}
    for place in entries:
        old = seen.setdefault(country_key(place.country), place)
        if old is not place:
            where = f"in '{old.region}' and in '{place.region}'" if old.region != place.region else "there twice"
            raise SurveyError(f"{place.location}: '{place.country}' is {where}.", "Keep one.")
    return tuple(seen.values())
