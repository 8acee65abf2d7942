"""Make the pictures of README and docs from the worked example: `python -m tests.support.docs_pictures`.

Each picture has a text file beside it with the words that it shows. A test compares them with the current program.
"""

from __future__ import annotations

import asyncio
import base64
import re
import tempfile
from pathlib import Path

from auditor.cli.demo import build_demo_config, run_worked_example
from auditor.domain.labels import LabelKind
from auditor.reports.data.report_schema import Report
from auditor.reports.output import render_report
from auditor.review.label_sampling import draw_label_sample
from auditor.review.labelling import LabellingSession
from auditor.storage.audits import get_audit
from auditor.storage.database import open_database
from auditor.tui.app import ReviewApp
from auditor.tui.label_screen import LabelApp
from auditor.tui.settings import ReviewSettings
from tests.support.browser_review import record_terminal, serve_review, wait_for_text
from tests.support.chromium import Chromium
from tests.support.html_page import Page
from tests.tui.app_driver import Driver

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
REPORT_PICTURE, REVIEW_PICTURE, LABEL_PICTURE = (FOLDER / name for name in ("report.png", "review.svg", "label.svg"))
BROWSER_PICTURE = FOLDER / "browser-review.png"
TABLET_PX = (1024, 768)
TABLET_SIZE = (113, 36)
"""Columns and rows of the terminal on a tablet of that size."""
N_LABELS = 60
"""Size of the sample of traces to label."""
REPORT_WIDTH_PX = 1000
REVIEW_SIZE = (150, 40)
"""Columns and rows of the terminal."""
LABEL_SIZE = (120, 34)
FIRST_HEADING_BELOW = "The strongest cross-cultural findings"
"""The picture of the report ends above this heading."""
END_OF_PICTURE_SCRIPT = """[...document.querySelectorAll('h3')].find(e => e.textContent.includes(%r))
  .getBoundingClientRect().top"""


def run_example(storage: str) -> Report:
    """Run the worked example with its default seed."""
    return run_worked_example(build_demo_config(), storage)


def read_report_text(html: str) -> str:
    """The words of a report's page that its picture shows, one text of the page a line."""
    body = re.sub("<nav.*?</nav>", "", html.split("<body", 1)[1], flags=re.S).split(">", 1)[1]
    lines = (" ".join(text.split()) for text in Page(body.split(FIRST_HEADING_BELOW)[0]).texts)
    return "\n".join(line for line in lines if line) + "\n"


def draw_review(storage: str, folder: Path, size: tuple[int, int] = REVIEW_SIZE) -> tuple[str, str]:
    """The first conflict of the worked example in the review screen, before the decision: its picture and its text."""
    with open_database(storage) as db:
        app = ReviewApp(db, rater="ada", audit=build_demo_config().name, settings=ReviewSettings(folder))
        return asyncio.run(_draw_first_conflict(app, size))


def photograph_browser_review(storage: str, profile: Path) -> bytes:
    """A PNG of the first conflict of the worked example in a browser, on a tablet."""
    arguments = ["review", build_demo_config().name, "--rater", "ada", "--storage", storage]
    with serve_review(arguments, profile / "settings") as served, Chromium(profile) as browser:
        record_terminal(browser)
        browser.open(served.address, TABLET_PX[0], height=TABLET_PX[1])
        wait_for_text(browser, "by information")
        size = tuple(browser.evaluate("window.terminalSize"))
        if size != TABLET_SIZE:
            raise RuntimeError(f"the terminal has {size} columns and rows: change TABLET_SIZE")
        browser.type(" ")
        wait_for_text(browser, "not decided by you")
        browser.evaluate("new Promise(done => setTimeout(done, 1000))")  # until the page has drawn it
        return browser.photograph()


def draw_labelling(storage: str, folder: Path) -> tuple[str, str]:
    """The first text of a random sample of the worked example in the labelling screen: its picture and its text."""
    with open_database(storage) as db:
        audit = get_audit(db, build_demo_config().name)
        draw_label_sample(db, audit, LabelKind.TRACE, N_LABELS)
        session = LabellingSession(db, audit, "ada")
        return asyncio.run(_draw_first_text(LabelApp(session, ReviewSettings(folder))))


def read_svg_words(picture: str) -> list[str]:
    """The texts of a picture of the terminal, in its order."""
    return re.findall(r"<text[^>]*>(.*?)</text>", picture, re.S)


async def _draw_first_conflict(app: ReviewApp, size: tuple[int, int]) -> tuple[str, str]:
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        await driver.settle()
        await driver.press("space")
        return app.export_screenshot(title="auditor review"), driver.text + "\n"


async def _draw_first_text(app: LabelApp) -> tuple[str, str]:
    async with app.run_test(size=LABEL_SIZE) as pilot:
        driver = Driver(app, pilot)
        await driver.settle()
        return app.export_screenshot(title="auditor review --sample 60"), driver.text + "\n"


def photograph_report(page: Path, profile: Path) -> bytes:
    """A PNG of a report's page down to the forest plot."""
    with Chromium(profile) as browser:
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        browser.open(page, REPORT_WIDTH_PX)
        height = int(browser.evaluate(END_OF_PICTURE_SCRIPT % FIRST_HEADING_BELOW))
        browser.open(page, REPORT_WIDTH_PX, height=height)
        return base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        storage = f"sqlite:///{folder}/audits.db"
        html = render_report(run_example(storage), "html")
        (folder / "report.html").write_text(html, encoding="utf-8")
        REPORT_PICTURE.write_bytes(photograph_report(folder / "report.html", folder / "chromium"))
        REPORT_PICTURE.with_suffix(".txt").write_text(read_report_text(html), encoding="utf-8")
        BROWSER_PICTURE.write_bytes(photograph_browser_review(storage, folder / "chromium of the review"))
        BROWSER_PICTURE.with_suffix(".txt").write_text(draw_review(storage, folder, TABLET_SIZE)[1], encoding="utf-8")
        for path, (picture, text) in (
            (REVIEW_PICTURE, draw_review(storage, folder)),
            (LABEL_PICTURE, draw_labelling(storage, folder)),
        ):
            path.write_text(picture, encoding="utf-8")
            path.with_suffix(".txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
