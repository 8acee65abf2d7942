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
from auditor.surveys.countries import DATA, country_code, country_key, known_codes
from auditor.surveys.row_reader import read_rows

SUFFIX = ".grouping.toml"
DEFAULT = "western"
COLUMNS = ("country", "region")
FORMS = "Give a CSV file with the columns country,region, or a TOML file with a table [regions]."


class _Place(NamedTuple):
    """One line of a grouping: where it stands, for messages."""

    where: str
    country: str
    region: str


@dataclasses.dataclass(frozen=True, slots=True)
class _Rules:
    """A grouping as its file has it; `rest` is the region of all other countries."""

    title: str
    places: tuple[_Place, ...]
    rest: str | None

    @property
    def members(self) -> dict[str, str]:
        """Region by country."""
        return {country_key(p.country): p.region for p in self.places}


def groupings() -> tuple[str, ...]:
    """Names of the built-in groupings."""
    return tuple(sorted(p.name.removesuffix(SUFFIX) for p in DATA.glob(f"*{SUFFIX}")))


def region_of(country: str, grouping: str = DEFAULT) -> str | None:
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
    return _placed(country, _load(grouping))


def grouped(survey: Survey, grouping: str = DEFAULT) -> Survey:
    """The survey with its countries in groups, which stay with it however the file changes.

    Raises:
        SurveyError, ImportFileError: as `region_of`; or the file names a country that is none of ISO 3166 and none of
            the survey's; or it places no country of the survey. A built-in grouping may place none.
    """
    rules = _load(grouping)
    own = grouping not in groupings()
    if own:
        _check_names(rules, survey.countries)
    found = _group(rules, Path(grouping).name, survey.countries)
    if own and not found.regions:
        raise SurveyError(f"{grouping}: no country of the survey '{survey.name}' is in it.", "Is it the right file?")
    return dataclasses.replace(survey, grouping=found)


def grouping_of(survey: Survey) -> Grouping:
    """The groups that a survey's countries are in: those it was given, or Western and others."""
    return survey.grouping or _group(_load(DEFAULT), DEFAULT, survey.countries)


def _group(rules: _Rules, name: str, countries: Sequence[str]) -> Grouping:
    """Groups in the order of the file, the rest last; only those that have a country."""
    placed = {country: _placed(country, rules) for country in countries}
    names = dict.fromkeys([*(p.region for p in rules.places), *([rules.rest] if rules.rest else [])])
    regions = (Region(n, tuple(c for c in countries if placed[c] == n)) for n in names)
    return Grouping(name, rules.title, tuple(region for region in regions if region.countries))


def _placed(country: str, rules: _Rules) -> str | None:
    members = rules.members
    return members.get(country_key(country), rules.rest if country_code(country) in known_codes() else None)


def _check_names(rules: _Rules, countries: Sequence[str]) -> None:
    known = {country_key(c) for c in countries}
    for place in rules.places:
        if country_code(place.country) is None and country_key(place.country) not in known:
            mend = did_you_mean(place.country, countries, "Spell it as the survey does, or as its ISO 3166 code.")
            raise SurveyError(
                f"{place.where}: '{place.country}' is no country of ISO 3166 and none of the survey's.", mend
            )


# --- files ------------------------------------------------------------------------------------------------------


def _load(grouping: str) -> _Rules:
    if grouping in groupings():
        return _built_in(grouping)
    path = Path(grouping)
    if not path.is_file():
        hint = did_you_mean(grouping, groupings(), f"Built in are {', '.join(groupings())}. {FORMS}")
        raise SurveyError(f"there is no grouping '{grouping}', neither built in nor a file.", hint)
    return _read_toml(path) if path.suffix.lower() == ".toml" else _read_csv(path)


@cache
def _built_in(name: str) -> _Rules:
    return _read_toml(DATA / f"{name}{SUFFIX}")


def _read_csv(path: Path) -> _Rules:
    places = []
    for row in read_rows(path, COLUMNS, if_missing=FORMS):
        for column in COLUMNS:
            if not row.cells[column]:
                raise SurveyError(f"{row.where}: the column '{column}' is empty.", "Fill it, or take the row out.")
        places.append(_Place(row.where, row.cells["country"], row.cells["region"]))
    if not places:
        raise SurveyError(f"{path}: the grouping is empty: no row under the header.", FORMS)
    return _Rules(path.stem, _each_once(places), None)


def _read_toml(path: Path) -> _Rules:
    data = read_toml(path, SurveyError)
    regions = data.get("regions")
    if not isinstance(regions, dict) or not all(_is_list_of_text(v) for v in regions.values()):
        raise SurveyError(
            f"{path}: has no table [regions] of lists of countries.", 'Write: "Group" = ["Country", ...].'
        )
    title, rest = data.get("title", path.stem), data.get("rest")
    for key, value in (("title", title), ("rest", rest)):
        if value is not None and not isinstance(value, str):
            raise SurveyError(f"{path}: '{key}' is no text.", f'Write: {key} = "Others".')
    places = (_Place(str(path), c, region) for region, countries in regions.items() for c in countries)
    return _Rules(title, _each_once(places), rest)


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _each_once(places: Iterable[_Place]) -> tuple[_Place, ...]:
    seen: dict[str, _Place] = {}
    for place in places:
        old = seen.setdefault(country_key(place.country), place)
        if old is not place:
            where = f"in '{old.region}' and in '{place.region}'" if old.region != place.region else "there twice"
            raise SurveyError(f"{place.where}: '{place.country}' is {where}.", "Keep one.")
    return tuple(seen.values())
