"""Numbers and order of unnamed judges depend only on what they say."""

from __future__ import annotations

import itertools

from auditor.config import AuditConfig, DirectProbe, ModelSection, Probes, SurveySection
from auditor.domain import Cell, Outcome, Ruling, Verdict
from auditor.exports.traces import describe_anonymous_verdicts, make_name_mask

CELL = Cell("Egypt", "divorce")


def verdict(judge: str, ruling: Ruling | None, justification: str | None) -> Verdict:
    """A judge's verdict on one answer."""
    outcome = Outcome.REFUSED if ruling is None else Outcome.OK
    return Verdict(judge, "author", CELL, 0, outcome, ruling, justification, aspects={"score_fit": True})


def test_other_names_of_the_judges_change_nothing() -> None:
    contents = [(Ruling.INVALID, "b"), (Ruling.VALID, "z"), (None, None), (Ruling.VALID, "a")]
    shown = [
        describe_anonymous_verdicts(
            [verdict(judge, *content) for judge, content in zip(names, contents, strict=True)], str
        )
        for names in itertools.permutations(("oak", "elm", "fir", "ash"))
    ]
    shown += [describe_anonymous_verdicts([verdict("x", *content) for content in reversed(contents)], str)]
    assert all(verdicts == shown[0] for verdicts in shown)
    assert [(row.verdict.judge, row.verdict.justification) for row in shown[0]] == [
        ("judge 1", "a"),
        ("judge 2", "z"),
        ("judge 3", "b"),
        ("judge 4", None),
    ]


def test_a_judge_that_names_itself_or_its_maker_is_masked() -> None:
    config = AuditConfig(
        name="x",
        survey=SurveySection(source="x"),
        models=[ModelSection(name="oak", model="openai/gpt-4o"), ModelSection(name="b", model="x/my-tuned-9b")],
        probes=Probes(direct=DirectProbe(samples=1)),
    )
    mask = make_name_mask(config, ["oak", "b"])
    text = mask("As oak, known as GPT-4o, made by OpenAI, unlike Claude and my-tuned-9b, I disagree.")
    for name in ("oak", "GPT", "OpenAI", "Claude", "tuned"):
        assert name not in text
    assert mask("The oaken door follows.") == "The oaken door follows."
    assert make_name_mask(None, [])("The score fits.") == "The score fits."
