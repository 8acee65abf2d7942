"""Names of review aspects become columns, keys and fields, so they must differ from all others there."""

from __future__ import annotations

from dataclasses import fields

from auditor.domain import Verdict
from auditor.domain.decisions import REVIEW_ASPECTS, aspect_questions
from auditor.models.answer_schemas import Review
from auditor.reports.data.measurement_schema import PeerAgreementRow

NAMES = [aspect.name for aspect in REVIEW_ASPECTS]


def test_names_are_distinct_from_each_other_and_from_other_fields() -> None:
    (_, row_class, *_) = PeerAgreementRow.__mro__  # the class before the fields of the aspects are added
    assert row_class.__name__ == PeerAgreementRow.__name__
    assert list(PeerAgreementRow.model_fields) == [*vars(row_class)["__annotations__"], *NAMES]
    exported = [*(field.name for field in fields(Verdict)), *NAMES]
    assert len(set(exported)) == len(exported)
    assert all(name.isidentifier() and name == name.lower() for name in NAMES)
    assert len({aspect.label for aspect in REVIEW_ASPECTS}) == len(REVIEW_ASPECTS)


def test_keys_of_questions_are_distinct_from_other_fields_of_the_answer() -> None:
    for for_task in (False, True):
        keys = [question.key for question in aspect_questions(for_task=for_task).values()]
        assert keys
        fields = [*Review.model_fields, *keys]
        assert len(set(fields)) == len(fields)


def test_a_question_is_asked_only_where_it_applies() -> None:
    assert list(aspect_questions(for_task=False)) == [aspect.name for aspect in REVIEW_ASPECTS if aspect.survey]
    assert "cultural_accuracy" not in aspect_questions(for_task=True)
    assert aspect_questions(for_task=True)["score_fit"].key == "answer_fit"
