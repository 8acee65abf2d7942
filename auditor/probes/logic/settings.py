"""Settings of the probe `logic`: the table of that name under `[probes]`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from auditor.config.base import PromptForm
from auditor.config.probe_section import ProbeSection
from auditor.domain import ENGLISH

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig

ENGLISH_ONLY = ("paper", "coherence")
"""Values of `form` and `relation` whose texts exist in English only."""


class LogicProbe(ProbeSection):
    """Logical consistency of a judge's pairwise preferences, in both orders and in a negated form."""

    keys_hashed_at_defaults: ClassVar = {
        "": "items countries relation negated both_orders answer cot max_words max_tokens temperature paraphrases "
        "samples sampled_pairs sample_temperature k max_subsets max_items max_pairs"
    }

    items: str = "topics"
    """What judges compare in pairs: `topics` of a country, `traces` (models' reasoning on one country and topic), or
    the path of a file of items."""
    people: str | None = None
    """With a file of items: path of a file with people's labels on pairs, to measure how far judges agree with people.
    Its columns are `context,item_a,item_b,decision`; a decision is A, B or TIE. On a pair with a label, the label takes
    precedence over the items' scores (`human`)."""
    sets: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of sets of items that are compared. From more sets, this many are drawn at random by `seed`. All
    if not set."""
    countries: Literal["all"] | list[str] | None = None
    """Countries whose topics or traces are compared. If not set, the survey's first country."""
    relation: Literal["preference", "relevance", "coherence", "temporal", "causal"] = "preference"
    """What is asked about two items: which one is preferred (`preference`), more relevant (`relevance`), the more
    coherent summary (`coherence`, in English only), earlier (`temporal`) or the cause of the other (`causal`). Topics
    and traces allow only `preference`."""
    negated: bool = True
    """Whether each question is also asked in its negated form, "which is less …"."""
    both_orders: bool = True
    """Whether each pair is asked about in both orders, A and B, then B and A."""
    answer: Literal["structured", "probability"] = "structured"
    """`structured` asks for A, B or TIE as JSON. `probability` compares the probabilities of A and B as the next token;
    the provider must support log-probabilities. The more probable item wins. Questions are then repeated only with
    `sample_answer = "cot"`."""
    form: PromptForm = "standard"
    """Prompt of answers in JSON: `standard` allows TIE, and limits reasoning to `max_words`; `paper` asks for A or B
    only, as in Aligning with Logic, in words of our own and without a limit; equal probabilities of A and B count as A.
    `paper` exists in English."""
    cot: bool = False
    """Whether the judge reasons before it answers."""
    max_words: Annotated[int, Field(ge=5)] = 60
    """Requested length of the reasoning in words."""
    max_tokens: Annotated[int, Field(ge=1)] = 200
    """Maximum length of a judge's answer in tokens."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature of all questions except repeated ones."""
    paraphrases: Annotated[int, Field(ge=1, le=10)] = 1
    """Number of wordings of the question. Every comparison is asked in each wording."""
    samples: Annotated[int, Field(ge=0, le=100)] = 10
    """Number of times that a question is repeated, to measure whether a judge agrees with itself; 0 for none."""
    sample_answer: Literal["same", "cot"] = "same"
    """Form of the answer to repeated questions: `same` as to all others; `cot`, JSON after reasoning, also with
    `answer = "probability"`."""
    sampled_pairs: Annotated[int, Field(ge=0)] = 20
    """Number of pairs, drawn at random from each set of items, about which the question is repeated."""
    sample_temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Sampling temperature of repeated questions. With 0, all their answers would be equal."""
    k: Annotated[list[Annotated[int, Field(ge=3)]], Field(min_length=1)] = Field(default_factory=lambda: [3, 5])
    """Sizes of the groups of items in which transitivity is measured: the share of groups without a cycle, such as A
    over B, B over C and C over A."""
    max_subsets: Annotated[int, Field(ge=1)] = 1000
    """Number of groups of each size `k` that are drawn to measure transitivity, in each set of items. All groups are
    checked where there are at most four times as many, which takes less time."""
    max_items: Annotated[int, Field(ge=2)] = 30
    """Maximum number of items in each set that are compared. From a larger set, this many are drawn at random."""
    max_pairs: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of pairs that are compared in each set of items, drawn at random; all if not set."""

    @property
    def unestimated_reason(self) -> str | None:
        """Items that are traces depend on the answers, so that their number is not known."""
        return (
            "compares traces, whose number is not yet known, so it is not in this estimate"
            if self.items == "traces"
            else None
        )

    def check(self, config: AuditConfig) -> None:
        """Check the source of the items, and that the relation and the kind of answer fit them."""
        if self.cot and self.answer == "probability":
            raise ValueError(
                "probes.logic.cot: cannot be combined with answer = 'probability'. How to fix: Remove one of them."
            )
        if self.people is not None and self.items in ("topics", "traces"):
            raise ValueError(
                f"probes.logic.people: labels are for a file of items, but items = '{self.items}'. "
                "How to fix: Name a file of items, or remove people."
            )
        for key, value in (("form", self.form), ("relation", self.relation)):
            if value in ENGLISH_ONLY and config.languages != (ENGLISH,):
                raise ValueError(
                    f"probes.logic.{key}: '{value}' exists in English only. "
                    f"How to fix: Set language = '{ENGLISH}', or remove {key}."
                )
        if self.items == "topics" and config.survey is None:
            raise ValueError("the key 'survey' is missing. How to fix: Add it; the probe 'logic' compares its topics.")
        if self.items == "traces" and config.task is not None:
            raise ValueError(
                'probes.logic.items: "traces" cannot be used with a task. How to fix: Name a file of items.'
            )
        if self.items == "traces" and not config.probes.direct:
            raise ValueError(
                "probes.logic.items: 'traces' requires the probe 'direct'. How to fix: Add direct = {} to [probes]."
            )
        if self.items in ("topics", "traces") and self.relation != "preference":
            raise ValueError(
                f"probes.logic.relation: {self.items} can only be compared by preference. "
                "How to fix: Set relation = 'preference', or name a file of items."
            )

    def resolve_paths(self, resolve: Callable[[str], str]) -> Self:
        """Resolve the paths of the files of items and of labels."""
        people = None if self.people is None else resolve(self.people)
        return self.model_copy(update={"items": resolve(self.items), "people": people})
