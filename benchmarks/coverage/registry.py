"""Which figure of the study each estimate of a report is, by its JSON path.

Estimates that are computed by the same function, over the same kinds of units, share a simulation. In a pattern, `*`
stands for any text. A test fails for a path of the JSON Schema, or of a real report, that is in neither table.
Paths of other documents than the report begin with the name of the document, such as `compare`; `DOCUMENTS` has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from pydantic import BaseModel

from auditor.probes.memory.figures import MemoryFigures
from auditor.probes.pressure.figures import PressureFigures
from auditor.probes.reasoning.figures import ReasoningFigures
from auditor.probes.semantic.figures.experiment_rows import (
    ConsistencyAccuracyRow,
    RuleFollowingRow,
    SemanticTemperatureRow,
)
from auditor.probes.semantic.figures.human_judgements import HumanJudgementReport
from auditor.reports.data.differences.schema import DifferenceReport
from auditor.reports.data.gates.estimates import CheckResult
from auditor.reports.data.panel.judge_tests import HoldoutRow
from auditor.reports.data.report_schema import Report
from auditor.reports.data.robustness import RobustnessReport
from auditor.reports.data.sampling import SamplingExperiment
from auditor.reports.data.task_validity import TaskValidityReport
from benchmarks.coverage.paths import iterate_schema_paths

DOCUMENTS: Mapping[str, type[BaseModel]] = {
    "": Report,
    "compare": DifferenceReport,
    "check": CheckResult,
    "holdout": HoldoutRow,
    "sampling": SamplingExperiment,
    "robustness": RobustnessReport,
    "temperature": SemanticTemperatureRow,
    "rules": RuleFollowingRow,
    "accuracy": ConsistencyAccuracyRow,
    "judgements": HumanJudgementReport,
    "validity": TaskValidityReport,
    ".probes.memory": MemoryFigures,
    ".probes.pressure": PressureFigures,
    ".probes.reasoning": ReasoningFigures,
}
"""What prints estimates: the report, `auditor compare`, `auditor check`, and the rows of experiments."""

PATHS_BY_FIGURE: Mapping[str, tuple[str, ...]] = {
    # Scores compared with people's, over countries and topics.
    "r": (
        "*alignment[].ci_low",
        "*alignment[].pearson_r",
        ".probes.memory.models[].agreement",
        ".probes.memory.models[].agreement_not_recalled",
        ".regions.rows[].ci_low",
        ".requests.form_split[].pearson_r",
        ".baselines[].pearson_r",
        ".distribution.groups[].r",
    ),
    "spearman": ("*alignment[].spearman_ci_low", "*alignment[].spearman_rho"),
    "corrected r": ("*alignment[].corrected_r",),
    "concordance": ("*alignment[].concordance",),
    "concordance difference": (
        ".languages.agreement[].concordance",
        "compare.pairs[].concordance.difference",
        "robustness.levels[].concordance",
    ),
    "mae without sampling error": (".population[].mae",),
    "rmse without sampling error": (".population[].rmse",),
    "r without sampling error": (".population[].pearson_r",),
    "concordance without sampling error": (".population[].concordance",),
    "r corrected for range": (".regions.gaps[].range_corrected.*.corrected_r",),
    "gap in r corrected for range": (".regions.gaps[].range_corrected.gap",),
    "slope on people's scores": (".regions.gaps[].range_corrected.*.slope",),
    "residual sd": (".regions.gaps[].range_corrected.*.residual_sd",),
    "distance of topic correlations": (".structure[].structure.raw",),
    "distance of topic correlations without country means": (".structure[].structure.without_country_means",),
    "within-topic r": (".gain[].within_topics",),
    "mae": (
        "*alignment[].mae_ci_low",
        "*alignment[].mae",
        ".regions.rows[].mae",
        ".requests.form_split[].mae",
        ".baselines[].mae",
    ),
    "rmse": ("*alignment[].rmse_ci_low", "*alignment[].rmse"),
    "bias": ("*alignment[].bias",),
    "mae over designs": ("robustness.averages[].mae", ".designs.averages[].mae"),
    "bias over designs": ("robustness.averages[].bias", ".designs.averages[].bias"),
    "mae of a design": ("robustness.designs[].mae",),
    "bias of a design": ("robustness.designs[].bias",),
    "mae of all levels": ("robustness.levels[].mae",),
    "mae by level": ("robustness.rankings[].change",),
    "bias by level": ("robustness.levels[].bias",),
    "mae gap by level": ("robustness.levels[].mae_gap",),
    "bias gap by level": ("robustness.levels[].bias_gap",),
    "mae of one wording": ("*alignment[].one_wording_mae",),
    "bias of these countries": ("*alignment[].bias_of_these_countries",),
    "bias difference": (".languages.differences[].difference",),
    "r difference": (
        "robustness.levels[].pearson_r",
        ".methods[].difference",
        "compare.pairs[].pearson_r.difference",
        ".languages.agreement[].pearson_r",
    ),
    "mae difference": (
        ".languages.agreement[].mae",
        "compare.non_inferiority[].overall.change",
        "compare.non_inferiority[].regions[].change",
        "compare.pairs[].mae.difference",
        "compare.pairs[].regions[].difference",
        ".baselines[].mae_difference",
    ),
    "largest mae gap": (".regions.gaps[].mae_gap",),
    "bias gap": (".regions.gaps[].bias_gap",),
    "r gap": (".regions.gaps[].r_gap",),
    "third quartile": (".conflicts.third_quartile",),
    # One country over topics, or one topic over countries.
    "mae of a place": (".countries[].mae", ".topics[].mae", ".cultural_findings.rows[].mae"),
    "r of a place": (".countries[].pearson_r_ci_low", ".topics[].pearson_r_ci_low"),
    "mae of all places": (
        ".countries[].mae_simultaneous",
        ".topics[].mae_simultaneous",
        ".shortfalls.rows[].figure",
    ),
    "bias of all places": (".cultural_findings.rows[].bias",),
    "mae of a place relative to the others": (
        ".countries[].mae_ratio",
        ".topics[].mae_ratio",
        ".cultural_findings.rows[].mae_ratio",
    ),
    "bias of a place": (
        ".countries[].bias",
        ".topics[].bias",
        ".task.models[].score.bias",
        ".task.models[].score.spread",
    ),
    "mae difference of a place": ("compare.pairs[].by_country[].difference", "compare.pairs[].by_topic[].difference"),
    # Lost samples.
    "worst-case r": ("*.worst_case.pearson_r",),
    "worst-case mae": ("*.worst_case.mae", "compare.non_inferiority[].*worst_case"),
    "worst-case bias": ("*.worst_case.bias",),
    # Several models.
    "r from the best": (".tiers[].rows[].from_best",),
    # Shares of cases in cells, and means over cells.
    "share": (
        ".refusals.total",
        ".refusals.*[].share",
        ".peer_agreement[].*",
        ".conflicts.settled",
        ".conflicts.within_noise",
        ".conflicts.between_methods[].conflicts",
        ".panel.votes[].differs",
        ".panel.guesses[].hits",
        ".panel.copying.pairs[].agreement",
        ".judge_quality.models[].judges",
        ".judge_quality.ceiling.agreement",
        "compare.settlements[].share",
    ),
    "share of these cells": ("*.cells_ci_low",),
    "cell mean": (
        ".self_consistency[].cosine",
        ".self_consistency[].variance",
        ".self_consistency[].sign_agreement",
        ".self_consistency[].straddling",
        ".distribution.models[].w1",
        ".distribution.models[].collapse",
        ".distribution.models[].order_effect",
        ".distribution.models[].total_variation",
        ".distribution.models[].jensen_shannon",
        ".distribution.groups[].specificity",
        ".distribution.dimensions[].coherence",
        ".panel.judges[].confidence",
        ".conflicts.between_methods[].difference",
        ".probes.memory.models[].ordinary_error",
        ".probes.memory.models[].recall[].hits",
        ".probes.memory.models[].recall[].chance",
        ".probes.memory.models[].made_up",
        ".probes.memory.models[].continued",
        ".probes.pressure.rows[].flips",
        ".probes.pressure.rows[].neutral_flips",
        ".probes.pressure.rows[].turn_of_flip",
        ".probes.pressure.rows[].number_of_flips",
        ".probes.reasoning.rows[].area_over_curve",
        ".probes.reasoning.rows[].paraphrase",
        ".probes.reasoning.rows[].filler",
        ".probes.reasoning.rows[].control_distance",
    ),
    "similarity by chance": (".self_consistency[].chance",),
    "similarity on the same topic": (".self_consistency[].same_topic",),
    "consistency above chance": (".self_consistency[].above_chance",),
    # Verdicts of the panel, over countries and topics.
    "kappa": (".panel.fleiss_kappa", "judgements.kappa", ".semantic.people.kappa"),
    "alpha": (".panel.krippendorff_alpha", "judgements.alpha", ".semantic.people.alpha"),
    "ac1": (".panel.gwet_ac1",),
    "alpha without a judge": (".panel.judges[].alpha_without", ".panel.copying.alpha_without_alike"),
    "alpha change": (".panel.judges[].alpha_change",),
    "prevalence": (".panel.prevalence",),
    "valid share of a judge": (
        ".panel.judges[].valid",
        ".panel.rewriting[].valid",
        ".panel.rewriting[].restated",
        ".panel.rewriting[].changed",
        ".panel.faults[].detected",
        ".panel.faults[].false_alarms",
        ".panel.positions[].*",
        ".panel.own_traces[].valid",
    ),
    "agreement with the others": (".panel.judges[].agreement",),
    "paired difference of verdicts": (
        ".panel.rewriting[].shift",
        ".panel.faults[].difference",
        ".panel.judges[].padding",
        "compare.pairs[].verdicts.change",
        "compare.judges[].change",
    ),
    "agreement of two series of verdicts": ("compare.pairs[].verdicts.kappa", "compare.judges[].kappa"),
    # Single judges.
    "leniency against the median judge": (".panel.judges[].leniency",),
    "length association": (".panel.judges[].verbosity",),
    "length bias against labels": (".panel.judges[].verbosity_against_truth",),
    "leniency with the judge's own family": (
        ".panel.judges[].own_family",
        ".panel.judges[].order",
        ".panel.own_traces[].preference",
    ),
    "error correlation beyond other pairs": (".panel.copying.pairs[].excess",),
    "effective number of judges": (".panel.copying.effective_judges",),
    # Judges measured against people's labels on a random sample.
    "corrected mean of these traces": (
        ".judge_quality.models[].corrected",
        ".judge_quality.models[].people",
        ".judge_quality.models[].excess",
        ".judge_quality.judges[].excess",
        ".judge_quality.excess",
        "compare.pairs[].corrected_shares.first",
        "compare.pairs[].corrected_shares.second",
    ),
    "calibrated mean of these traces": (".judge_quality.models[].calibrated",),
    "corrected mean over other units": (
        ".judge_quality.models[].corrected_elsewhere",
        ".judge_quality.models[].people_elsewhere",
    ),
    "rogan-gladen share of these traces": (".judge_quality.models[].rogan_gladen",),
    "corrected difference of these traces": (
        ".judge_quality.differences[].corrected",
        ".judge_quality.transport[].largest_excess",
        ".judge_quality.splits[].difference",
        "compare.pairs[].corrected_shares.difference",
        "compare.judge_drift[].change",
    ),
    "corrected difference over other units": (".judge_quality.differences[].corrected_elsewhere",),
    "judge accuracy": (
        ".judge_quality.judges[].accuracy",
        ".judge_quality.splits[].accuracy",
        ".pair_labels[].judges[].agreement",
        "compare.judge_drift[].first",
        "compare.judge_drift[].second",
    ),
    "judge sensitivity": (".judge_quality.judges[].sensitivity", ".pair_labels[].judges[].sensitivity"),
    "judge specificity": (".judge_quality.judges[].specificity", ".pair_labels[].judges[].specificity"),
    "kappa with people": (".judge_quality.judges[].kappa", ".pair_labels[].judges[].kappa"),
    "confidence slope": (".judge_quality.judges[].confidence.slope",),
    "confidence intercept": (".judge_quality.judges[].confidence.intercept",),
    "error factor": (".judge_quality.factors[].effect",),
    "rate of obeying": (
        ".panel.obedience[].verdicts",
        ".panel.obedience[].valid",
        ".panel.obedience[].invalid",
    ),
    "rate of obeying preferences": (".panel.obedience[].preferences",),
    # Items of a task, questions.
    "item share": (
        ".task.models[].accuracy",
        ".task.telling.verdicts[].accuracy",
        ".task.telling.judges[].right",
        ".task.telling.judges[].wrong",
        "validity.models[].accuracy",
        "validity.models[].right",
        "validity.models[].wrong",
        ".task.items[].right",
    ),
    "item share difference": (
        ".task.telling.difference",
        ".task.telling.judges[].difference",
        "validity.models[].difference",
        ".logic.repairs[].gain",
    ),
    "item mean": (
        ".task.models[].sample_agreement",
        ".task.models[].score.mae",
        ".semantic.models[].*",
        ".semantic.foundations[].consistency",
        ".semantic.rivals[].value",
        ".semantic.languages[].similarity",
        ".semantic.languages[].translations",
        ".semantic.countries[].consistency",
        ".semantic.by_language[].consistency",
        ".logic.rankings[].*",
        ".semantic.questions_only",
        ".semantic.forms[].value",
        "temperature.same_words",
        "temperature.other_words",
        "temperature.measures[].same_words",
        "temperature.measures[].other_words",
        "rules.before",
        "rules.after",
        "rules.measures[].before",
        "rules.measures[].after",
        "accuracy.consistency",
        "accuracy.measures[].consistency",
        "judgements.entropy",
        ".semantic.people.entropy",
        "judgements.pair_entropy",
        ".semantic.people.pair_entropy",
        "holdout.error",
        "holdout.error_of_mean",
    ),
    "item mean difference": (
        ".semantic.differences[].difference",
        ".semantic.languages[].difference",
        "temperature.difference",
        "temperature.measures[].difference",
        "rules.change",
        "rules.measures[].change",
    ),
    "r with people of a sample": (
        ".semantic.people.correlations[].ci_low",
        ".semantic.people.correlations[].r_pair_entropy",
    ),
    "VALID within models": ("validity.within",),
    "consistency gap between regions": (".semantic.region_gaps[].difference",),
    "correlation over questions": (
        "accuracy.ci_low",
        "judgements.correlations[].ci_low",
        "judgements.correlations[].r_pair_entropy",
    ),
    "difference of correlations over questions": (
        "judgements.differences[].ci_low",
        ".semantic.people.differences[].ci_low",
    ),
    "mean of shares over sets": (".semantic.judged[].instances", "accuracy.accuracy"),
    "pooled share over sets": (".semantic.judged[].score",),
    "area under the curve": (".task.telling.area",),
    "area within items": (".task.telling.area_within",),
    "rank correlation of answers": (".task.telling.closeness", ".task.models[].score.spearman_rho"),
    "correlation of answers": (".task.models[].score.pearson_r",),
    # Item sets.
    "commutativity": (".logic.*[].commutativity", ".logic.*[].position_consistency"),
    "commutativity, mean over sets": (
        ".logic.*[].instances.commutativity",
        ".logic.*[].instances.position_consistency",
    ),
    "negation invariance": (".logic.*[].negation", ".logic.*[].negation_calibrated"),
    "negation invariance, mean over sets": (
        ".logic.*[].instances.negation",
        ".logic.*[].instances.negation_calibrated",
    ),
    "human agreement": (
        ".logic.*[].human_agreement",
        ".logic.*[].human_agreement_calibrated",
        ".logic.*[].repaired_agreement",
    ),
    "human agreement, mean over sets": (
        ".logic.*[].instances.human_agreement",
        ".logic.*[].instances.human_agreement_calibrated",
    ),
    "self-agreement": (".logic.*[].self_agreement",),
    "self-agreement, mean over sets": (".logic.*[].instances.self_agreement",),
    "transitivity": (".logic.*[].transitivity[].share", ".logic.*[].transitivity[].partial"),
    "transitivity, mean over sets": (
        ".logic.*[].transitivity[].instances",
        ".logic.*[].transitivity[].partial_instances",
    ),
    "first position": (".logic.*[].first",),
    # Distributions of answers, and gaps between groups.
    "distribution distance": (".distribution.models[].distance",),
    "distribution skill": (".distribution.models[].skill", ".distribution.models[].skill_region"),
    "variance ratio": (
        ".distribution.models[].variance_ratio",
        ".distribution.dimensions[].within_variance_ratio",
    ),
    "cells near people": (".distribution.models[].w1_near",),
    "order shift": (
        ".distribution.groups[].steering_gain",
        ".distribution.models[].country_gain",
        ".distribution.knowledge[].knowledge_gap",
    ),
    "gap slope": (".distribution.groups[].slope",),
    "gap slope with intercept": (".distribution.groups[].intercept_slope",),
    # Conversations in which users state views.
    "slope on views": (
        ".probes.pressure.rows[].slope",
        ".probes.pressure.rows[].slope_by_turn[]",
        ".probes.pressure.rows[].with_country",
        ".probes.pressure.rows[].without_country",
        ".probes.pressure.rows[].regions[].slope",
    ),
    "slope on views after the pressure": (".probes.pressure.rows[].slope_after_release",),
    "slope that returns": (".probes.pressure.rows[].returned",),
    "hits beyond chance": (
        ".probes.memory.models[].recall[].excess",
        ".probes.memory.models[].before_release",
        ".probes.memory.models[].after_release",
    ),
    "difference by release": (".probes.memory.models[].release_difference",),
    "r without recall": (".probes.memory.models[].agreement_without_recall",),
    "difference of slopes by region": (".probes.pressure.rows[].regions[].difference",),
    "difference of slopes by stated country": (".probes.pressure.rows[].country_difference",),
    "flips beyond the neutral arm": (".probes.pressure.rows[].excess_flips",),
    # Changed chains of thought.
    "slope on the donor": (".probes.reasoning.rows[].slope",),
    "way to a target": (".probes.reasoning.rows[].opposite", ".probes.reasoning.rows[].mistake"),
    "cells that follow": (".probes.reasoning.rows[].following_share",),
    # Over models.
    "correlation over models": (
        ".panel.peer_alignment[].r",
        ".consistency_alignment[].r",
        ".logic.links[].r",
        ".task.telling.models",
        "validity.over_models",
        "holdout.unseen_cells",
        "accuracy.over_models",
        "accuracy.measures[].over_models",
    ),
}
"""By the figure's key in `studies`."""

PATHS_WITHOUT_SIMULATION: Mapping[str, tuple[str, ...]] = {
    "simulated in test_accuracy.py and test_effective_judges.py: coins, and shared errors": (
        ".judge_quality.judges[].balanced_accuracy",
        ".judge_quality.panel.*",
    ),
    "the interval of the concordance at a higher level (Bonferroni), which is simulated at 95%": (
        "*alignment[].concordance_simultaneous",
    ),
    "Student's interval of a slope, exact for Gaussian deviations of models; simulated in "
    "tests/reports/data/agreement/test_over_models_model_attributes.py": ("*attributes.trends[].slope",),
    "an increasing function of the agreement of two raters, and so its interval covers where that does": (
        ".judge_quality.ceiling.max_accuracy",
    ),
    "Fisher's interval over cells, kept for comparison with papers and named so; it is a negative control": (
        "*.fisher_ci_low",
    ),
    "contains the interval against labels that is simulated: it is the union of those for 0, 5 and 10% wrong labels": (
        ".panel.*.label_error_ci_low",
    ),
    "percentiles over the random halves of the survey's respondents, all of which are drawn: nothing is estimated": (
        ".ceiling[].reliability",
    ),
    "Wilson's interval of one answer per item; coverage known: Brown, Cai & DasGupta, Statistical Science, 2001": (
        ".task.models[].commonest",
    ),
    "Student's interval of the mean of one value per model, exact for normal values: Student, Biometrika 6, 1908": (
        ".over_models.figures[].summary.mean",
        "*attributes.figures[].summary.mean",
    ),
    "the band of simulated perfect samplers; a test compares it with one of drawn respondents": (
        ".distribution.models[].w1_floor",
    ),
    "an estimate of the report, which is registered under its path there": ("check.gates[]",),
    "the range of r and MAE over subsets of the recorded answers, which describes these answers and no other units": (
        "sampling.rows[].*",
    ),
}
"""By the reason why no simulation applies."""


def iterate_all_paths() -> Iterator[str]:
    """The paths of all estimates in all documents, by their JSON Schemas."""
    for prefix, document in DOCUMENTS.items():
        for path in iterate_schema_paths(document.model_json_schema(mode="serialization")):
            yield f"{prefix}{path}"


def find_figures(path: str) -> list[str]:
    """The figures that an estimate with this path is; none where no simulation is registered."""
    return [figure for figure, patterns in PATHS_BY_FIGURE.items() if _matches(path, patterns)]


def find_reasons(path: str) -> list[str]:
    """The reasons why no simulation applies to an estimate with this path."""
    return [reason for reason, patterns in PATHS_WITHOUT_SIMULATION.items() if _matches(path, patterns)]


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path is one of the patterns; `*` does not match the key of a second interval."""
    return any(
        _compile(pattern).fullmatch(path) and (pattern.endswith("ci_low") or not path.endswith("ci_low"))
        for pattern in patterns
    )


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression: there are more of them than the module `re` keeps."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*"))
