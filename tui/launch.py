"""Start the app on a database."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from auditor.domain.labels import LabelKind
from auditor.review.completion import OnDecided
from auditor.review.conflict_list import DEFAULT_SECOND_RATER_SHARE
from auditor.storage import audits
from auditor.storage.database import open_database
from auditor.tui.app import ReviewApp
from auditor.tui.rater_app import RaterApp
from auditor.tui.settings import load_review_settings


@contextmanager
def idle_garbage_collection(app: RaterApp) -> Iterator[None]:
    """Collect garbage only while there is no input, since a collection blocks the screen for up to 0.1 s."""
    gc.collect()
    gc.freeze()
    gc.disable()
    app.collects_when_idle = True
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def run_review(
    storage_url: str,
    audit: str | None = None,
    *,
    rater: str,
    blind: bool = True,
    second_rater_share: float = DEFAULT_SECOND_RATER_SHARE,
    on_decided: OnDecided | None = None,
) -> None:
    """Run the app on a database until the reviewer quits.

    Args:
        storage_url: URL of the database, such as `sqlite:///auditor.db`; only ratings are written to it.
        audit: name of the audit whose queue is opened first.
        rater: name of the reviewer, stored with their ratings.
        blind: whether authors, verdicts and survey are hidden until the decision.
        second_rater_share: share of conflicts, in [0, 1], that two raters decide.
        on_decided: see `ReviewApp`; also called after the app has ended.

    Raises:
        StorageError: the database or the audit does not exist.
        ConfigError: the reviewer's settings are invalid.
        Exception: any error that ended the app unexpectedly.
    """
    settings = load_review_settings()
    with open_database(storage_url, create=False) as db:
        if audit is not None:
            audits.get_audit(db, audit)
        app = ReviewApp(
            db,
            rater=rater,
            audit=audit,
            blind=blind,
            second_rater_share=second_rater_share,
            settings=settings,
            on_decided=on_decided,
        )
        with idle_garbage_collection(app):
            app.run()
        app.notify_decided_audits()
        _raise_fatal_error(app)


def run_labelling(
    storage_url: str, audit: str, *, rater: str, kind: LabelKind = LabelKind.TRACE, **options: Any
) -> None:
    """Run the app in which a rater labels the random sample of an audit, until the rater quits.

    Args:
        storage_url: URL of the database; only labels are written to it.
        audit: name of the audit.
        rater: name of the rater, stored with the labels.
        kind: what is labelled.
        options: see `LabellingSession`.

    Raises:
        StorageError: the database or the audit does not exist.
        ReviewError: no sample was drawn.
        ConfigError: the rater's settings are invalid.
        Exception: any error that ended the app unexpectedly.
    """
    from auditor.review.label_queue import open_labelling_session  # loads numpy (0.1 s)
    from auditor.tui.label_app import LabelApp

    settings = load_review_settings()
    with open_database(storage_url, create=False) as db:
        app = LabelApp(open_labelling_session(db, audit, rater, kind, **options), settings)
        with idle_garbage_collection(app):
            app.run()
        _raise_fatal_error(app)


def _raise_fatal_error(app: RaterApp) -> None:
    """Raise the unexpected error that ended the app, if there was one."""
    if app._exception is not None:
        raise app._exception
