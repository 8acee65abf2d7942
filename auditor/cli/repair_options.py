"""The options of `auditor logic repair`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from auditor.cli.options import optional_audit, output_file

if TYPE_CHECKING:
    from auditor.logic.repair_stages import RepairStage
    from auditor.logic.training_data import AnswerFormat, TrainingFormat
    from auditor.metrics.preference_repair import RatingMethod

Choice = TypeVar("Choice", bound=str)
ComparisonsArgument: TypeAlias = Annotated[
    str, optional_audit("An audit with comparisons; the most recent audit if left out.")
]
OnlyJudgeOption: TypeAlias = Annotated[
    str | None, typer.Option("--judge", help="Use only the comparisons of this judge.")
]
DiffOption: TypeAlias = Annotated[
    bool, typer.Option("--diff", help="List the pairs on which the repair reverses the judge's answer.")
]
RowsOption: TypeAlias = Annotated[
    Path | None, output_file("Write the comparisons of --stage, for training a model (.jsonl or .parquet).")
]
RowFormatOption: TypeAlias = Annotated[
    str, typer.Option("--form", help="With -o: format of the rows, preference (texts) or chat (messages).")
]
NoiseOption: TypeAlias = Annotated[
    float,
    typer.Option("--noise", min=0, max=1, help="Reverse this share of the answers (0 to 1) first, to test the repair."),
]
RatingsOption: TypeAlias = Annotated[
    bool, typer.Option("--ratings", help="Show each item's rating: win-loss rate, Bradley-Terry model and Elo.")
]
MethodOption: TypeAlias = Annotated[
    str, typer.Option("--method", help="How items are rated: win-loss, elo or bradley-terry.")
]
StageOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--stage",
        help="With -o: the answers to write: raw, perturbed (with --noise), repaired, or size-matched (a random sample "
        "of the repaired answers, with as many as before the repair).",
    ),
]
NegatedOption: TypeAlias = Annotated[
    bool, typer.Option("--negated/--no-negated", help="With -o: write also the questions in negated form.")
]
AnswersOption: TypeAlias = Annotated[
    str, typer.Option("--answers", help="With -o: how answers are written, json or letter (A or B only).")
]
KOption: TypeAlias = Annotated[
    int, typer.Option("--k", min=3, help="Number of items in the groups that are checked for cycles.")
]
SeedOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        help="Seed of the noise, of samples, and of the order of comparisons for elo (default: that of their file, or "
        "of the items).",
    ),
]
ToReviewOption: TypeAlias = Annotated[
    bool,
    typer.Option("--to-review", help="Have people decide the pairs on which the repair reverses the judge's answer."),
]


@dataclass(frozen=True)
class RepairOptions:
    """The options of the command that bear on the repair and its data; see the help of each."""

    row_format: TrainingFormat
    method: RatingMethod
    stage: RepairStage
    answer_format: AnswerFormat
    noise: float
    k: int
    seed: int | None
    is_negated: bool
    output: Path | None

    @classmethod
    def read(
        cls, *, row_format: str, method: str, stage: str, answers: str, noise: float, k: int, seed: int | None,
        is_negated: bool, output: Path | None,
    ) -> RepairOptions:  # fmt: skip
        """The options with their choices; UsageError for an unknown one."""
        from auditor.logic.repair_stages import REPAIR_STAGES
        from auditor.logic.training_data import ANSWER_FORMATS, TRAINING_FORMATS
        from auditor.metrics.preference_repair import RATING_METHODS

        return cls(
            row_format=_choose("--form", row_format, TRAINING_FORMATS),
            method=_choose("--method", method, RATING_METHODS),
            stage=_choose("--stage", stage, REPAIR_STAGES),
            answer_format=_choose("--answers", answers, ANSWER_FORMATS),
            noise=noise,
            k=k,
            seed=seed,
            is_negated=is_negated,
            output=output,
        )

    def check(self, *, is_for_review: bool) -> None:
        """Raise UsageError for options that exclude each other or have no effect, and for a file of another format."""
        from auditor.errors import UsageError
        from auditor.logic.training_data import check_suffix

        if self.stage == "perturbed" and not self.noise:
            raise UsageError("--stage: 'perturbed' requires --noise.", "Add --noise 0.1, or use --stage raw.")
        if self.output is not None:
            check_suffix(self.output)
        elif unused := [
            option
            for option, value, default in (
                ("--stage", self.stage, "repaired"),
                ("--answers", self.answer_format, "json"),
                ("--form", self.row_format, "preference"),
            )
            if value != default
        ]:
            raise UsageError(f"{', '.join(unused)}: no effect without -o.", "Add -o FILE, or leave it out.")
        if self.noise and is_for_review:
            raise UsageError(
                "answers that --noise reversed are not verdicts of the judge.", "Leave out --noise or --to-review."
            )


def _choose(option: str, value: str, choices: tuple[Choice, ...]) -> Choice:
    """The choice that an option names; UsageError if there is none of this name."""
    from auditor.errors import UsageError

    for choice in choices:
        if choice == value:
            return choice
    raise UsageError(f"{option}: '{value}' is unknown.", f"Use {', '.join(choices[:-1])} or {choices[-1]}.")
