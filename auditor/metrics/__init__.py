"""Statistics of this package: pure functions on numpy arrays, which import nothing else of it.

Names are imported on first use, since scipy takes half a second to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from auditor.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from auditor.metrics.answers.samples import (
        answer_entropy as answer_entropy,
        equal_answers as equal_answers,
        equal_answers_probability as equal_answers_probability,
        rarefied_entropy as rarefied_entropy,
        score_variance as score_variance,
        self_consistencies as self_consistencies,
        self_consistency as self_consistency,
        share_variance as share_variance,
        sign_agreement as sign_agreement,
        straddles_zero as straddles_zero,
        variance_of_orders as variance_of_orders,
    )
    from auditor.metrics.answers.semantic import (
        consistency_of as consistency_of,
        consistency_score as consistency_score,
        pairwise_consistency as pairwise_consistency,
        semantic_graph_entropies as semantic_graph_entropies,
        semantic_graph_entropy as semantic_graph_entropy,
        shuffled_null as shuffled_null,
    )
    from auditor.metrics.distributions.baselines import (
        BaselineShares as BaselineShares,
        CellShares as CellShares,
        country_baseline as country_baseline,
        nearest_country_baseline as nearest_country_baseline,
        region_baseline as region_baseline,
        uniform_baseline as uniform_baseline,
        world_baseline as world_baseline,
    )
    from auditor.metrics.distributions.distances import (
        cut_variance as cut_variance,
        jensen_shannon as jensen_shannon,
        mean_of_orders as mean_of_orders,
        mean_sampling_floor as mean_sampling_floor,
        order_effect as order_effect,
        sampling_floor as sampling_floor,
        squared_distance as squared_distance,
        total_variation as total_variation,
        wasserstein as wasserstein,
    )
    from auditor.metrics.distributions.groups import (
        coherence_distance as coherence_distance,
        gap_reliability as gap_reliability,
        gap_slope as gap_slope,
        group_variances as group_variances,
        specificity as specificity,
        steering_gain as steering_gain,
    )
    from auditor.metrics.intervals.correlation import (
        dependent_correlation_difference as dependent_correlation_difference,
        pearson as pearson,
        spearman as spearman,
    )
    from auditor.metrics.intervals.multiple_testing import (
        adjust_tests as adjust_tests,
        benjamini_yekutieli as benjamini_yekutieli,
        holm as holm,
        intersection_union as intersection_union,
        widest_gap as widest_gap,
    )
    from auditor.metrics.intervals.two_way import (
        crossed_jackknife as crossed_jackknife,
        gap_jackknife as gap_jackknife,
        paired_jackknife as paired_jackknife,
    )
    from auditor.metrics.judges.accuracy import (
        JudgeQuality as JudgeQuality,
        judge_quality as judge_quality,
        rogan_gladen as rogan_gladen,
    )
    from auditor.metrics.judges.agreement import (
        count_ratings as count_ratings,
        fleiss_kappa as fleiss_kappa,
        gwet_ac1 as gwet_ac1,
        krippendorff_alpha as krippendorff_alpha,
        leave_one_rater_out as leave_one_rater_out,
    )
    from auditor.metrics.judges.panels import balanced_panels as balanced_panels
    from auditor.metrics.judges.votes import (
        agreement_with_others as agreement_with_others,
        can_still_change as can_still_change,
        dawid_skene as dawid_skene,
        judge_vote as judge_vote,
        posterior_of_seats as posterior_of_seats,
        settle as settle,
        weighted_majority as weighted_majority,
    )
    from auditor.metrics.labels.annotator_test import (
        AnnotatorTest as AnnotatorTest,
        alternative_annotator_test as alternative_annotator_test,
    )
    from auditor.metrics.labels.calibration import (
        ConfidenceCalibration as ConfidenceCalibration,
        calibrate as calibrate,
        confidence_calibration_error as confidence_calibration_error,
    )
    from auditor.metrics.labels.prediction_powered import prediction_powered_mean as prediction_powered_mean
    from auditor.metrics.logic.consistency import (
        commutativity as commutativity,
        human_agreement as human_agreement,
        negation_invariance as negation_invariance,
        position_consistency as position_consistency,
        self_agreement as self_agreement,
    )
    from auditor.metrics.logic.cycles import (
        minimum_feedback_arcs as minimum_feedback_arcs,
        shortest_cycles as shortest_cycles,
    )
    from auditor.metrics.logic.ranking import (
        bradley_terry as bradley_terry,
        elo as elo,
        repair as repair,
        win_loss_rate as win_loss_rate,
    )
    from auditor.metrics.logic.transitivity import transitivity as transitivity
    from auditor.metrics.people.alignment import (
        BIAS as BIAS,
        CONCORDANCE as CONCORDANCE,
        MAE as MAE,
        PEARSON as PEARSON,
        RMSE as RMSE,
        ROOT_MEAN_DISTANCE as ROOT_MEAN_DISTANCE,
        SKILL as SKILL,
        VARIANCE_RATIO as VARIANCE_RATIO,
        bias as bias,
        mae as mae,
        rmse as rmse,
    )
    from auditor.metrics.people.conflict import find_conflicts as find_conflicts, third_quartile as third_quartile
    from auditor.metrics.people.savings import is_narrow as is_narrow, is_settled as is_settled
    from auditor.metrics.people.structure import (
        compare_structure as compare_structure,
        estimate_from_nearest as estimate_from_nearest,
    )
    from auditor.metrics.people.survey_error import (
        correct_for_survey_error as correct_for_survey_error,
        correct_range as correct_range,
        crossed_corrected as crossed_corrected,
        range_corrected_gap as range_corrected_gap,
        sampling_floor_of_mae as sampling_floor_of_mae,
    )

if not TYPE_CHECKING:
    __getattr__, __dir__ = import_on_first_use(__name__, __file__)
