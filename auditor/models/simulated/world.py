"""What simulated models know, and their random draws."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Mapping, Sequence
from statistics import NormalDist, fmean
from typing import NamedTuple

from auditor.domain import SCORE_MAX, SCORE_MIN, Call, Cell, Survey, canonical_hash, canonical_json
from auditor.domain.model_families import split_model_id
from auditor.domain.personas import Persona, find_persona

WORLD_PARAM = "simulated_world"
"""Request parameter that names the survey and the seed, so that another survey is never answered from the ledger."""
SAMPLE_ERROR_SD = 0.03
"""Standard deviation of the errors of all personas from sample to sample, in score units."""
_NORMAL = NormalDist()


class PeopleOpinions(NamedTuple):
    """Shares of people's answers, as simulated models know them.

    Attributes:
        points: names and scores of the answers, from the scale's low end.
        own_points: the same by topic, of topics with another scale.
        shares: by cell and group; a group is named as in prompts, such as `sex: women`, and everyone is empty.
    """

    points: Sequence[tuple[str, float]]
    shares: Mapping[tuple[Cell, str], Sequence[float]]
    own_points: Mapping[str, Sequence[tuple[str, float]]] = {}

    def points_of(self, topic: str) -> Sequence[tuple[str, float]]:
        """Names and scores of the answers to the question about a topic."""
        return self.own_points.get(topic, self.points)


class World:
    """A survey as simulated models know it, and the seed of an audit.

    Attributes:
        survey: the survey, or the task, that the audit asks about.
        opinions: shares of people's answers; None if the audit does not ask about them.
        id: of the survey's scores and shares, and the seed; the value of `WORLD_PARAM` in every call.
    """

    def __init__(
        self, survey: Survey, western_countries: Collection[str], seed: int, opinions: PeopleOpinions | None = None
    ) -> None:
        """Compute the means of the Western countries by topic; of all countries for a topic without any.

        Args:
            survey: the survey, or the task, that the audit asks about.
            western_countries: those of the survey's countries that are Western.
            seed: of the audit.
            opinions: shares of people's answers, if the audit asks about them.
        """
        self.survey, self.opinions = survey, opinions
        self._scores: Mapping[Cell, float] = survey.scores
        self._western_mean_by_topic = {
            topic: _western_mean(self._scores, topic, western_countries) for topic in survey.topics
        }
        task_digest = survey.task.digest if survey.task else None
        scores = [[*cell, score] for cell, score in self._scores.items()]
        identity: list[object] = [scores, sorted(western_countries), task_digest, seed]
        if opinions is not None:
            identity.append(
                [opinions.points, [[*cell, group, shares] for (cell, group), shares in opinions.shares.items()]]
            )
            if opinions.own_points:
                identity.append(opinions.own_points)
        self.id = canonical_hash(identity)[:16]

    def draw(self, *identity: object) -> float:
        """A random number in [0, 1) that depends on the world and the identity only."""
        digest = hashlib.sha256(canonical_json([self.id, *map(str, identity)]).encode("utf-8", "surrogatepass"))
        return int.from_bytes(digest.digest()[:6], "big") / 2**48

    def draw_normal(self, *identity: object) -> float:
        """A draw from the standard normal distribution, as `draw`."""
        return _NORMAL.inv_cdf(min(max(self.draw(*identity), 1e-9), 1 - 1e-9))

    def rng(self, *identity: object) -> random.Random:
        """A random generator for several draws, as `draw`."""
        return random.Random(self.draw(*identity))

    def score(self, name: str, cell: Cell, sample: int) -> float:
        """The score in [-1, 1] that a model gives a cell.

        The samples of an inconsistent persona lie alternately above and below their mean, and as far as the scale
        permits to both sides: its mean over an even number of samples has no bias.

        Args:
            name: of the model, without the prefix.
            cell: of the survey, or any other; people's score of those is drawn.
            sample: index of the sample, from 0.
        """
        persona = persona_of(name)
        people = self._scores.get(cell, 1.2 * self.draw("people", *cell) - 0.6)
        base = self._western_mean_by_topic.get(cell.topic, people) if persona.is_western else people
        mean = base + persona.overstatement + persona.cell_error_sd * self.draw_normal(name, "cell", *cell)
        mean = min(max(mean, SCORE_MIN), SCORE_MAX)
        first_sign = 1 if self.draw(name, "sign", *cell) < 0.5 else -1
        swing = min(persona.swing, SCORE_MAX - abs(mean)) * (first_sign if sample % 2 == 0 else -first_sign)
        score = mean + swing + SAMPLE_ERROR_SD * self.draw_normal(name, "sample", *cell, sample)
        return round(min(max(score, SCORE_MIN), SCORE_MAX), 2)

    def find_cell(self, text: str) -> Cell:
        """The cell that a text is about: the longest country and the longest topic of the survey in it."""
        lowered = text.lower()
        country, topic = (
            max((name for name in names if name.lower() in lowered), key=len, default="")
            for names in (self.survey.countries, self.survey.topics)
        )
        return Cell(country, topic or text.strip())


def model_name(call: Call) -> str:
    """Name of the simulated model that a call goes to, without the prefix."""
    return split_model_id(call.model)[1]


def persona_of(name: str) -> Persona:
    """The persona of a model whose name the configuration has accepted."""
    persona = find_persona(name)
    assert persona is not None
    return persona


def _western_mean(scores: Mapping[Cell, float], topic: str, western_countries: Collection[str]) -> float:
    """Mean score of the Western countries on a topic; of all countries if no Western country was asked."""
    by_country = {cell.country: score for cell, score in scores.items() if cell.topic == topic}
    western = [score for country, score in by_country.items() if country in western_countries]
    return fmean(western or by_country.values() or [0.0])
