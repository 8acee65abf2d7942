"""Worlds of judges and people's labels: sensitivity and specificity differ by language, length and topic.

Traces of four models lie in cells of countries and topics, which make them more or less sound. Three judges say VALID
with a probability that depends on soundness, and linearly on the language, the length and a topic effect of each judge.
People err at random with a known reliability. A sample stratified by model and verdict of the panel is labelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit, ndtr

from benchmarks.coverage.worlds.design import Bools, Design, Floats, Indices
from benchmarks.coverage.worlds.trace_cells import draw_trace_cells

N_MODELS, N_JUDGES, N_LANGUAGES = 4, 3, 3
TRACES_PER_CELL = 8
SOUNDNESS_SDS = (0.3, 0.5, 0.3)
"""Of effects of country, topic and cell; single traces have 1."""
MODEL_SHIFTS = np.array([0.3, 0.1, -0.1, -0.3])
VALID_IF_SOUND, VALID_IF_UNSOUND = 0.86, 0.30
"""Probabilities of VALID, by whether the trace is sound, before the effects below."""
LENGTH_EFFECTS = (0.05, 0.07)
"""Of longer traces on both, and minus as much of shorter ones."""
LANGUAGE_EFFECTS = (np.array([0.0, -0.05, 0.03]), np.array([0.0, 0.08, -0.05]))
TOPIC_EFFECTS = (0.06, 0.10)
"""Largest effect of judge x topic on both."""
JUDGE_SHIFTS = np.array([0.0, -0.02, -0.04])
MAX_LABELS, MIN_STRATUM_LABELS = 240, 10
LABELLED_SHARE = 0.5
"""Largest labelled share of the traces, in small audits."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelSample:
    """One audit with its labels; arrays have shape (traces,) unless said otherwise.

    Attributes:
        units: country and topic of each trace.
        model, language: of each trace, as numbers; length: 1 for longer traces, -1 for shorter.
        verdicts: shape (judges, traces), 1 VALID, 0 INVALID.
        confidence: of the first judge in its verdict.
        labels: share of VALID among the raters of a labelled trace; nan elsewhere.
        strata: model and verdict of the panel, as numbers.
        truths: by figure.
    """

    units: Mapping[str, Indices]
    model: Indices
    language: Indices
    length: Floats
    verdicts: Floats
    confidence: Floats
    labels: Floats
    strata: Indices
    truths: Mapping[str, float] = field(default_factory=dict)

    @property
    def panel(self) -> Floats:
        """Share of VALID among the judges."""
        return np.asarray(self.verdicts.mean(axis=0))


@dataclass(frozen=True, slots=True)
class LabelWorld:
    """A population of audits.

    Attributes:
        level: mean soundness.
        n_raters: raters of the pool; raters_per_trace: those of them, at random, that label a trace.
        reliability: probability that a rater says VALID of a sound trace, and INVALID of another one.
        is_useless: whether the judges toss a coin, VALID in 60%, whatever the trace is.
    """

    name: str
    level: float = 0.4
    n_raters: int = 1
    raters_per_trace: int = 1
    reliability: float = 0.95
    is_useless: bool = False

    def draw(self, design: Design, rng: np.random.Generator) -> LabelSample:
        """Simulate one audit."""
        cells = draw_trace_cells(design, rng, TRACES_PER_CELL)
        country, topic = cells.country[cells.cell], cells.topic[cells.cell]
        n = len(country)
        model = rng.integers(0, N_MODELS, n)
        soundness = self.level + MODEL_SHIFTS[model] + rng.normal(size=n)
        for sd, unit in zip(SOUNDNESS_SDS, (country, topic, cells.cell), strict=True):
            soundness += sd * rng.normal(size=int(unit.max()) + 1)[unit]
        language, length = country % N_LANGUAGES, rng.choice([-1.0, 1.0], n)
        verdicts = _draw_verdicts(soundness > 0, language, length, topic, rng)
        if self.is_useless:
            verdicts = (rng.random(verdicts.shape) < 0.6).astype(np.float64)
        is_sound = np.broadcast_to(soundness > 0, (self.n_raters, n))
        ratings = np.where(rng.random((self.n_raters, n)) < self.reliability, is_sound, ~is_sound).astype(np.float64)
        strata = 2 * model + (verdicts.mean(axis=0) > 0.5)
        labels = self._label(ratings, _draw_items(strata, rng), rng)
        confidence = np.clip(0.75 + 0.12 * rng.normal(size=n), 0.5, 0.99)
        sample = LabelSample(cells.units, model, language, length, verdicts, confidence, labels, strata)
        truths = self._population_truths() | _truths_of_these_traces(sample, ratings.mean(axis=0))
        return replace(sample, truths=truths)

    def _label(self, ratings: Floats, is_sampled: Bools, rng: np.random.Generator) -> Floats:
        """Labels of the sampled traces by some raters each."""
        order = rng.random(ratings.shape).argsort(axis=0)[: self.raters_per_trace]
        means = np.take_along_axis(ratings, order, axis=0).mean(axis=0)
        return np.where(is_sampled, means, np.nan)

    def _population_truths(self) -> dict[str, float]:
        """The truths over other countries and topics; effects of soundness are Gaussian, all others have mean 0."""
        variance = 1 + sum(sd**2 for sd in SOUNDNESS_SDS)
        sound = ndtr((self.level + MODEL_SHIFTS) / variance**0.5)
        labels = self.reliability * sound + (1 - self.reliability) * (1 - sound)
        length = sound.mean() * LENGTH_EFFECTS[0] + (1 - sound.mean()) * LENGTH_EFFECTS[1]
        return {
            "corrected mean over other units": float(labels.mean()),
            "corrected difference over other units": float(labels[0] - labels[1]),
            "error factor": 0.0 if self.is_useless else float(length),
        }


def _draw_verdicts(
    is_sound: Bools, language: Indices, length: Floats, topic: Indices, rng: np.random.Generator
) -> Floats:
    """Verdicts of all judges, shape (judges, traces)."""
    verdicts = np.empty((N_JUDGES, len(is_sound)))
    n_topics = int(topic.max()) + 1
    for judge in range(N_JUDGES):
        probabilities = [
            base
            + LENGTH_EFFECTS[i] * length
            + LANGUAGE_EFFECTS[i][language]
            + TOPIC_EFFECTS[i] * rng.uniform(-1, 1, n_topics)[topic]
            for i, base in enumerate((VALID_IF_SOUND, VALID_IF_UNSOUND))
        ]
        # At most 0.86 + 0.05 + 0.03 + 0.06 = 1, so that nothing is clipped and all effects are linear.
        probability = np.where(is_sound, *probabilities) + JUDGE_SHIFTS[judge]
        verdicts[judge] = rng.random(len(is_sound)) < probability
    return verdicts


def _draw_items(strata: Indices, rng: np.random.Generator) -> Bools:
    """Whether each trace is sampled: in proportion to the strata, but at least ten of each, or all there are."""
    sizes = np.bincount(strata)
    n_labels = min(MAX_LABELS, LABELLED_SHARE * len(strata))
    n_by_stratum = np.minimum(sizes, np.maximum(MIN_STRATUM_LABELS, np.round(n_labels * sizes / len(strata)))).astype(
        int
    )
    is_sampled, order = np.zeros(len(strata), dtype=np.bool_), rng.permutation(len(strata))
    for stratum, n in enumerate(n_by_stratum):
        is_sampled[order[strata[order] == stratum][:n]] = True
    return is_sampled


def _truths_of_these_traces(sample: LabelSample, labels: Floats) -> dict[str, float]:
    """The truths over the traces of this audit, if all raters labelled all traces; labels have shape (traces,)."""
    verdicts, share = sample.verdicts[0], float(labels.mean())
    by_model = [float(labels[sample.model == model].mean()) for model in (0, 1)]
    agreement = 1 - np.abs(verdicts - labels)
    chance = verdicts.mean() * share + (1 - verdicts.mean()) * (1 - share)
    slope, intercept = _fit_confidence(sample.confidence, agreement)
    return {
        "corrected mean of these traces": share,
        "calibrated mean of these traces": share,
        "rogan-gladen share of these traces": share,
        "corrected difference of these traces": by_model[0] - by_model[1],
        "judge sensitivity": float((verdicts * labels).sum() / labels.sum()),
        "judge specificity": float(((1 - verdicts) * (1 - labels)).sum() / (1 - labels).sum()),
        "judge accuracy": float(agreement.mean()),
        "kappa with people": float((agreement.mean() - chance) / (1 - chance)),
        "confidence slope": slope,
        "confidence intercept": intercept,
    }


def _fit_confidence(confidence: Floats, agreement: Floats) -> tuple[float, float]:
    """Slope of agreement on the log-odds of the confidence, and intercept at slope 1, by logistic regression."""
    log_odds = logit(confidence)

    def deviance(linear: Floats) -> float:
        return float(np.logaddexp(0, linear).sum() - agreement @ linear)

    def gradient(linear: Floats) -> Floats:
        return np.asarray(expit(linear) - agreement)

    def loss(b: Floats) -> float:
        return deviance(b[0] * log_odds + b[1])

    def loss_gradient(b: Floats) -> Floats:
        residuals = gradient(b[0] * log_odds + b[1])
        return np.array([residuals @ log_odds, residuals.sum()])

    def loss_at_slope_1(b: Floats) -> float:
        return deviance(log_odds + b[0])

    def gradient_at_slope_1(b: Floats) -> Floats:
        return np.array([gradient(log_odds + b[0]).sum()])

    both = minimize(loss, np.zeros(2), jac=loss_gradient)
    at_slope_1 = minimize(loss_at_slope_1, np.zeros(1), jac=gradient_at_slope_1)
    return float(both.x[0]), float(at_slope_1.x[0])


LABEL_WORLDS = (
    LabelWorld("one rater"),
    LabelWorld("two of five raters", n_raters=5, raters_per_trace=2, reliability=0.85),
    LabelWorld("five raters", n_raters=5, raters_per_trace=5, reliability=0.75),
    LabelWorld("people rarely say INVALID", level=1.8),
    LabelWorld("judges toss a coin", is_useless=True),
)
LABEL_DESIGNS = (Design(10, 8), Design(20, 10), Design(55, 19), Design(20, 10, is_uneven=True))
