"""The subsections on rankings show calls, accuracy and the effect on agreement with people."""

from __future__ import annotations

import pytest

from auditor.metrics.intervals.estimate import Estimate
from auditor.probes.logic import section as logic_rankings
from auditor.probes.logic.figures.schema import RankingRow
from auditor.reports.charts.tradeoff_plot import TradeoffPoint
from auditor.reports.document import Figure
from tests.probes.logic.test_section import MEAN, make_logic, make_row, make_share
from tests.reports.hostile_report import NAME
from tests.reports.sections.node_text import assert_consistent, cells_of, tables_of
from tests.support.report_changes import change

UNKNOWN = Estimate(None, 0, reason="people's order, or the judge's, is not known")
RHO = Estimate(0.6, 3, 0.2, 0.9)


def make_ranking(judge: str, method: str, all_pairs: Estimate = RHO, people: Estimate = UNKNOWN) -> RankingRow:
    return RankingRow(judge=judge, method=method, runs=100, calls=22.1, failed=0.5, all_pairs=all_pairs, people=people)


@pytest.fixture(autouse=True)
def plotted(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """Accuracies in each plot."""
    accuracies: list[list[float]] = []

    def record_points(points: list[TradeoffPoint], **titles: str) -> dict[str, object]:
        accuracies.append([point.accuracy for point in points])
        return {}

    monkeypatch.setattr(logic_rankings, "tradeoff_plot", record_points)
    return accuracies


def test_no_subsection_where_nothing_was_ranked() -> None:
    assert logic_rankings.build_rankings_section(make_logic([])) is None


def test_each_judge_has_a_plot_against_people_where_their_order_is_known(plotted: list[list[float]]) -> None:
    rankings = [
        make_ranking("a", "PairS", people=Estimate(0.3, 3, 0.1, 0.5)),
        make_ranking(NAME, "PairS"),
        make_ranking("c", "PairS", all_pairs=UNKNOWN),
    ]
    section = logic_rankings.build_rankings_section(make_logic([], rankings=rankings))
    assert section is not None
    assert_consistent(section)
    assert plotted == [[0.3], [0.6]]
    figures = [block for block in section.blocks if isinstance(block, Figure)]
    assert [figure.description for figure in figures] == ["PairS: 22.1 calls, ρ 0.30", "PairS: 22.1 calls, ρ 0.60"]
    assert cells_of(tables_of(section)["rankings"])[1] == [NAME, "PairS", 100, 22.1, 0.5, RHO, UNKNOWN]


@pytest.mark.parametrize(("sizes", "shown"), [((3, 5), 5), ((5, 3, 8), 5), ((3, 4), 4)])
def test_transitivity_of_rankings_is_in_subsets_of_the_size_of_table_4(sizes: tuple[int, ...], shown: int) -> None:
    rankings = [make_ranking("a", method, people=RHO) for method in ("PairS, greedy", "PairS, greedy, calibrated")]
    section = logic_rankings.build_rankings_section(make_logic([make_row("a", sizes=sizes)], rankings=rankings))
    assert section is not None
    titles = [column.title for column in tables_of(section)["rankings-consistency"].columns]
    assert f"Transitivity (K = {shown})" in titles


def test_a_method_with_fewer_sets_is_left_out_of_the_plot(plotted: list[list[float]]) -> None:
    rankings = [
        make_ranking("a", "PairS", people=Estimate(0.3, 3, 0.1, 0.5)),
        make_ranking("a", "all pairs", people=Estimate(1.0, 1, reason="1 set")),
    ]
    section = logic_rankings.build_rankings_section(make_logic([], rankings=rankings))
    assert section is not None
    assert plotted == [[0.3]]
    [figure] = [block for block in section.blocks if isinstance(block, Figure)]
    assert "Not shown, since ρ is of fewer sets: all pairs." in str(figure.caption)


def test_pairs_is_shown_with_the_consistency_of_its_judge_where_people_s_order_is_known() -> None:
    row = make_row("a")
    means = change(row.instances, human_agreement=make_share(0.66, 9), commutativity=make_share(0.7, 9))
    judges = [change(row, instances=means), make_row(NAME)]
    rhos = {("a", "PairS, greedy"): 0.28, ("a", "PairS, greedy, calibrated"): 0.31, (NAME, "PairS, greedy"): 0.34}
    rhos[NAME, "PairS, greedy, calibrated"] = 0.38
    rankings = [make_ranking(*key, people=Estimate(rho, 3, 0.1, 0.5)) for key, rho in rhos.items()]
    section = logic_rankings.build_rankings_section(make_logic(judges, rankings=rankings))
    assert section is not None
    raw, calibrated = (ranking.people for ranking in rankings[:2])
    table = tables_of(section)["rankings-consistency"]
    assert cells_of(table)[0] == ["a", means.human_agreement, MEAN, means.commutativity, raw, calibrated]
    assert [row[0] for row in cells_of(table)] == ["a", NAME]
    unknown = [make_ranking(*key) for key in rhos]
    section = logic_rankings.build_rankings_section(make_logic(judges, rankings=unknown))
    assert section is not None
    assert "rankings-consistency" not in tables_of(section)
