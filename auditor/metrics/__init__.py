"""Statistics of this package: pure functions on numpy arrays, which import nothing else of it.

Names are imported on first use, since scipy takes half a second to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Imported now: importing a submodule sets its name on the package, which would hide the function of the same name.
from auditor.metrics.proportion import proportion as proportion

if TYPE_CHECKING:
    from auditor.metrics.agreement import count_ratings as count_ratings
    from auditor.metrics.agreement import fleiss_kappa as fleiss_kappa
    from auditor.metrics.agreement import gwet_ac1 as gwet_ac1
    from auditor.metrics.agreement import krippendorff_alpha as krippendorff_alpha
    from auditor.metrics.agreement import leave_one_rater_out as leave_one_rater_out
    from auditor.metrics.annotator_test import AnnotatorTest as AnnotatorTest
    from auditor.metrics.annotator_test import alternative_annotator_test as alternative_annotator_test
    from auditor.metrics.answer_diversity import answer_entropy as answer_entropy
    from auditor.metrics.answer_diversity import equal_answers as equal_answers
    from auditor.metrics.answer_diversity import equal_answers_probability as equal_answers_probability
    from auditor.metrics.answer_diversity import rarefied_entropy as rarefied_entropy
    from auditor.metrics.answer_diversity import share_variance as share_variance
    from auditor.metrics.answer_diversity import variance_of_orders as variance_of_orders
    from auditor.metrics.attenuation import crossed_corrected as crossed_corrected
    from auditor.metrics.calibration import calibrate as calibrate
    from auditor.metrics.cell_statistics import BIAS as BIAS
    from auditor.metrics.cell_statistics import CONCORDANCE as CONCORDANCE
    from auditor.metrics.cell_statistics import MAE as MAE
    from auditor.metrics.cell_statistics import PEARSON as PEARSON
    from auditor.metrics.cell_statistics import RMSE as RMSE
    from auditor.metrics.cell_statistics import ROOT_MEAN_DISTANCE as ROOT_MEAN_DISTANCE
    from auditor.metrics.cell_statistics import SKILL as SKILL
    from auditor.metrics.cell_statistics import VARIANCE_RATIO as VARIANCE_RATIO
    from auditor.metrics.confidence_calibration import ConfidenceCalibration as ConfidenceCalibration
    from auditor.metrics.confidence_calibration import confidence_calibration_error as confidence_calibration_error
    from auditor.metrics.conflict import find_conflicts as find_conflicts
    from auditor.metrics.conflict import third_quartile as third_quartile
    from auditor.metrics.correlation import dependent_correlation_difference as dependent_correlation_difference
    from auditor.metrics.correlation import pearson as pearson
    from auditor.metrics.correlation import spearman as spearman
    from auditor.metrics.cumulative_distance import cut_variance as cut_variance
    from auditor.metrics.cumulative_distance import mean_of_orders as mean_of_orders
    from auditor.metrics.cumulative_distance import squared_distance as squared_distance
    from auditor.metrics.cycles import minimum_feedback_arcs as minimum_feedback_arcs
    from auditor.metrics.cycles import shortest_cycles as shortest_cycles
    from auditor.metrics.distribution_baselines import BaselineShares as BaselineShares
    from auditor.metrics.distribution_baselines import CellShares as CellShares
    from auditor.metrics.distribution_baselines import country_baseline as country_baseline
    from auditor.metrics.distribution_baselines import nearest_country_baseline as nearest_country_baseline
    from auditor.metrics.distribution_baselines import region_baseline as region_baseline
    from auditor.metrics.distribution_baselines import uniform_baseline as uniform_baseline
    from auditor.metrics.distribution_baselines import world_baseline as world_baseline
    from auditor.metrics.error import bias as bias
    from auditor.metrics.error import mae as mae
    from auditor.metrics.error import rmse as rmse
    from auditor.metrics.group_gaps import gap_reliability as gap_reliability
    from auditor.metrics.group_gaps import gap_slope as gap_slope
    from auditor.metrics.group_steering import coherence_distance as coherence_distance
    from auditor.metrics.group_steering import group_variances as group_variances
    from auditor.metrics.group_steering import specificity as specificity
    from auditor.metrics.group_steering import steering_gain as steering_gain
    from auditor.metrics.jackknife import crossed_jackknife as crossed_jackknife
    from auditor.metrics.jackknife import gap_jackknife as gap_jackknife
    from auditor.metrics.jackknife import paired_jackknife as paired_jackknife
    from auditor.metrics.judge_accuracy import JudgeQuality as JudgeQuality
    from auditor.metrics.judge_accuracy import judge_quality as judge_quality
    from auditor.metrics.judge_accuracy import rogan_gladen as rogan_gladen
    from auditor.metrics.max_gap import widest_gap as widest_gap
    from auditor.metrics.multiple_testing import adjust_tests as adjust_tests
    from auditor.metrics.multiple_testing import benjamini_yekutieli as benjamini_yekutieli
    from auditor.metrics.multiple_testing import holm as holm
    from auditor.metrics.multiple_testing import intersection_union as intersection_union
    from auditor.metrics.panel_design import balanced_panels as balanced_panels
    from auditor.metrics.prediction_powered import prediction_powered_mean as prediction_powered_mean
    from auditor.metrics.preference import commutativity as commutativity
    from auditor.metrics.preference import human_agreement as human_agreement
    from auditor.metrics.preference import negation_invariance as negation_invariance
    from auditor.metrics.preference import position_consistency as position_consistency
    from auditor.metrics.preference import self_agreement as self_agreement
    from auditor.metrics.preference_repair import repair as repair
    from auditor.metrics.presentation_order import order_effect as order_effect
    from auditor.metrics.range_correction import correct_range as correct_range
    from auditor.metrics.range_correction import range_corrected_gap as range_corrected_gap
    from auditor.metrics.ranking import bradley_terry as bradley_terry
    from auditor.metrics.ranking import elo as elo
    from auditor.metrics.ranking import win_loss_rate as win_loss_rate
    from auditor.metrics.rater_model import dawid_skene as dawid_skene
    from auditor.metrics.rater_model import posterior_of_seats as posterior_of_seats
    from auditor.metrics.sample_consistency import score_variance as score_variance
    from auditor.metrics.sample_consistency import self_consistencies as self_consistencies
    from auditor.metrics.sample_consistency import self_consistency as self_consistency
    from auditor.metrics.sample_consistency import sign_agreement as sign_agreement
    from auditor.metrics.sample_consistency import straddles_zero as straddles_zero
    from auditor.metrics.semantic import consistency_of as consistency_of
    from auditor.metrics.semantic import consistency_score as consistency_score
    from auditor.metrics.semantic import pairwise_consistency as pairwise_consistency
    from auditor.metrics.semantic import semantic_graph_entropies as semantic_graph_entropies
    from auditor.metrics.semantic import semantic_graph_entropy as semantic_graph_entropy
    from auditor.metrics.semantic import shuffled_null as shuffled_null
    from auditor.metrics.share_distances import jensen_shannon as jensen_shannon
    from auditor.metrics.share_distances import total_variation as total_variation
    from auditor.metrics.similar_countries import estimate_from_nearest as estimate_from_nearest
    from auditor.metrics.stopping import is_narrow as is_narrow
    from auditor.metrics.stopping import is_settled as is_settled
    from auditor.metrics.structure import compare_structure as compare_structure
    from auditor.metrics.survey_error import correct_for_survey_error as correct_for_survey_error
    from auditor.metrics.survey_error import sampling_floor_of_mae as sampling_floor_of_mae
    from auditor.metrics.transitive_subsets import transitivity as transitivity
    from auditor.metrics.votes import agreement_with_others as agreement_with_others
    from auditor.metrics.votes import can_still_change as can_still_change
    from auditor.metrics.votes import judge_vote as judge_vote
    from auditor.metrics.votes import settle as settle
    from auditor.metrics.votes import weighted_majority as weighted_majority
    from auditor.metrics.wasserstein_distance import mean_sampling_floor as mean_sampling_floor
    from auditor.metrics.wasserstein_distance import sampling_floor as sampling_floor
    from auditor.metrics.wasserstein_distance import wasserstein as wasserstein

_NAMES_BY_MODULE = {
    "similar_countries": ("estimate_from_nearest",),
    "survey_error": (
        "correct_for_survey_error",
        "sampling_floor_of_mae",
    ),
    "structure": ("compare_structure",),
    "range_correction": (
        "correct_range",
        "range_corrected_gap",
    ),
    "agreement": ("count_ratings", "fleiss_kappa", "gwet_ac1", "krippendorff_alpha", "leave_one_rater_out"),
    "annotator_test": ("AnnotatorTest", "alternative_annotator_test"),
    "attenuation": ("crossed_corrected",),
    "jackknife": ("crossed_jackknife", "gap_jackknife", "paired_jackknife"),
    "cell_statistics": (
        "BIAS",
        "CONCORDANCE",
        "MAE",
        "PEARSON",
        "RMSE",
        "ROOT_MEAN_DISTANCE",
        "SKILL",
        "VARIANCE_RATIO",
    ),
    "calibration": ("calibrate",),
    "confidence_calibration": ("ConfidenceCalibration", "confidence_calibration_error"),
    "conflict": ("find_conflicts", "third_quartile"),
    "correlation": ("dependent_correlation_difference", "pearson", "spearman"),
    "cycles": ("minimum_feedback_arcs", "shortest_cycles"),
    "error": ("bias", "mae", "rmse"),
    "judge_accuracy": ("JudgeQuality", "judge_quality", "rogan_gladen"),
    "multiple_testing": ("adjust_tests", "benjamini_yekutieli", "holm", "intersection_union"),
    "panel_design": ("balanced_panels",),
    "prediction_powered": ("prediction_powered_mean",),
    "preference": ("commutativity", "human_agreement", "negation_invariance", "position_consistency", "self_agreement"),
    "proportion": ("proportion",),
    "preference_repair": ("repair",),
    "ranking": ("bradley_terry", "elo", "win_loss_rate"),
    "sample_consistency": (
        "score_variance",
        "self_consistencies",
        "self_consistency",
        "sign_agreement",
        "straddles_zero",
    ),
    "semantic": (
        "consistency_of",
        "consistency_score",
        "pairwise_consistency",
        "semantic_graph_entropies",
        "semantic_graph_entropy",
        "shuffled_null",
    ),
    "stopping": ("is_narrow", "is_settled"),
    "rater_model": ("dawid_skene", "posterior_of_seats"),
    "transitive_subsets": ("transitivity",),
    "votes": ("agreement_with_others", "can_still_change", "judge_vote", "settle", "weighted_majority"),
    "max_gap": ("widest_gap",),
    "answer_diversity": (
        "answer_entropy",
        "equal_answers",
        "equal_answers_probability",
        "rarefied_entropy",
        "share_variance",
        "variance_of_orders",
    ),
    "distribution_baselines": (
        "BaselineShares",
        "CellShares",
        "country_baseline",
        "nearest_country_baseline",
        "region_baseline",
        "uniform_baseline",
        "world_baseline",
    ),
    "group_gaps": (
        "gap_reliability",
        "gap_slope",
    ),
    "group_steering": (
        "coherence_distance",
        "group_variances",
        "specificity",
        "steering_gain",
    ),
    "presentation_order": ("order_effect",),
    "share_distances": (
        "jensen_shannon",
        "total_variation",
    ),
    "cumulative_distance": (
        "cut_variance",
        "mean_of_orders",
        "squared_distance",
    ),
    "wasserstein_distance": (
        "mean_sampling_floor",
        "sampling_floor",
        "wasserstein",
    ),
}
_MODULE_BY_NAME = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = sorted(_MODULE_BY_NAME)


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use; AttributeError for any other name."""
    if name in _MODULE_BY_NAME:
        return getattr(import_module(f"{__name__}.{_MODULE_BY_NAME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All public names, whether imported yet or not."""
    return __all__
