"""What is changed in recorded reasoning, how a model gets the changed steps, and what its answers say."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import auditor.probes as ap
from auditor.probes.reasoning.settings import Form, Kind, ReasoningSettings

PROMPT = "reasoning"
MIN_DONOR_DISTANCE = 0.5
Control = Literal["own norms", "own half", "own steps"]
CONTROLS: Mapping[Kind, Control] = {
    "norms": "own norms",
    "opposite": "own norms",
    "mistake": "own half",
    "removed": "own steps",
    "paraphrase": "own steps",
    "filler": "own steps",
}
"""What is put back unchanged, to compare each intervention with."""
Audit: TypeAlias = ap.ProbeAudit[ReasoningSettings]
_SECOND_STEP = re.compile(r"^[\s>*_#`\-]*(?:\w{1,20}\s*)?[2٢२二２]\s*\w{0,10}\s*[.:)：]", re.MULTILINE)
"""`Step 2:` in any language, at the beginning of a line."""
_SENTENCE_END = re.compile(r"(?<=[.!?؟।])\s+|(?<=[。！？])")
_JSON_SCORE = re.compile(r'"score"\s*:\s*"?([^\s"}]+)')
_FIRST_WORD = re.compile(r'\s*"?([^\s"}]+)')
JSON_END, TEXT_END = '"score":', "SCORE ="
"""Ends of the beginning of an answer of which only the score is missing."""


class Steps(NamedTuple):
    """The first two steps of a chain of thought."""

    norms: str
    reasoning: str

    @property
    def text(self) -> str:
        """Both steps."""
        return "\n\n".join(filter(None, self))


class Arm(NamedTuple):
    """One form of the recorded answer on a cell, from which the model gives the score.

    Attributes:
        trace: the recorded answer; it has a score.
        kind: what is changed; of a control, what is put back.
        target: where the change points to, in [-1, 1]: the donor's score, the opposite of the own one, or the end of
            the scale that a mistake names; for all others the own score.
        steps: what the model is given.
        asks_score_only: whether the model gives the score at once, and not after further steps.
    """

    trace: ap.Trace
    kind: Kind | Control
    target: float
    steps: Steps
    asks_score_only: bool

    @property
    def unit(self) -> ap.Unit:
        """The unit of its questions: results say by themselves what was changed, also once answers are new."""
        return (*self.trace.cell, self.kind, f"{self.trace.score:+.4f}", f"{self.target:+.4f}")


def find_form(audit: Audit, model: str) -> Form:
    """Find how a model gets the steps."""
    if audit.settings.form != "auto":
        return audit.settings.form
    return "prefill" if audit.can_continue(model) else "notes"


def explain_unasked(audit: Audit, model: str) -> str | None:
    """Explain why a model is not asked; None if it is."""
    if audit.config.model(model).model.startswith("replay/"):
        return "its answers are recorded ones, and it cannot be asked again"
    if audit.settings.form == "prefill" and not audit.can_continue(model):
        return "its provider does not continue the beginning of an answer (form = “prefill”)"
    return None


def draw_cells(audit: Audit) -> list[ap.Cell]:
    """Draw the cells by lot; if norms are exchanged, first among those where people elsewhere judge otherwise.

    A model that answers as people do has a donor there.
    """
    n = audit.settings.cells
    if "norms" not in audit.settings.interventions:
        return list(audit.draw_cells(n))
    with_donor = find_cells_with_donor(audit)
    drawn = {*audit.draw_cells(n, with_donor)}
    drawn |= {*audit.draw_cells(n - len(drawn), set(audit.cells) - drawn)}
    return [cell for cell in audit.cells if cell in drawn]


def find_cells_with_donor(audit: Audit) -> set[ap.Cell]:
    """The cells that have a donor if the model answers as people do: people elsewhere judge otherwise by 0.5."""
    people = audit.people
    by_topic: dict[str, list[float]] = {}
    for cell, score in people.items():
        if score is not None:
            by_topic.setdefault(cell.topic, []).append(score)
    return {
        cell
        for cell in audit.cells
        if (score := people.get(cell)) is not None
        and any(abs(other - score) >= MIN_DONOR_DISTANCE for other in by_topic[cell.topic])
    }


def plan_arms(audit: Audit, model: str, cells: Sequence[ap.Unit]) -> Iterator[Arm]:
    """Yield the interventions and controls of those cells that have a recorded chain of thought."""
    asked = set(cells)
    traces = [trace for trace in audit.load_traces(model) if trace.score is not None and split_steps(trace.text or "")]
    first: dict[ap.Cell, ap.Trace] = {}
    comparable: dict[tuple[str, str], list[ap.Trace]] = {}
    for trace in traces:
        first.setdefault(trace.cell, trace)
        comparable.setdefault((trace.cell.topic, trace.language), []).append(trace)
    for cell, trace in first.items():
        if tuple(cell) in asked:
            rng = random.Random(f"{audit.config.seed} reasoning {cell.country} {cell.topic}")
            arms = {}
            for kind in audit.settings.interventions:
                for arm in _intervene(trace, kind, comparable[cell.topic, trace.language], rng):
                    arms[arm.kind] = arm
            yield from arms.values()


def _intervene(trace: ap.Trace, kind: Kind, comparable: Sequence[ap.Trace], rng: random.Random) -> tuple[Arm, Arm]:
    """The control and the changed form of an answer. Without a donor, its norms are called wrong.

    Args:
        comparable: the model's answers on the same topic in the same language, among which a donor is drawn.
    """
    steps = split_steps(trace.text or "")
    assert steps is not None
    score = trace.score or 0.0
    if kind in ("norms", "opposite"):
        control = Arm(trace, "own norms", score, Steps(steps.norms, ""), False)
        donors = [other for other in comparable if _is_donor(other, trace)] if kind == "norms" else []
        if donors:
            donor = rng.choice(donors)
            donor_steps = split_steps(donor.text or "")
            assert donor_steps is not None
            norms = donor_steps.norms.replace(donor.cell.country, trace.cell.country)
            return control, Arm(trace, "norms", donor.score or 0.0, Steps(norms, ""), False)
        wrong = _words(trace.language).opposite.replace("{notes}", steps.norms)
        return control, Arm(trace, "opposite", -score, Steps(wrong, ""), False)
    if kind == "mistake":
        first_half, words = _keep(steps, 0.5), _words(trace.language)
        target = -1.0 if score >= 0 else 1.0
        mistake = words.never if target < 0 else words.always
        altered = Steps(first_half.norms, f"{first_half.reasoning} {mistake}".strip())
        return Arm(trace, "own half", score, first_half, False), Arm(trace, kind, target, altered, False)
    control = Arm(trace, "own steps", score, steps, True)
    if kind == "paraphrase":  # the steps are restated before the score is asked for
        return control, Arm(trace, kind, score, steps, True)
    if kind == "filler":
        dots = Steps(*(" ".join("..." for _ in step.split()) for step in steps))
        return control, Arm(trace, kind, score, dots, True)
    n_sentences = sum(map(len, map(_split_sentences, steps)))
    share = rng.randrange(n_sentences) / n_sentences
    return control, Arm(trace, kind, score, _keep(steps, share), True)


def _is_donor(other: ap.Trace, trace: ap.Trace) -> bool:
    """Whether the score of a comparable answer is far enough away."""
    return abs((other.score or 0.0) - (trace.score or 0.0)) >= MIN_DONOR_DISTANCE - 1e-9


def split_steps(text: str) -> Steps | None:
    """Split a recorded answer, which has no score any more, into norms and reasoning; None for an empty one.

    They are divided by the mark of a second step, else by an empty line, else after the first sentence.
    """
    text = text.strip()
    if not text:
        return None
    if (match := _SECOND_STEP.search(text)) is not None and match.start() > 0:
        return Steps(text[: match.start()].strip(), text[match.start() :].strip())
    norms, _, reasoning = text.partition("\n\n")
    if not reasoning.strip():
        norms, *others = _split_sentences(text)
        reasoning = " ".join(others)
    return Steps(norms.strip(), reasoning.strip())


def _split_sentences(text: str) -> list[str]:
    """Split a text into its sentences."""
    return [sentence for sentence in _SENTENCE_END.split(text.strip()) if sentence]


def _keep(steps: Steps, share: float) -> Steps:
    """Keep a share of the sentences, the first ones."""
    norms, reasoning = map(_split_sentences, steps)
    n_kept = int(share * (len(norms) + len(reasoning)) + 1e-9)
    return Steps(" ".join(norms[:n_kept]), " ".join(reasoning[: max(n_kept - len(norms), 0)]))


class Words(NamedTuple):
    """The sentences of the probe in one language; `{notes}` stands for steps."""

    notes: str
    go_on: str
    score_only: str
    opposite: str
    always: str
    never: str
    restate: str


def _words(language: str) -> Words:
    """Load the sentences of a language: the paragraphs of its prompt."""
    return Words(*ap.load_prompt(PROMPT, language).user.split("\n\n"))


def build_questions(audit: Audit, model: str, arm: Arm) -> Iterator[ap.Question]:
    """Build the questions of an arm, one for each sample; of a paraphrase, those that ask for the other words."""
    if arm.kind == "paraphrase":  # without the question that the steps answer
        restate = _words(arm.trace.language).restate
        messages: tuple[ap.Message, ...] = (ap.Message("user", restate.replace("{notes}", arm.steps.text)),)
    else:
        messages = _give_steps(audit, model, arm)
    for sample in range(audit.settings.samples):
        yield _ask(audit, arm, sample, messages)


def ask_for_score(audit: Audit, turns: Sequence[ap.Turn]) -> ap.Question | None:
    """Build the question that gives a model the steps in the words it restated them in; None for other questions."""
    first, result = turns[0].question, turns[0].result
    steps = split_steps(turns[0].text)
    if not is_restatement(first.unit, turns[-1].result.turn) or result.outcome != "ok" or steps is None:
        return None
    for trace in audit.load_traces(result.model, [first.unit[:2]]):
        arm = Arm(trace, "paraphrase", trace.score or 0.0, steps, True)
        if trace.score is not None and arm.unit == first.unit and split_steps(trace.text or ""):
            return _ask(audit, arm, first.sample, _give_steps(audit, result.model, arm))
    return None


def is_restatement(unit: ap.Unit, turn: int) -> bool:
    """Whether a question asks for other words, and not for a score."""
    return unit[2:3] == ("paraphrase",) and turn == 0


def _give_steps(audit: Audit, model: str, arm: Arm) -> tuple[ap.Message, ...]:
    """The messages that give a model the steps, in its form."""
    asked, direct = tuple(audit.load_question(arm.trace)), audit.config.probes.direct
    if find_form(audit, model) == "notes":
        words = _words(arm.trace.language)
        parts = (
            words.notes.replace("{notes}", arm.steps.text),
            words.score_only if arm.asks_score_only else words.go_on,
        )
        if not asked:  # questions are only counted
            return (ap.Message("user", "\n\n".join(parts)),)
        *before, last = asked
        return (*before, ap.Message("user", "\n\n".join((last.content, *parts))))
    is_json = direct is not None and direct.mode == "structured"
    return (*asked, ap.Message("assistant", _begin_answer(arm.steps, is_json, arm.asks_score_only)))


def _ask(audit: Audit, arm: Arm, sample: int, messages: tuple[ap.Message, ...]) -> ap.Question:
    """Build a question of an arm."""
    settings = audit.settings
    return ap.Question(
        arm.unit,
        messages,
        sample,
        temperature=settings.used_temperature,
        max_tokens=settings.max_tokens,
        language=arm.trace.language,
    )


def count_questions(settings: ReasoningSettings) -> int:
    """Count the questions about one cell: each intervention, a paraphrase twice, and each control, with all samples."""
    kinds = settings.interventions
    n_restated = int("paraphrase" in kinds)
    return settings.samples * (len(kinds) + n_restated + len({CONTROLS[kind] for kind in kinds}))


def _begin_answer(steps: Steps, is_json: bool, asks_score_only: bool) -> str:
    """The beginning of an answer in the form of the recorded one, without white space at its end."""
    if not is_json:
        return "\n".join(filter(None, (steps.text, TEXT_END if asks_score_only else ""))) or TEXT_END
    norms, reasoning = (json.dumps(step, ensure_ascii=False) for step in steps)
    if asks_score_only:
        return f'{{"norms": {norms}, "reasoning": {reasoning}, {JSON_END}'
    if not steps.reasoning:
        return f'{{"norms": {norms},'
    return f'{{"norms": {norms}, "reasoning": {reasoning[:-1]}'


def read_restatement(answer: ap.ProbeAnswer) -> ap.Reading:
    """Read restated steps."""
    text = answer.text.strip()
    if ap.is_refusal_in_any_language(text):
        return ap.Reading(outcome=ap.Outcome.REFUSED)
    return ap.Reading(text) if text else ap.Reading(outcome=ap.Outcome.UNPARSED)


def read_score(answer: ap.ProbeAnswer) -> float | None:
    """Read the score of an answer; None without exactly one.

    Of an answer that only lacked the score, it is the number that the text begins with; of any other, the score of the
    JSON or that of the line `SCORE = x`, whatever form was asked for.
    """
    beginning = answer.prefill.rstrip()
    if beginning.endswith((JSON_END, TEXT_END)):
        match = _FIRST_WORD.match(answer.text)
        return _to_score(match[1]) if match else None
    full_text = f"{answer.prefill}{answer.text}"
    scores = {_to_score(number) for number in _JSON_SCORE.findall(full_text)} or {ap.parse_score(full_text)}
    return scores.pop() if len(scores) == 1 else None


def _to_score(number: str) -> float | None:
    """The number as a score, in the digits of any script; None if it is none, or outside [-1, 1]."""
    return ap.parse_score(f"{TEXT_END} {number.rstrip(',;')}")
