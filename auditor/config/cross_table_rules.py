"""Rules between the tables of one file; each raises a ValueError whose message goes to the user as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.config.installed_probes import list_built_in_probes
from auditor.config.model_section import ModelSection
from auditor.config.probes import Probes, ReviewProbe
from auditor.config.providers import EMBEDDED, REPLAY, SIMULATED
from auditor.config.sections import PanelSection
from auditor.domain import ENGLISH
from auditor.domain.personas import PERSONAS, find_persona
from auditor.errors import did_you_mean, pluralize

SIMULATED_NAME_START = "simulated"
"""Start of the name of every audit of simulated models."""


def is_same_model(judge: ModelSection, author: ModelSection) -> bool:
    """Whether two entries are one model asked the same way: same id, server, system prompt, temperature, parameters
    and reasoning."""
    identity = ("model", "api_base", "system", "temperature", "params", "reasoning")
    return all(getattr(judge, key) == getattr(author, key) for key in identity)


def require_enough_judges(panel: PanelSection, judge_counts: Mapping[str, int]) -> None:
    """Require at least `panel.judges_per_trace` judges for every model; `judge_counts` is by model."""
    if panel.judges_per_trace is None:
        return
    author, max_judges = min(judge_counts.items(), key=lambda item: item[1])
    if panel.judges_per_trace > max_judges:
        raise ValueError(
            f"panel.judges_per_trace: {panel.judges_per_trace} is more than the "
            f"{pluralize(max_judges, 'judge')} that may judge '{author}'. How to fix: Set it to "
            f"{max_judges} or less, or add judges."
        )


def require_weights_source(panel: PanelSection, probes: Probes) -> None:
    """Require what `panel.weights_from` needs: weighted votes, no other weights, and a probe that measures weights."""
    if panel.weights_from is None:
        if panel.bench_below:
            raise ValueError(
                f'panel.bench_below: requires weights_from = "{_list_weighing_probes()[0]}". How to fix: Add it, or '
                "remove bench_below."
            )
        return
    sources = _list_weighing_probes()
    if panel.weights_from not in sources:
        hint = did_you_mean(panel.weights_from, sources, f"Probes that measure weights: {', '.join(sources)}.")
        raise ValueError(f"panel.weights_from: no probe '{panel.weights_from}' measures weights. How to fix: {hint}")
    if panel.vote != "weighted":
        raise ValueError('panel.weights_from: requires vote = "weighted". How to fix: Add it.')
    if panel.weights:
        raise ValueError("panel.weights_from: cannot be combined with panel.weights. How to fix: Remove one of them.")
    if panel.weights_from not in probes.stages:
        name = panel.weights_from
        raise ValueError(f"panel.weights_from: requires the probe '{name}'. How to fix: Add {name} = {{}} to [probes].")


def _list_weighing_probes() -> list[str]:
    """The probes that measure weights of the judges' votes."""
    return [probe.name for probe in list_built_in_probes() if probe.weighs_votes]


def require_usable_weights(panel: PanelSection, judges: list[str]) -> None:
    """Require a weight for each judge, not all 0, if votes are weighted; and no weight of an unknown judge."""
    for name in panel.weights:
        if name not in judges:
            hint = did_you_mean(name, judges, f"Judges: {', '.join(judges) or 'none'}.")
            raise ValueError(f"panel.weights: there is no judge '{name}'. How to fix: {hint}")
    if panel.vote == "dawid_skene" and panel.adaptive:
        raise ValueError(
            'panel: vote = "dawid_skene" needs all verdicts, so it cannot be combined with adaptive = true. '
            "How to fix: Remove one of them."
        )
    if panel.vote != "weighted":
        return
    if not panel.weights:
        raise ValueError(
            'panel: vote = "weighted" needs weights. '
            "How to fix: Add panel.weights; `auditor export weights AUDIT` computes them from reviewers' decisions."
        )
    panel.vote_weights(judges)
    if not any(panel.weights.values()):
        raise ValueError(
            "panel.weights: all weights are 0, so no judge has a vote. How to fix: Set at least one above 0."
        )


def require_known_rewriter(review: ReviewProbe, model_names: list[str]) -> None:
    """Require that the rewriter is a model or judge of the audit, if traces are rewritten."""
    if review.rewrite == "none" or review.rewriter in model_names:
        return
    problem = f"there is no model '{review.rewriter}'" if review.rewriter else 'rewrite = "neutral" requires a rewriter'
    raise ValueError(
        f"probes.review.rewriter: {problem}. How to fix: Name one of {', '.join(dict.fromkeys(model_names))}."
    )


def require_distinct_models(models: list[ModelSection]) -> None:
    """Reject two names for one model with the same parameters: they would share every answer."""
    for i, model in enumerate(models):
        twin = next((other for other in models[:i] if is_same_model(other, model)), None)
        if twin is not None:
            raise ValueError(
                f"models: '{twin.name}' and '{model.name}' are the same model with the same parameters, so they would "
                "share every answer. How to fix: Remove one of them, or change its parameters."
            )


def require_local_weights(models: Sequence[ModelSection], probes: Probes) -> None:
    """Require local weights of every model if the probe `logprob` scores continuations."""
    if probes.logprob is None or probes.logprob.method != "continuation":
        return
    for model in models:
        if model.weights is None and model.provider is not EMBEDDED:
            raise ValueError(
                f"model '{model.name}' has no weights on this machine; probes.logprob.method = 'continuation' "
                "requires them. How to fix: Set the model's key 'weights', or choose another method."
            )


def require_same_rate_limits(models: Sequence[ModelSection]) -> None:
    """Reject different limits per minute of models that share those of their account."""
    sharing_models = [model for model in models if model.rate_limit_scope == "account"]
    for key in ("rpm", "tpm"):
        first_by_account: dict[object, ModelSection] = {}
        for model in sharing_models:
            if (limit := getattr(model, key)) is None:
                continue
            first = first_by_account.setdefault(model.rate_limit_key, model)
            if limit != getattr(first, key):
                raise ValueError(
                    f"models '{first.name}' and '{model.name}' share one limit {key} of their account, but it is "
                    f"{getattr(first, key)} and {limit}. How to fix: Set {key} for one of them only, or remove "
                    "rate_limit_scope from both."
                )


def require_recorded_answers(
    models: Sequence[ModelSection], judges: Sequence[ModelSection], review: ReviewProbe
) -> None:
    """Require a file of answers for every replayed model, and one of verdicts for every replayed judge.

    Args:
        judges: all judges; with peers, the models that judge.
    """
    for model in models:
        if model.provider is REPLAY and model.answers is None:
            raise ValueError(
                f"model '{model.name}' replays recorded answers, but the key 'answers' is missing. How to fix: Set it "
                "to a file with the columns model,country,topic,sample,text (for the probe 'semantic' alone: "
                "question_id,sample,answer)."
            )
    for judge in judges:
        if judge.provider is REPLAY and judge.verdicts is None:
            raise ValueError(
                f"judge '{judge.name}': a model with recorded answers cannot judge. How to fix: Remove this judge, or "
                "set its key 'verdicts' to a file with the columns judge,model,country,topic,verdict."
            )
    for model in (*models, *judges):
        if model.verdicts is not None and model.provider is not REPLAY:
            raise ValueError(
                f"model '{model.name}': only a judge '{REPLAY.prefix}/NAME' has recorded verdicts. How to fix: Remove "
                "'verdicts', or change 'model'."
            )
    _require_recorded_traces(models, judges, review)


def _require_recorded_traces(
    models: Sequence[ModelSection], judges: Sequence[ModelSection], review: ReviewProbe
) -> None:
    """Require, where a judge's verdicts are recorded, that all answers are, and that judges are asked nothing else."""
    recorded_judge = next((judge for judge in judges if judge.verdicts is not None), None)
    if recorded_judge is None:
        return
    if asked := next((model for model in models if model.provider is not REPLAY), None):
        raise ValueError(
            f"judge '{recorded_judge.name}' has recorded verdicts, but answers of '{asked.name}' will be new: no "
            f"verdict on them is recorded. How to fix: Remove '{asked.name}', replay its recorded answers "
            f"({REPLAY.prefix}/NAME), or remove this judge's key 'verdicts'."
        )
    names_by_record: dict[str, str] = {}
    for model in models:
        if (other := names_by_record.setdefault(model.model, model.name)) != model.name:
            raise ValueError(
                f"models '{other}' and '{model.name}' both replay '{model.model}': verdicts on their answers cannot be "
                f"told apart. How to fix: Remove one, or the key 'verdicts' of '{recorded_judge.name}'."
            )
    if review.guess or review.rewrite != "none":
        key = "guess" if review.guess else "rewrite"
        raise ValueError(
            f"probes.review.{key}: judges are asked further questions, but '{recorded_judge.name}' has recorded "
            f"verdicts only. How to fix: Remove '{key}', or this judge's key 'verdicts'."
        )


def require_simulated_models_only(audit_name: str, models: Sequence[ModelSection]) -> None:
    """Require that all models are simulated or none is, with known personas, and a name that says so.

    Models whose answers are replayed from a file are asked nothing, so they may stand beside simulated ones. The name
    is on every page, table and export of an audit, so that none can be taken for a measurement.
    """
    simulated = [model for model in models if model.provider is SIMULATED]
    if not simulated:
        return
    if real := [model for model in models if model.provider not in (SIMULATED, REPLAY)]:
        raise ValueError(
            f"model '{simulated[0].name}' is simulated, but '{real[0].name}' ({real[0].model}) is not: simulated and "
            "real models cannot be in one audit. How to fix: Remove the simulated or the real models."
        )
    if not audit_name.startswith(SIMULATED_NAME_START):
        raise ValueError(
            f"name: models of '{audit_name}' are simulated, so its name must start with '{SIMULATED_NAME_START}'. "
            f'How to fix: Set name = "{SIMULATED_NAME_START}-{audit_name}".'
        )
    for model in simulated:
        persona_name = model.unprefixed_model
        if find_persona(persona_name) is None:
            hint = did_you_mean(persona_name, PERSONAS, f"Known: {', '.join(PERSONAS)}.")
            raise ValueError(f"model '{model.name}': there is no simulated model '{persona_name}'. How to fix: {hint}")


def require_unique_names(names: list[str], table_name: str) -> None:
    """Reject a name that is used twice within a table."""
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValueError(
            f"{table_name}: the name {', '.join(map(repr, duplicates))} is used twice. "
            "How to fix: Use a different name for each."
        )


def require_no_renamed_models(models: list[ModelSection], judges: list[ModelSection]) -> None:
    """Reject a judge that is an audited model under another name: it would judge itself."""
    for judge in judges:
        author = next((model for model in models if model.name != judge.name and is_same_model(judge, model)), None)
        if author is not None:
            raise ValueError(
                f"judges: '{judge.name}' is the audited model '{author.name}' under another name. How to fix: Give "
                f"the judge the same name, '{author.name}': it then judges all others, but never itself."
            )


def require_same_model_for_shared_names(models: list[ModelSection], judges: list[ModelSection]) -> None:
    """Reject a judge with the name of an audited model but other settings."""
    audited_models = {model.name: model for model in models}
    for judge in judges:
        if judge.name in audited_models and judge != audited_models[judge.name]:
            raise ValueError(
                f"judges: '{judge.name}' is also an audited model with other settings. How to fix: Rename the judge."
            )


def require_standalone_task(probes: Probes, languages: Sequence[str], *, has_survey: bool) -> None:
    """Reject settings that need countries and topics if the audit has a task, which only the direct probe asks."""
    if has_survey:
        raise ValueError("both 'survey' and 'task' are set, but an audit has only one. How to fix: Remove one of them.")
    if probes.direct is None:
        raise ValueError("task: no probe uses its items. How to fix: Add direct = {} to [probes], or remove the task.")
    if probes.direct.is_open_ended:
        key = "tolerance" if probes.direct.tolerance is not None else "target_width"
        raise ValueError(
            f"probes.direct.{key}: cannot be used with a task, since it needs a survey. How to fix: Remove it."
        )
    if probes.logprob is not None:
        raise ValueError("probes.logprob: cannot be used with a task, since it needs a survey. How to fix: Remove it.")
    for name, probe in (("direct", probes.direct), ("review", probes.review)):
        if probe.form != "standard":
            raise ValueError(
                f'probes.{name}.form: cannot be used with a task, since "{probe.form}" is a prompt about countries. '
                "How to fix: Remove it."
            )
    if probes.review.rewrite != "none":
        raise ValueError(
            "probes.review.rewrite: cannot be used with a task, since it needs a survey. How to fix: Remove it."
        )
    if tuple(languages) != (ENGLISH,):
        raise ValueError(
            "language: the items of a task are not translated, so they have no other language. How to fix: Set "
            f'language = "{ENGLISH}", or remove it.'
        )
