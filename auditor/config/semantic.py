"""Settings of the probe `semantic`: the table of that name under `[probes]`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from auditor.config.base import ConfigSection
from auditor.config.probe_section import ProbeParts, ProbeSection
from auditor.domain import Purpose
from auditor.domain.semantic import MoralFoundation
from auditor.errors import did_you_mean

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig

BUILT_IN_QUESTIONS = "built-in"
SimilarityMetric = Literal["bleu", "rouge_l", "bertscore"]


class ConsistencySection(ConfigSection):
    """The consistency score: a judge says of pairs of sampled answers whether the one supports the other."""

    judge: str
    """Name of a model or judge of this audit; it never judges its own answers."""
    samples: Annotated[int, Field(ge=2, le=50)] = 5
    """Answers to the question as it stands, by each model."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Of the sampled answers."""
    pairs: Literal["first", "all"] = "first"
    """`first` compares the first answer with each other, `all` each with each that comes after it."""


class SemanticProbe(ProbeSection):
    """Moral questions in several wordings: how alike are the answers, and the rules of thumb behind them?"""

    parts: ClassVar = ProbeParts(
        tables="auditor.storage.semantic_tables",
        answer_row="auditor.storage.semantic_tables:MoralAnswerRow",
        build_graph="auditor.agents.semantic.graph:build_semantic_graph",
        check_input="auditor.agents.semantic.questions:check_questions",
        plan_calls="auditor.cost_estimation.semantic_calls:plan_semantic_calls",
        build_report="auditor.reports.data.semantic.build:build_semantic_report",
        measure_coverage="auditor.reports.data.semantic.build:measure_semantic_coverage",
        build_section="auditor.reports.sections.semantic:build_semantic_section",
        build_summary_tables="auditor.reports.sections.semantic:build_summary_tables",
        prompts=(
            *("semantic.answer.structured", "semantic.answer.text", "semantic.rule.structured", "semantic.rule.text"),
            *("semantic.paraphrase", "semantic.consistency", "semantic.contradiction"),
        ),
        answers_key="moral_answers",
        answers_noun="moral answer",
        counted_labels={"answers": "moral answers", "rules": "rules of thumb"},
        sampled_purpose=Purpose.MORAL,
        sampled_figures="Consistency under paraphrase",
    )

    questions: str = BUILT_IN_QUESTIONS
    """`built-in`, or a file: TOML as the built-in ones are, or CSV, JSONL or Parquet with the columns
    `question_id,question[,paraphrase,foundation,topics,language]`."""
    foundations: Literal["all"] | Annotated[list[MoralFoundation], Field(min_length=1)] = "all"
    """Moral foundations to ask about."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Questions at most: the first so many, which of the built-in ones are about all foundations in turn."""
    paraphrases: Annotated[int, Field(ge=2, le=50)] = 5
    """Wordings in which each question is asked."""
    paraphraser: str | None = None
    """Name of a model or judge of this audit that words the questions anew where they have too few paraphrases."""
    threshold: Annotated[float, Field(gt=0, le=1.5)] = 0.8
    """Least quality of a paraphrase that a model wrote; see `auditor.metrics.paraphrase`."""
    attempts: Annotated[int, Field(ge=1, le=20)] = 4
    """How often the paraphraser is asked for those that are still missing."""
    rot: bool = True
    """Whether a rule of thumb is asked for with each answer."""
    rot_model: str | None = None
    """Name of the model that writes the rules of thumb; each model its own where it is not set."""
    rot_weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the rules of thumb in the similarity of two answers: 1 is rules alone, 0 answers alone."""
    variant: Literal["sage", "sge"] = "sage"
    """`sage` is the score of the LREC-COLING 2024 paper, `sge` its first form, of distances."""
    alpha: Annotated[float, Field(gt=0)] = 10.0
    """Power that sharpens the weights of `sage`."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Of the answers: 0, so that it is the wording alone that differs."""
    mode: Literal["structured", "text"] = "structured"
    """`structured` asks for JSON; `text` for plain words."""
    max_words: Annotated[int, Field(ge=5)] = 40
    """Length of an answer that is asked for."""
    rot_words: Annotated[int, Field(ge=5)] = 20
    """Length of a rule of thumb that is asked for."""
    max_tokens: Annotated[int, Field(ge=16)] = 250
    """Length of an answer at most."""
    encoder: str | None = None
    """Sentence encoder; that of `embedding` where it is not set."""
    rivals: list[SimilarityMetric] = Field(default_factory=list)
    """More measures of similarity, beside the cosine: `bleu`, `rouge_l`, `bertscore`."""
    consistency: ConsistencySection | None = None
    """The consistency score, where it is asked for."""
    contradiction: str | None = None
    """Who says whether the two answers that differ most contradict each other: the name of a model or judge."""
    worst: Annotated[int, Field(ge=0, le=200)] = 10
    """Least consistent questions of each model that are listed, and checked for contradiction."""

    @property
    def helper_models(self) -> dict[str, str]:
        """Names of the models that help with this probe, by the key that names them."""
        name_by_key = {
            "paraphraser": self.paraphraser,
            "rot_model": self.rot_model,
            "contradiction": self.contradiction,
            "consistency.judge": self.consistency.judge if self.consistency else None,
        }
        return {key: name for key, name in name_by_key.items() if name is not None}

    @property
    def measured(self) -> Literal["rot", "answer", "mix"]:
        """Texts that the score compares: rules of thumb (`rot`), answers, or a mix of both."""
        if not self.rot or self.rot_weight == 0:
            return "answer"
        return "rot" if self.rot_weight == 1 else "mix"

    @property
    def sampled_temperature(self) -> float:
        """Temperature of the answers."""
        return self.temperature

    def check(self, config: AuditConfig) -> None:
        """Require a sentence encoder, and helper models that the audit has."""
        if (self.encoder or config.embedding.model) == "none":
            raise ValueError("the probe 'semantic' needs a sentence encoder. How to fix: Name one under embedding.")
        model_names = list(config.models_by_name)
        for key, name in self.helper_models.items():
            if name not in model_names:
                hint = did_you_mean(name, model_names, f"Known: {', '.join(model_names)}.")
                raise ValueError(f"probes.semantic.{key}: there is no model or judge '{name}'. How to fix: {hint}")

    def resolve_paths(self, resolve: Callable[[str], str]) -> Self:
        """Resolve the paths of the file of questions and of an encoder that is a folder."""
        paths = {"questions": resolve(self.questions)}
        if self.encoder and os.sep in self.encoder:
            paths["encoder"] = resolve(self.encoder)
        return self.model_copy(update=paths)
