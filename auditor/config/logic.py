"""Settings of the probe `logic`: the table of that name under `[probes]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from auditor.config.probe_section import ProbeParts, ProbeSection

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig


class LogicProbe(ProbeSection):
    """Pairs of items, compared in both orders and in a negated form: how logical are a judge's preferences?"""

    parts: ClassVar = ProbeParts(
        tables="auditor.storage.comparison_tables",
        answer_row="auditor.storage.comparison_tables:ComparisonRow",
        build_graph="auditor.agents.logic.graph:build_logic_graph",
        check_input="auditor.agents.logic.item_sets:check_items",
        plan_calls="auditor.cost_estimation.logic_calls:plan_logic_calls",
        build_report="auditor.reports.data.logic.build:build_logic_report",
        measure_coverage="auditor.reports.data.logic.build:measure_logic_coverage",
        build_section="auditor.reports.sections.logic:build_logic_section",
        build_summary_tables="auditor.reports.sections.logic_tables:build_summary_tables",
        fingerprint_inputs="auditor.agents.logic.fingerprint:list_fingerprint_inputs",
        answers_key="comparisons",
        answers_noun="comparison",
        counted_labels={None: "comparisons of items"},
    )

    items: str = "topics"
    """What is compared: `topics`, those of a country; `traces`, the reasonings on a cell; or a file of one's own."""
    countries: Literal["all"] | list[str] | None = None
    """Countries whose topics, or traces, are compared; the survey's first where none is named."""
    relation: Literal["preference", "relevance", "temporal", "causal"] = "preference"
    """What items are compared by; topics and traces by preference only."""
    negated: bool = True
    """Whether each question is also put in its negated form, "which is less …"."""
    both_orders: bool = True
    """Whether each pair is shown in both orders."""
    answer: Literal["structured", "probability"] = "structured"
    """`structured` asks for A, B or TIE as JSON; `probability` reads how probable A and B are as the next token, where
    a provider offers that: a pair is decided for what is at least as probable, and no question is repeated."""
    cot: bool = False
    """Whether the judge reasons before it answers."""
    max_words: Annotated[int, Field(ge=5)] = 60
    """Length of the reasoning that is asked for."""
    max_tokens: Annotated[int, Field(ge=1)] = 200
    """Length of an answer at most."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of all questions but the repeats."""
    paraphrases: Annotated[int, Field(ge=1, le=10)] = 1
    """Wordings of the question; all is asked in each of them."""
    samples: Annotated[int, Field(ge=0, le=100)] = 10
    """Repeats of a question, from which self-agreement is read; 0 does without."""
    sampled_pairs: Annotated[int, Field(ge=0)] = 20
    """Pairs of a set, drawn at random, that are repeated."""
    sample_temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Of the repeats; one of 0 would repeat the same answer."""
    k: Annotated[list[Annotated[int, Field(ge=3)]], Field(min_length=1)] = Field(default_factory=lambda: [3, 5])
    """Sizes of the subsets that transitivity is measured on."""
    max_subsets: Annotated[int, Field(ge=1)] = 1000
    """Subsets of a size looked at in a set; all, where there are no more."""
    max_items: Annotated[int, Field(ge=2)] = 30
    """Items of a set at most; of more, so many are drawn at random."""
    max_pairs: Annotated[int, Field(ge=1)] | None = None
    """Pairs of a set at most, drawn at random; all where it is not set."""

    @property
    def unestimated_reason(self) -> str | None:
        """Items that are traces depend on the answers, so that their number is not known."""
        return "over traces is not in this estimate: it depends on the answers" if self.items == "traces" else None

    def check(self, config: AuditConfig) -> None:
        """Check the source of the items, and that the relation and the kind of answer fit them."""
        if self.cot and self.answer == "probability":
            raise ValueError(
                "probes.logic.cot: the next token is no chain of thought. How to fix: Leave out one of the two."
            )
        if self.items == "topics" and config.survey is None:
            raise ValueError("the key 'survey' is missing. How to fix: Add it; the probe 'logic' compares its topics.")
        if self.items == "traces" and not config.probes.direct:
            raise ValueError(
                "probes.logic.items: there are no traces without the probe 'direct'. How to fix: Add direct = {}."
            )
        if self.items in ("topics", "traces") and self.relation != "preference":
            raise ValueError(
                f"probes.logic.relation: {self.items} are compared by preference. "
                "How to fix: Name a file of items for other relations."
            )

    def resolve_paths(self, resolve: Callable[[str], str]) -> Self:
        """Resolve the path of the file of items."""
        return self.model_copy(update={"items": resolve(self.items)})
