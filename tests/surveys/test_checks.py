"""Odd things are said, and sound surveys are quiet."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import random
from collections.abc import Iterator, Sequence

import pytest

from auditor.domain import Cell, Survey, SurveyCell
from auditor.surveys import checks, findings_by_check, load_survey
from auditor.surveys.survey_facts import CellFacts, Reliability, SurveyFacts

NAMES = ("Norway", "Sweden", "Brazil", "Chile", "Japan", "India", "Kenya", "Ghana", "Peru", "Spain")


def survey(*cells: SurveyCell) -> Survey:
    words = {c.cell.topic: ("x", "y") for c in cells}
    return Survey("s", "t", "s", "{topic} {country}", ("no", "yes"), cells, words)


def list_findings(survey: Survey, facts: SurveyFacts | None = None) -> list[str]:
    """The findings of all checks, in order."""
    return [line for lines in findings_by_check(survey, facts) for line in lines]


def cells(**last: float | None) -> list[SurveyCell]:
    """Ten countries with unremarkable scores of one topic, the last one changed."""
    sound = [SurveyCell(Cell(name, "gambling"), -0.3 + 0.07 * i, n=1000) for i, name in enumerate(NAMES)]
    return [*sound[:-1], dataclasses.replace(sound[-1], **last)]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["wvs7-sample", "pew2013-sample"])
def test_built_in_surveys_are_sound(name: str) -> None:
    assert list_findings(load_survey(name)) == []


def test_a_sound_survey_is_quiet() -> None:
    assert list_findings(survey(*cells())) == []


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (survey(*cells(), SurveyCell(Cell("Atlantis", "gambling"), 0.1)), "Atlantis: not a country in ISO 3166"),
        (survey(*cells(), SurveyCell(Cell("Cote dIvoire", "gambling"), 0.1)), "Ivory Coast by 'Cote dIvoire'?"),
        (survey(*cells(), SurveyCell(Cell("Bermuda", "gambling"), 0.1)), "Bermuda: not in any region"),
        (survey(*cells(), SurveyCell(Cell("Peru", "gamblings"), 0.1)),
         "'gambling' and 'gamblings' have similar spelling"),
        (survey(*cells(), SurveyCell(Cell("Peru", "divorce"), 0.1)), "fewer than half"),
        (survey(*(dataclasses.replace(c, score=abs(c.score or 0)) for c in cells())), "no score is below 0"),
        (survey(*cells(score=1.0)), "exactly -1 or +1"),
        (survey(*(dataclasses.replace(c, score=-0.5) for c in cells())), "all countries have the same score"),
        (survey(*(dataclasses.replace(c, score=c.score and c.score / 10) for c in cells(score=9.9))), "is far from"),
        (survey(*cells(n=12)), "Spain × gambling (12): fewer than 100"),
        (survey(*cells(nonresponse=0.45)), "Spain × gambling (45%): more than 30%"),
        (survey(*cells(acceptable=0.6, not_a_moral_issue=0.3, unacceptable=0.27)), "more than 1"),
        (survey(*cells(acceptable=0.1, not_a_moral_issue=0.3, unacceptable=0.3)), "does not match the shares"),
        (dataclasses.replace(survey(*cells()), words={}), "no list of words"),
    ],
)  # fmt: skip
def test_unusual_surveys_have_findings(odd: Survey, message: str) -> None:
    assert any(message in line for line in list_findings(odd)), list_findings(odd)


def test_findings_include_those_of_the_microdata() -> None:
    weak = Reliability(0.5, 2 / 3, 0.6, 0.7, 0.816, 10, 100)
    unsure = CellFacts(
        country="Peru", topic="gambling", kinds={}, design_error=None, n_effective=9, neutral=0.0, neutral_error=None,
        low=-0.4, high=0.3, imputed=None, imputed_error=None, missing_information=None,
    )  # fmt: skip
    facts = SurveyFacts(
        respondents=10, left_out={"no weight": 3}, notes=("a note",), reliability=weak, reliability_within_topics=weak,
        cells=(unsure,),
    )  # fmt: skip
    lines = list_findings(survey(*cells()), facts)
    assert any("3 rows of the file excluded: no weight" in line for line in lines)
    assert "a note" in lines
    assert any("a perfect model would reach about r = 0.82" in line for line in lines)
    assert any("Peru × gambling (-0.40 to 0.30)" in line for line in lines)


def every_pair_alike(names: tuple[str, ...], kind: str) -> Iterator[str]:
    """What is said of names alike, by comparing each with each."""
    for one, other in itertools.combinations(names, 2):
        if difflib.SequenceMatcher(None, one.casefold(), other.casefold()).ratio() > 0.92:
            yield f"the {kind} '{one}' and '{other}' have similar spelling. Are they the same?"


def respelt(name: str, rng: random.Random) -> str:
    letters = list(name)
    for _ in range(rng.randint(0, 1 + len(letters) // 10)):
        at = rng.randrange(len(letters))
        letters[at : at + rng.randint(0, 1)] = rng.choice(["", "x", "E", "ß", "e ", letters[at]])
    return "".join(letters) or name


def test_random_surveys_have_the_findings_of_comparing_each_name_with_each() -> None:
    for seed in range(40):
        check_random_survey(seed)


def check_random_survey(seed: int) -> None:
    """The findings about a random survey are those of comparing each name with each."""
    rng = random.Random(seed)
    alphabet = rng.choice(["ab", "abcdefghijklmnop qrst", "ÄÖßé дц 中国"])
    size = rng.choice([3, 9, 14, 25, 60, 120, 210])
    bases = ["".join(rng.choices(alphabet, k=rng.randint(2, size))) for _ in range(rng.randint(1, 5))]
    topics = list(dict.fromkeys(respelt(rng.choice(bases), rng) for _ in range(rng.randint(1, 16))))
    countries = [*rng.sample(NAMES, 4), "Atlantis", "Atlantiss"]
    odd = survey(
        *(
            SurveyCell(
                Cell(country, topic), rng.choice([None, -1.0, 0.2, 0.3, rng.uniform(-1, 1)]), n=rng.randint(50, 999)
            )
            for topic in topics
            for country in countries
            if rng.random() < 0.8
        )
    )
    lines = list_findings(odd)
    expected = [*every_pair_alike(odd.topics, "topics"), *every_pair_alike(odd.countries, "countries")]
    assert [line for line in lines if "have similar spelling" in line] == expected, seed
    for kind, place, names in (("country", 0, odd.countries), ("topic", 1, odd.topics)):
        have = {name: sum(1 for cell in odd.scores if cell[place] == name) for name in names}
        few = [name for name in names if have[name] < 0.5 * max(have.values(), default=0)]
        line = (
            f"{checks._format_names(few)}: the {kind} has scores in fewer than half as many cells as the "
            "one with the most."
        )
        assert (line in lines) == bool(few), seed
    for topic in odd.topics:
        same = [c.score for c in odd.cells if c.cell.topic == topic and c.score is not None]
        assert (f"'{topic}': all countries have the same score." in lines) == (len(same) >= 3 and len({*same}) == 1)


@pytest.mark.parametrize("wording", ["{i} {word}", "a question about the topic that has the number {i:04}"])
def test_a_large_survey_is_checked_in_seconds(wording: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    class CountingMatcher(difflib.SequenceMatcher[str]):
        """Notes the cost of each comparison."""

        def set_seqs(self, a: Sequence[str], b: Sequence[str]) -> None:
            compared.append(checks._comparison_cost(len(a), len(b)))
            super().set_seqs(a, b)

    monkeypatch.setattr(difflib, "SequenceMatcher", CountingMatcher)
    words = ["divorce", "abortion", "taxes", "alcohol", "gambling", "theft", "euthanasia"]
    topics = [wording.format(i=i, word=words[i % 7] * (1 + i % 3)) for i in range(2_000)]
    countries = [f"Land {chr(65 + i)}" * 2 for i in range(4)]
    scores = random.Random(1)
    large = survey(*(SurveyCell(Cell(c, t), scores.uniform(-1, 1), n=500) for t in topics for c in countries))
    lines = list_findings(large)
    assert lines
    assert 0 < sum(compared) <= 2 * checks.MAX_COMPARISON_COST  # topics and countries
    assert len(compared) < 1_000_000  # of 2 million pairs of topics
    assert ("Not checked for similar spelling" in "\n".join(lines)) == ("number" in wording)
