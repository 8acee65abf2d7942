"""A review in plain text: where the reviewer is, and what each command does there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from auditor.domain import Act, Decision
from auditor.errors import AuditorError, UsageError, did_you_mean
from auditor.review.completion import Afterwards
from auditor.review.filters import format_filter, next_sort, parse_filter
from auditor.review.item import Item
from auditor.review.session import Desk
from auditor.storage.conflict_status import ConflictKey, QueueFilter, Sort
from auditor.storage.database import Database
from auditor.storage.overview import overviews
from auditor.storage.rating_log import Entry
from auditor.tui.formatting import line
from auditor.tui.plain_text import tell_audit, tell_hidden, tell_item, tell_row, tell_samples
from auditor.tui.settings import Settings
from auditor.tui.wording import did, said, taken_back

PAGE = 20


class Session:
    """A review in plain text.

    Args:
        say: prints one line.
    """

    def __init__(
        self,
        db: Database,
        make_desk: Callable[[str], Desk],
        settings: Settings,
        say: Callable[[str], None],
        afterwards: Afterwards,
    ) -> None:
        self.db = db
        self.settings = settings
        self.desks: dict[str, Desk] = {}
        self._make_desk = make_desk
        self._say = say
        self._afterwards = afterwards
        self._names: list[str] = []
        self._desk: Desk | None = None
        self._wanted = QueueFilter()
        self._keys: list[ConflictKey] = []
        self._listed = 0
        self._item: Item | None = None
        self._sample = 0

    def do(self, command: str) -> bool:
        """Carry out one line; False when it says to leave. What is wrong with it is said, not raised."""
        word, _, rest = command.strip().partition(" ")
        if not word:
            return True
        if word in ("quit", "q", "exit"):
            return False
        if word not in COMMANDS:
            self._say(f"Unknown command '{line(word)}'. {did_you_mean(word, COMMANDS, 'Try help.')}")
            return True
        try:
            COMMANDS[word][0](self, rest.strip())
        except AuditorError as error:
            self._say(line(str(error)))
        return True

    # --- where one is

    def enter(self, name: str) -> None:
        """Go to an audit."""
        if name not in self.desks:
            self.desks[name] = self._make_desk(name)
        self._desk, self._item, self._wanted = self.desks[name], None, QueueFilter()
        self._read()
        self._say(f"Audit {line(name)}: {self._count()}. 'next' shows the one that teaches most, 'list' lists them.")

    @property
    def desk(self) -> Desk:
        if self._desk is None:
            raise UsageError("no audit is open.", "Say 'audits', then 'open' and its number.")
        return self._desk

    @property
    def item(self) -> Item:
        if self._item is None:
            raise UsageError("no conflict is open.", "Say 'next', or 'open' and its number in the list.")
        return self._item

    def _read(self) -> None:
        self._keys, self._listed = self.desk.keys(self._wanted), 0

    def _count(self) -> str:
        return ", ".join(f"{n} {standing}" for standing, n in self.desk.counts().items() if n) or "no conflicts"

    def show(self, key: ConflictKey) -> None:
        """Show a conflict."""
        self._item, self._sample = self.desk.item(key), 0
        self._tell(tell_item(self._item))

    def _tell(self, lines: Iterable[str]) -> None:
        for text in lines:
            self._say(text)

    # --- commands

    def audits(self, rest: str) -> None:
        found = overviews(self.db)
        self._names, self._desk, self._item = [o.audit.name for o in found], None, None
        self._tell(tell_audit(number, overview) for number, overview in enumerate(found, 1))
        if not found:
            self._say("No audit here yet. `auditor run CONFIG` makes one.")

    def open(self, rest: str) -> None:
        if self._desk is None:
            names = self._names or [o.audit.name for o in overviews(self.db)]
            number = _number(rest, len(names)) if rest not in names else names.index(rest) + 1
            self.enter(names[number - 1])
        else:
            self.show(self._keys[_number(rest, len(self._keys)) - 1])

    def list(self, rest: str) -> None:
        if self._item is not None or not rest:
            self._item = None
            if self._listed >= len(self._keys) or not self._listed:
                self._read()
        rows = self.desk.rows(self._keys[self._listed : self._listed + PAGE])
        places = {key: place for place, key in enumerate(self._keys, 1)}
        self._tell(tell_row(places[row.key], row) for row in rows)
        self._listed += len(rows)
        left = len(self._keys) - self._listed
        self._say(f"{left} more; 'list' goes on." if left else f"{len(self._keys)} in all: {self._count()}.")

    def next(self, rest: str) -> None:
        key = self.desk.next_key(after=self._item.key if self._item else None)
        if key is None:
            self._say("Nothing is left for you to decide.")
        else:
            self.show(key)

    def show_again(self, rest: str) -> None:
        self.show(self.item.key)

    def filter(self, rest: str) -> None:
        self._wanted = parse_filter(rest)
        self._read()
        self._say(f"{len(self._keys)} conflicts pass.")

    def sort(self, rest: str) -> None:
        if rest:
            wanted = parse_filter(f"sort:{rest}")
            self._wanted = replace(self._wanted, sort=wanted.sort, reverse=wanted.reverse)
        else:
            self._wanted = next_sort(self._wanted)
        self._read()
        self._say(f"In order of {self._wanted.sort}. Orders: {', '.join(Sort)}.")

    def reverse(self, rest: str) -> None:
        self._wanted = replace(self._wanted, reverse=not self._wanted.reverse)
        self._read()
        self._say("Reversed." if self._wanted.reverse else "Not reversed.")

    def filters(self, rest: str) -> None:
        """`filters` lists, `filters NAME` uses, `filters save NAME` and `filters delete NAME`."""
        verb, _, name = rest.partition(" ")
        if verb == "save" and name:
            self.settings.save_filter(name, format_filter(self._wanted))
        elif verb == "delete" and name:
            self.settings.delete_filter(name)
        elif rest:
            if rest not in self.settings.filters:
                raise UsageError(f"there is no filter '{line(rest)}'.", "'filters' lists them.")
            return self.filter(self.settings.filters[rest])
        self._tell(f"{line(name)}: {line(text)}" for name, text in self.settings.filters.items())
        if not self.settings.filters:
            self._say("No filter is saved. 'filters save NAME' saves the present one.")
        return None

    def decide(self, decision: Decision, score: float | None = None) -> None:
        self.desk.decide(self.item, decision, score=score)
        revealed = self.item.revealed
        self._item = self.desk.item(self.item.key)
        self._say(f"Saved: {said(decision, score)}.")
        if not revealed:
            self._tell(tell_hidden(self._item))
        self._afterwards.decided(self.desk)

    def score(self, rest: str) -> None:
        try:
            score = float(rest.replace("−", "-"))
        except ValueError:
            score = 2.0
        if self.item.left.score is None:
            raise UsageError("these answers are no scores.", "Say left, right, both or neither, or write a note.")
        if not -1 <= score <= 1:
            raise UsageError(f"'{line(rest)}' is not a score.", "Give a number from -1 to 1, as in: score -0.4")
        self.decide(Decision.SCORE, score)

    def skip(self, rest: str) -> None:
        if self.item.decision is None or not self.item.decision.settles:
            self.desk.decide(self.item, Decision.SKIP)
            self._say("Skipped.")
        self.next("")

    def note(self, rest: str) -> None:
        self.desk.note(self.item, rest)
        self._item = self.desk.item(self.item.key)
        self._say("Note saved." if rest else "Note taken off.")

    def flag(self, rest: str) -> None:
        self.desk.flag(self.item)
        self._item = self.desk.item(self.item.key)
        self._say("Flagged." if self._item.row.flagged else "Flag taken off.")

    def reveal(self, rest: str) -> None:
        if not self.item.revealed:
            self.desk.reveal(self.item)
            self._item = self.desk.item(self.item.key)
        self._tell(tell_hidden(self.item))

    def undo(self, rest: str) -> None:
        self._take_back(Act.UNDO, self.desk.undo())

    def redo(self, rest: str) -> None:
        self._take_back(Act.REDO, self.desk.redo())

    def _take_back(self, act: Act, entry: Entry | None) -> None:
        if entry:
            self._item = self.desk.item(entry.key)
        self._say(taken_back(act, entry))
        self._afterwards.decided(self.desk)

    def history(self, rest: str) -> None:
        self._tell(did(entry) for entry in self.desk.history(self.item.key))

    def sample(self, rest: str) -> None:
        self._sample = _number(rest, 10_000) - 1 if rest else self._sample + 1
        self._tell(tell_samples(self.item, self._sample))

    def agreement(self, rest: str) -> None:
        from auditor.review.summary import summary_of  # loads scipy

        for table in summary_of(self.db, self.desk.audit).tables:
            self._say(f"{table.title}. {table.note}")
            self._tell(f"  {line(row.name)}: {line(row.text)}." for row in table.rows)

    def help(self, rest: str) -> None:
        self._tell(f"{word}: {text}" for word, (_, text) in COMMANDS.items())


def _decides(decision: Decision) -> Command:
    return lambda plain, rest: plain.decide(decision)


def _number(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise UsageError(f"'{line(text)}' is not a number of the list.", f"It goes from 1 to {most}.")
    return int(text)


Command = Callable[[Session, str], None]
COMMANDS: dict[str, tuple[Command, str]] = {
    "audits": (Session.audits, "list the audits."),
    "open": (Session.open, "open an audit by its number or name, or a conflict by its number in the list."),
    "list": (Session.list, "list the conflicts, 20 at a time."),
    "next": (Session.next, "show the undecided conflict that teaches most."),
    "show": (Session.show_again, "show the open conflict again."),
    "left": (_decides(Decision.LEFT), "the left side is right."),
    "right": (_decides(Decision.RIGHT), "the right side is right."),
    "both": (_decides(Decision.BOTH), "both sides are right."),
    "neither": (_decides(Decision.NEITHER), "neither side is right."),
    "score": (Session.score, "give a score of your own, as in: score -0.4"),
    "skip": (Session.skip, "leave it undecided and go on."),
    "note": (Session.note, "write a note on the conflict, as in: note translation looks wrong"),
    "flag": (Session.flag, "mark the conflict for attention, or take the mark off."),
    "reveal": (Session.reveal, "show what is hidden before deciding; it is logged."),
    "undo": (Session.undo, "take back your last decision, note or flag."),
    "redo": (Session.redo, "bring back what was taken back."),
    "history": (Session.history, "all that you did to the open conflict."),
    "sample": (Session.sample, "read the next sample of both sides, or the one of a number."),
    "filter": (Session.filter, "show only some, as in: filter kind:binary gap:>0.5 is:todo divorce"),
    "clear": (lambda plain, rest: plain.filter(""), "take the filter off."),
    "disputed": (lambda plain, rest: plain.filter("state:disputed"), "show the conflicts on which people disagree."),
    "agreement": (Session.agreement, "how raters agree, and judges with people."),
    "sort": (Session.sort, "change the order, as in: sort gap"),
    "reverse": (Session.reverse, "turn the order round."),
    "filters": (Session.filters, "list saved filters; filters NAME uses one; filters save NAME; filters delete NAME."),
    "help": (Session.help, "this list."),
    "quit": (lambda plain, rest: None, "leave; everything is saved already."),
}
"""Word, what it does, and its help; the words are those of `auditor.tui.actions`."""
