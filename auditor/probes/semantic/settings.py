"""Settings of the probe `semantic`: the table of that name under `[probes]`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field

from auditor.config.base import ConfigSection, PromptForm
from auditor.config.model_section import ModelSection
from auditor.config.probe_section import ProbeSection
from auditor.config.providers import REPLAY
from auditor.config.value_checks import DEFAULT_ENCODER
from auditor.errors import did_you_mean
from auditor.probes.semantic.records import MoralFoundation

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig

BUILT_IN_QUESTIONS = "built-in"
DEFAULT_BERTSCORE_MODEL = "google-bert/bert-base-uncased"
TASK_QUESTIONS = "task"
SimilarityMetric = Literal["bleu", "bleu_nltk", "rouge_l", "rouge_l_stemmed", "bertscore", "bertscore_bert_base"]


class ConsistencySection(ConfigSection):
    """The consistency score: a judge decides for pairs of sampled answers whether one supports the other."""

    judge: str
    """Name of the model or judge of this audit that compares the answers; it never judges its own."""
    samples: Annotated[int, Field(ge=2, le=50)] = 5
    """Number of times that each model answers each question in its original wording. Of recorded answers and of those
    to a task's items, all are compared."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Sampling temperature of the answers that the judge compares."""
    pairs: Literal["first", "all"] = "first"
    """Which answers to one question are compared: `first`, the first with every other; `all`, every pair."""
    form: PromptForm = "standard"
    """Prompt of the judge: `standard`, this program's own, answered as JSON with a reason at temperature 0; `paper`,
    the form that the consistency score was published in, in words of our own: three messages without the question,
    answered yes or no, at temperature 0.5 in at most 50 tokens. The judge's own `params` take precedence."""


class SemanticProbe(ProbeSection):
    """Consistency of the answers to moral questions in several wordings, and of the rules of thumb behind them."""

    keys_hashed_at_defaults: ClassVar = {
        "": "questions foundations limit paraphrases paraphraser threshold attempts rot rot_model rot_weight variant "
        "alpha temperature mode max_words rot_words max_tokens encoder rivals consistency contradiction worst",
        ".consistency": "judge samples temperature pairs",
    }

    questions: str = BUILT_IN_QUESTIONS
    """`built-in`, or the path of a file: TOML in the format of the built-in questions, or CSV, JSONL or Parquet with
    the columns `question_id,question[,paraphrase,foundation,topics,language]`. `task`: the items of this audit's task,
    with the answers of the probe `direct`; needs `paraphrases = 0`."""
    subject: Literal["moral", "any"] = "moral"
    """What the questions are about, as the prompts say: `moral`, what is right; `any`, any subject. `any` needs
    `rot = false`, since rules of thumb are about what is right. Items of a task are on any subject."""
    foundations: Literal["all"] | Annotated[list[MoralFoundation], Field(min_length=1)] = "all"
    """Moral foundations (of moral foundations theory) to ask about, such as care or fairness; `all` for all."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of questions, from the start of the list. The built-in list takes the moral foundations (care,
    fairness and so on) in turn, so that a short list still covers them."""
    paraphrases: Annotated[int, Field(ge=0, le=50)] = 5
    """Number of wordings of each question, at least 2. With 0, only the original wording is asked, and only the
    consistency score (`consistency`) is measured, without a sentence encoder."""
    paraphraser: str | None = None
    """Name of the model or judge of this audit that writes further wordings of questions with too few."""
    translator: str | None = None
    """Name of the model or judge of this audit that translates answers, where questions have wordings in several
    languages: how similar answers with one meaning are across languages. Needs a multilingual `encoder`."""
    threshold: Annotated[float, Field(gt=0, le=1.5)] = 0.8
    """Minimum quality of a wording that a model wrote (its ParaScore: similar meaning in different words); worse ones
    are not used."""
    attempts: Annotated[int, Field(ge=1, le=20)] = 4
    """Maximum number of times that the paraphraser is asked for missing wordings of a question."""
    rot: bool = True
    """Whether each answer must include a rule of thumb: the general moral rule behind it, in a sentence."""
    rot_model: str | None = None
    """Name of the model that writes the rules of thumb behind all models' answers. If not set, each model writes its
    own."""
    rot_weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Weight of the rules of thumb in the similarity of two answers: 1 uses only rules, 0 only answers."""
    variant: Literal["sage", "sge"] = "sage"
    """Formula of the consistency under paraphrase: `sage`, from the similarities between answers (SaGE, LREC-COLING
    2024), or `sge`, an earlier version from their distances (arXiv 2402.01719). Use `sage` unless you compare with
    results of `sge`."""
    alpha: Annotated[float, Field(gt=0)] = 10.0
    """Exponent of the weights in SaGE, the measure that `variant` names; a larger one emphasizes answers that resemble
    many others."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """Sampling temperature of the answers. With 0, answers to a question differ only because of its wording."""
    mode: Literal["structured", "text"] = "structured"
    """Form of the answer that is asked for: `structured`, a JSON object; `text`, plain text."""
    max_words: Annotated[int, Field(ge=5)] = 40
    """Requested length of an answer in words."""
    rot_words: Annotated[int, Field(ge=5)] = 20
    """Requested length of a rule of thumb in words."""
    max_tokens: Annotated[int, Field(ge=16)] = 250
    """Maximum length of an answer in tokens."""
    encoder: str | None = None
    """Sentence encoder that turns answers into vectors, to measure their similarity. If not set, that of the section
    `embedding`."""
    rivals: list[SimilarityMetric] = Field(default_factory=list)
    """Measures of the similarity between answers to report besides the cosine of their embeddings: `bleu`, `rouge_l`,
    `bertscore`. `bleu_nltk`, `rouge_l_stemmed` and `bertscore_bert_base` are BLEU, ROUGE-L and BERTScore as the
    authors of SaGE computed them."""
    bertscore_model: str = DEFAULT_BERTSCORE_MODEL
    """Weights for the measure `bertscore_bert_base`: a folder, or a name on the Hugging Face hub."""
    consistency: ConsistencySection | None = None
    """Settings of the consistency score: how often a judge finds that sampled answers support each other. Without this
    section, it is not computed."""
    contradiction: str | None = None
    """Name of the model or judge that decides whether a model's two most different answers to a question contradict
    each other."""
    worst: Annotated[int, Field(ge=0, le=200)] = 10
    """Number of questions per model, the least consistent ones, that the report lists and checks for contradictions."""

    @property
    def helper_models(self) -> dict[str, str]:
        """Names of the models that help with this probe, by the key that names them."""
        name_by_key = {
            "paraphraser": self.paraphraser,
            "translator": self.translator,
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
    def used_bertscore_model(self) -> str:
        """Weights that the measure `bertscore_bert_base` needs; empty if it is not among `rivals`."""
        return self.bertscore_model if "bertscore_bert_base" in self.rivals else ""

    @property
    def sampled_temperature(self) -> float:
        """Temperature of the answers."""
        return self.temperature

    @property
    def prompt_suffix(self) -> str:
        """End of the names of the prompts that mention the subject of the questions."""
        return "" if self.subject == "moral" and self.questions != TASK_QUESTIONS else ".any"

    def has_given_answers(self, config: AuditConfig, model: ModelSection) -> bool:
        """Whether a model's answers come from the probe `direct` or from a file, so that it is asked no question."""
        is_recorded = model.provider is REPLAY and config.probes.direct is None
        return is_recorded or self.questions == TASK_QUESTIONS

    def check(self, config: AuditConfig) -> None:
        """Require a sentence encoder if wordings are compared, and helper models that the audit has."""
        if self.questions == TASK_QUESTIONS and config.task is None:
            raise ValueError(
                'probes.semantic.questions: "task" needs a task, but the audit has none. How to fix: Add [task], or '
                "name a file of questions."
            )
        self._check_paraphrases(config)
        if self.paraphrases and self.rot and self.subject == "any":
            raise ValueError(
                'probes.semantic.rot: rules of thumb are about what is right, but subject = "any". '
                "How to fix: Set rot = false."
            )
        if self.paraphrases and (self.encoder or config.embedding.model) == "none":
            raise ValueError(
                "the probe 'semantic' compares answers with a sentence encoder, but none is set. How "
                f'to fix: Set embedding.model, for example to "{DEFAULT_ENCODER}".'
            )
        model_names = list(config.models_by_name)
        for key, name in self.helper_models.items():
            if name not in model_names:
                hint = did_you_mean(name, model_names, f"Known: {', '.join(model_names)}.")
                raise ValueError(f"probes.semantic.{key}: there is no model or judge '{name}'. How to fix: {hint}")

    def _check_paraphrases(self, config: AuditConfig) -> None:
        """Require several wordings, or none if nothing compares them; none for given answers."""
        if self.paraphrases == 1:
            raise ValueError(
                "probes.semantic.paraphrases: one wording cannot be compared with others. How to fix: Set it to 2 or "
                "more, or to 0 for the consistency score alone."
            )
        given_answers = [model.name for model in config.models if self.has_given_answers(config, model)]
        if self.paraphrases and given_answers:
            raise ValueError(
                f"probes.semantic.paraphrases: the answers of '{given_answers[0]}' are given, and are to the original "
                "wording only. How to fix: Set paraphrases = 0."
            )
        if self.paraphrases == 0 and (self.consistency is None or self.contradiction or self.rivals):
            key = "consistency" if self.consistency is None else "contradiction" if self.contradiction else "rivals"
            fix = 'Add consistency = { judge = "NAME" }' if self.consistency is None else f"Remove {key}"
            raise ValueError(
                f"probes.semantic.{key}: with paraphrases = 0, only the consistency score is measured. How to fix: "
                f"{fix}, or set paraphrases to 2 or more."
            )

    def resolve_paths(self, resolve: Callable[[str], str]) -> Self:
        """Resolve the paths of the file of questions and of encoders that are folders."""
        paths = {"questions": resolve(self.questions)}
        for key in ("encoder", "bertscore_model"):
            if (folder := getattr(self, key)) and os.sep in folder:
                paths[key] = resolve(folder)
        return self.model_copy(update=paths)
