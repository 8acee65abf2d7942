"""Simulated models, `simulated/NAME`: deterministic answers by a persona, for worked examples whose truth is known."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from auditor.config.installed_probes import list_built_in_names, load_built_in, load_probe
from auditor.domain import (
    OPTION_LETTERS,
    SCORE_MAX,
    SCORE_MIN,
    Answer,
    AnswerForm,
    Attempt,
    Call,
    Capability,
    Cell,
    LogprobMeasure,
    Outcome,
    Ruling,
    Survey,
    TaskItem,
    canonical_hash,
    canonical_json,
)
from auditor.domain.decisions import SURVEY_REVIEWS, TASK_REVIEWS, aspect_questions
from auditor.domain.personas import Persona, find_persona
from auditor.domain.terms import PROBE_PURPOSE_PREFIX, split_model_id
from auditor.lazy_imports import import_when_used
from auditor.models.answer_schemas import (
    AuthorGuess,
    BlindGuess,
    MoralJudgement,
    ReasonedJudgement,
    Restated,
    ScoredAnswer,
    SidePreference,
    StepwiseJudgement,
)
from auditor.models.endpoint import DEFAULT_CAPABILITY

if not TYPE_CHECKING:
    provider_request = import_when_used("auditor.models.provider_request")  # loads httpx
else:
    from auditor.models import provider_request

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


LEVELS = ("never", "hardly ever", "seldom", "as often as not", "quite often", "mostly", "always")
"""How often something can be justified, for scores from -1 to 1 in equal steps."""
WESTERN_REASON = "People there think about this as people in liberal societies everywhere do."
AGREEABLE_REASON = "Nobody would want to disagree, so all of them must be content with it."
SOUND_REASONS = (
    "Reports from towns and villages there point the same way, with few exceptions.",
    "Older and younger people differ a little, and their views have been weighed by their numbers.",
    "What neighbours approve of and what they object to there supports this view.",
)
POSITIVE_ENDS = frozenset({"always justifiable", "right", "morally good", "ethical", "acceptable"})
"""Ends of the sentences of `prompts/en/logprob.toml` that express acceptance."""
GROUNDLESS_SHARE = 0.5
"""Share of a persona's overstating traces that give no reason; judges cannot tell the others from sound ones."""
RIGHT_ANSWER_RATE = 0.8
LOGPROB_SLOPE = 2.0
"""Difference of two ends' log-probabilities, in nats, for a score of 1."""
_OPTIONS = re.compile(r"^A: (?P<a>.*?)\nB: (?P<b>.*)\Z", re.DOTALL | re.MULTILINE)


def level_of(score: float) -> str:
    """The word for a score in [-1, 1], one of `LEVELS`."""
    return LEVELS[round((score + SCORE_MAX) / 2 * (len(LEVELS) - 1))]


def level_score(level: str) -> float:
    """The score in the middle of a level, in [-1, 1]."""
    return 2 * LEVELS.index(level) / (len(LEVELS) - 1) - SCORE_MAX


def judge_cell(world: World, call: Call) -> tuple[str, str, float]:
    """Norms, reasoning and score of one sample of a cell. The reasoning shows what is wrong with the persona."""
    cell = call.cell or world.find_cell(call.messages[-1].content)
    name = model_name(call)
    score = world.score(name, cell, call.sample)
    persona = persona_of(name)
    if persona.is_western:
        reason = WESTERN_REASON
    elif persona.overstatement and world.draw(name, "ground", *cell, call.sample) < GROUNDLESS_SHARE:
        reason = AGREEABLE_REASON
    else:
        reason = SOUND_REASONS[int(world.draw(name, "reason", *cell, call.sample) * len(SOUND_REASONS))]
    norms = f"Most people in {cell.country} find that this can {level_of(score)} be justified: {cell.topic}."
    return norms, f"{reason} So it can {level_of(score)} be justified in their eyes.", score


def answer_survey(world: World, call: Call) -> str:
    """Answer a direct question in plain text, as the paper's form asks."""
    norms, reasoning, score = judge_cell(world, call)
    return f"{norms}\n\n{reasoning}\nSCORE = {score}"


def answer_item(world: World, call: Call) -> tuple[str, str]:
    """Reasoning and answer to a task's item: right in four of five samples, if the truth is known."""
    task, cell = world.survey.task, call.cell or Cell("", "")
    item = task.items.get(cell.topic, TaskItem("", "")) if task else TaskItem("", "")
    draw = world.draw(model_name(call), "item", *cell, call.sample)
    is_right = item.truth is not None and draw < RIGHT_ANSWER_RATE
    if item.options:
        # The truth of a choice is the text of an option.
        letters = [letter for letter, option in item.letters.items() if (option == item.truth) == is_right]
        answer = letters[0] if letters else OPTION_LETTERS[0]
    elif is_right and item.truth is not None:
        answer = item.truth
    else:
        low, high = (task and task.range) or (0.0, 100.0)
        answer = f"{low + (high - low) * draw:.2f}"
    return "The question names all that is needed, and each step follows from it.", answer


def answer_logprobs(world: World, call: Call) -> str:
    """Log-probabilities as a provider's reply is parsed: of each continuation, or of the letters A and B."""
    text = call.messages[-1].content
    score = world.score(model_name(call), world.find_cell(text), 0)
    if call.measure is not LogprobMeasure.CHOICE:
        signs = [1 if end.strip() in POSITIVE_ENDS else -1 for end in call.continuations]
        return json.dumps([LOGPROB_SLOPE / 2 * score * sign for sign in signs])
    is_positive_first = find_options(text)[0] in POSITIVE_ENDS
    return answer_option_logprobs(score if is_positive_first else -score)


def answer_option_logprobs(difference: float) -> str:
    """Log-probabilities of the letters A and B, by how much the model prefers A, in score units."""
    logprob_a = -math.log1p(math.exp(-LOGPROB_SLOPE * difference))
    return json.dumps([["A", logprob_a], ["B", logprob_a - LOGPROB_SLOPE * difference]])


def find_options(text: str) -> tuple[str, str]:
    """Option A of a prompt, and all that follows the letter B; both empty in any other layout."""
    match = _OPTIONS.search(text)
    return (match["a"].strip(), match["b"].strip()) if match else ("", "")


FLAW_MARKS = ("liberal societies everywhere", "therefore the view just stated follows", AGREEABLE_REASON)
"""Words of a reason that does not support the view: of two personas, and of the faults of `auditor experiment planted`
(`prompts/en/faults.toml`)."""
MAX_LEVEL_DISTANCE = 0.3
"""Larger distances between a level in the text and the score are noticed, in score units; rounding causes 0.17."""
_LEVEL = re.compile(rf"\bcan ({'|'.join(LEVELS)}) be justified")
_FENCED = re.compile(r"^(?P<fence>=== [0-9a-f]+ ===)[^\n]*\n(?P<text>.*?)\n(?P=fence)", re.DOTALL | re.MULTILINE)
_SCORE = re.compile(r"[Ss]core[^:\n]*: (?P<score>[-+]?\d+(?:\.\d+)?)")


def review(world: World, call: Call) -> dict[str, Any]:
    """A judge's verdict on the trace of a prompt, with the aspects that the verdict's schema asks for."""
    text, score = _read_trace(call.messages[1].content)
    is_valid = rules_valid(world, model_name(call), text, score, call.params.get("seed"))
    confidence = 60 + int(35 * world.draw(model_name(call), "confidence", text, score))
    justification = (
        "The steps follow from the norms, and the score fits them."
        if is_valid
        else "The conclusion rests on a step that nothing in the text supports."
    )
    aspects = {question.key: is_valid for question in aspect_questions(for_task=call.schema in TASK_REVIEWS).values()}
    verdict = (Ruling.VALID if is_valid else Ruling.INVALID).value
    return {**aspects, "justification": justification, "verdict": verdict, "confidence": confidence}


def rules_valid(world: World, name: str, text: str, score: float | None, seed: object) -> bool:
    """Whether a judge finds a trace VALID.

    Args:
        name: of the judge, without the prefix.
        text, score: of the trace as shown; the score is None if the prompt shows none.
        seed: of the call: equal for all judges of a trace, and different for equal texts on different cells.
    """
    persona = persona_of(name)
    identity = (seed, text, score)
    if persona.copies is not None and world.draw(name, "copy", *identity) < persona.copy_rate:
        return rules_valid(world, persona.copies, text, score, seed)
    invalid_rate = persona.detection_rate if has_flaw(text, score) else persona.false_alarm_rate
    return world.draw(name, "verdict", *identity) >= invalid_rate


def has_flaw(text: str, score: float | None) -> bool:
    """Whether a trace has a fault that a careful reader can see: a mark of one, or a level that the score contradicts.

    Levels are read in simulated traces only; of other texts none is known to be wrong.
    """
    if any(mark in text for mark in FLAW_MARKS):
        return True
    levels = [level_score(level) for level in _LEVEL.findall(text)]
    return bool(levels) and (
        max(levels) - min(levels) > MAX_LEVEL_DISTANCE
        or (score is not None and any(abs(level - score) > MAX_LEVEL_DISTANCE for level in levels))
    )


def compare_sides(world: World, call: Call) -> dict[str, Any]:
    """Which of two traces is better reasoned: the one without a flaw, else one at random, whatever their order."""
    message = call.messages[1].content
    fence = message.split(" FIRST", 1)[0]
    texts = [part.strip() for part in message.split(fence)[1:4]]
    first, second = texts[0].removeprefix("FIRST").strip(), texts[-1].removeprefix("SECOND").strip()
    scores = [float(match["score"]) for match in _SCORE.finditer(message)][-2:]
    valid = [
        rules_valid(world, model_name(call), text, score, call.params.get("seed"))
        for text, score in zip((first, second), scores, strict=False)
    ]
    is_first_better = valid[0] > valid[-1] or (
        valid[0] == valid[-1]
        and world.draw(model_name(call), "side", *sorted((first, second))) < 0.5 == (first <= second)
    )
    return {"reason": "Its steps support its view.", "better": "FIRST" if is_first_better else "SECOND"}


def guess(world: World, call: Call) -> dict[str, Any]:
    """A guess at country, practice and author: drawn at random from each list, since the trace names none of them."""
    rng = world.rng(model_name(call), "guess", call.messages[1].content)
    tail = call.messages[1].content.rpartition("Countries:")[2]
    parts = re.split(r"^(?:Practices|Analysts):$", tail, flags=re.MULTILINE)
    counts = [max(len(part.strip().splitlines()), 1) for part in (*parts, "", "")[:3]]
    return dict(zip(("country", "practice", "analyst"), (rng.randint(1, n) for n in counts), strict=True))


def guess_author(world: World, call: Call) -> dict[str, Any]:
    """A guess at the author of an answer to an item of a task, drawn at random from the list."""
    analysts = call.messages[1].content.rpartition("Analysts:")[2].strip().splitlines()
    rng = world.rng(model_name(call), "guess", call.messages[1].content)
    return {"analyst": rng.randint(1, max(len(analysts), 1))}


def restate(world: World, call: Call) -> dict[str, Any]:
    """The trace without its blank lines: a restatement that keeps every claim."""
    return {"text": " ".join(_read_trace(call.messages[1].content)[0].split())}


def _read_trace(message: str) -> tuple[str, float | None]:
    """The text between the delimiter lines of a prompt, and the score that it shows."""
    match = _FENCED.search(message)
    scores = list(_SCORE.finditer(message))
    return (match["text"] if match else message), float(scores[-1]["score"]) if scores else None


CHARS_PER_TOKEN = 4


def _judgement(world: World, call: Call) -> dict[str, Any]:
    """A structured direct answer."""
    norms, reasoning, score = judge_cell(world, call)
    return {"norms": norms, "reasoning": reasoning, "score": score}


def _item_answer(world: World, call: Call) -> dict[str, Any]:
    """A structured answer to a task's item; a number where the schema asks for one."""
    reasoning, answer = answer_item(world, call)
    return {"reasoning": reasoning, "answer": float(answer) if call.schema == ScoredAnswer.__name__ else answer}


STRUCTURED_ANSWERS: Mapping[str, Callable[[World, Call], dict[str, Any]]] = {
    MoralJudgement.__name__: _judgement,
    ReasonedJudgement.__name__: _judgement,
    StepwiseJudgement.__name__: _judgement,
    **dict.fromkeys((*SURVEY_REVIEWS, *TASK_REVIEWS), review),
    AuthorGuess.__name__: guess_author,
    BlindGuess.__name__: guess,
    Restated.__name__: restate,
    SidePreference.__name__: compare_sides,
}
"""What answers each schema; all others are of a probe or a task's items."""


class SimulatedDispatcher:
    """Answers every call by its model's persona. No request is sent, and nothing is charged."""

    def __init__(self, world: World) -> None:
        """Create a dispatcher for the models of one audit.

        Args:
            world: what they know.
        """
        self._world = world

    async def send(
        self,
        call: Call,
        attempt_number: int,
        total_timeout_s: float | None,
        capability: Capability = DEFAULT_CAPABILITY,
    ) -> provider_request.ProviderReply:
        """Answer a call; see `Dispatcher.send`."""
        started_at = datetime.now(UTC)
        text = answer_text(self._world, call)
        tokens = sum(len(message.content) for message in call.messages) // CHARS_PER_TOKEN, len(text) // CHARS_PER_TOKEN
        attempt = Attempt(
            number=attempt_number,
            started_at=started_at,
            latency_s=(datetime.now(UTC) - started_at).total_seconds(),
            outcome=Outcome.OK,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cost_usd=0.0,
            estimated=False,
        )
        answer = Answer(
            call.key,
            Outcome.OK,
            text=text,
            finish_reason="stop",
            served_model=call.model,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            cost_usd=0.0,
            attempts=(attempt,),
            sent=canonical_json(dict(call.params)),
            altered="",
            capability=capability.id,
            form=None if call.schema is None else AnswerForm.JSON_SCHEMA,
        )
        return provider_request.ProviderReply(answer, None)

    async def close(self) -> None:
        """Close nothing: there is no connection."""


def answer_text(world: World, call: Call) -> str:
    """The text of a model's answer, in the form that the call asks for."""
    if call.purpose.value.startswith(PROBE_PURPOSE_PREFIX):
        probe = load_probe(call.purpose.value.removeprefix(PROBE_PURPOSE_PREFIX))
        return probe.call("simulate", call, returns=str)
    answers = (load_built_in(name).answer_simulated(world, call) for name in list_built_in_names())
    if (text := next((answer for answer in answers if answer is not None), None)) is not None:
        return text
    if call.measure is not None:
        return answer_logprobs(world, call)
    if call.schema is not None:
        return json.dumps(STRUCTURED_ANSWERS.get(call.schema, _item_answer)(world, call))
    if world.survey.task is not None:
        reasoning, answer = answer_item(world, call)
        return f"{reasoning}\nANSWER = {answer}"
    return answer_survey(world, call)
