"""The corpus of cases: each line of `cases/*.tsv` has the server's behaviour first, then the expected results."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.axes import AXES

FOLDER = Path(__file__).with_name("cases")
COLUMNS = ("id", *AXES, "contact", "outcome", "requests", "usd", "exit", "words")
EVERY = 7
"""`make test` runs every seventh case, and the first case with each value that those lack."""
_SUM = re.compile(r"(?P<factor>\d+)\*estimate|(?P<estimate>estimate)|(?P<dollars>\d+(\.\d+)?)")


@dataclass(frozen=True)
class Charge:
    """Expected cost of a case: US dollars plus a multiple of the estimated cost of one request."""

    dollars: float = 0.0
    estimates: int = 0

    @classmethod
    def parse(cls, text: str) -> Charge:
        """Read a sum such as `0.003`, `estimate` or `2*estimate+0.003`."""
        dollars, estimates = 0.0, 0
        for term in text.split("+"):
            match = _SUM.fullmatch(term)
            assert match, f"not a charge: {text!r}"
            dollars += float(match["dollars"] or 0)
            estimates += int(match["factor"] or 0) + (match["estimate"] is not None)
        return cls(dollars, estimates)


@dataclass(frozen=True)
class Case:
    """One line of the corpus.

    Attributes:
        choice: a value on each axis.
        contact: `first` if the reply is the first from the model, `later` if a good reply comes before, `known` if an
            earlier run has found out what the server accepts.
        outcome: outcome of the call, or `stops` if the run stops.
        requests: number that reach the server.
        exit: code of `auditor run`.
        words: texts that must all occur in the answer, in an error or in the message that stops the run.
    """

    id: str
    choice: dict[str, str]
    contact: str
    outcome: str
    requests: int
    charge: Charge
    exit: int
    words: tuple[str, ...]

    @property
    def protocol(self) -> str:
        return self.choice["protocol"]


def load_cases() -> list[Case]:
    """All cases, ordered by file name and line."""
    cases = [case for path in sorted(FOLDER.glob("*.tsv")) for case in _read(path)]
    assert len({case.id for case in cases}) == len(cases), "an id is there twice"
    return cases


def _read(path: Path) -> Iterable[Case]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        assert tuple(rows.fieldnames or ()) == COLUMNS, path
        for row in rows:
            words = tuple(word.strip() for word in row["words"].split(";") if word.strip() not in ("", "-"))
            yield Case(
                row["id"], {axis: row[axis] for axis in AXES}, row["contact"], row["outcome"], int(row["requests"]),
                Charge.parse(row["usd"]), int(row["exit"]), words,
            )  # fmt: skip


def sample_of(cases: Sequence[Case]) -> list[Case]:
    """Every seventh case, and the first case with each value that those lack."""
    chosen = dict.fromkeys(case.id for case in cases[::EVERY])
    seen = {value for case in cases if case.id in chosen for value in case.choice.items()}
    for case in cases:
        if new := set(case.choice.items()) - seen:
            chosen[case.id] = None
            seen |= new
    return [case for case in cases if case.id in chosen]
