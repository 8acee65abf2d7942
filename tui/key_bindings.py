"""All actions of the app: the one source of key bindings, footer, key list (`?`) and command palette."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from string import ascii_letters
from typing import Literal

from textual.binding import Binding, BindingType

from auditor.domain import Decision
from auditor.domain.decisions import REVIEW_ASPECTS
from auditor.storage.probe_results import list_label_kinds

ScreenName = Literal["everywhere", "home", "queue", "conflict", "people", "errors", "label"]
ASPECT_KEYS = dict.fromkeys("xyzw" + ascii_letters)
"""Keys of the aspects of a trace on the labelling screen, in their order; those that have another action are passed
over."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that a reviewer can start with a key.

    Attributes:
        screen: the screen to which it belongs.
        name: of the action on its screen.
        keys: default keys as Textual names them, separated by commas.
        label: one or two words for the footer.
        help: a sentence for the key list and the command palette.
        in_footer: whether the footer shows it.
        plain_text_command: equivalent command of the plain-text interface; None if only a screen needs the action.
        call: its method without `action_`, with arguments if any, as Textual calls it; by default the name.
    """

    screen: ScreenName
    name: str
    keys: str
    label: str
    help: str
    in_footer: bool = False
    plain_text_command: str | None = None
    call: str = ""

    @property
    def id(self) -> str:
        """Identifier for key settings in `review.toml`, as in `"conflict.left" = "h"`."""
        word = self.name.replace("('", ".").replace("(", ".").removesuffix(")").removesuffix("'")
        return f"{self.screen}.{word.removeprefix('decide.')}"

    @property
    def method(self) -> str:
        """Its method without `action_`, with arguments if any."""
        return self.call or self.name


def _make_decide_action(decision: Decision) -> Action:
    """Build the action of the conflict screen that makes a decision."""
    range_note = ", from -1 to 1" if decision.needs_score else ""
    help_text = f"{decision.spec.help}{range_note}."
    return Action(
        "conflict", f"decide('{decision}')", decision.spec.keys, decision.value, help_text, True, decision.value
    )


def _make_choose_action(number: int) -> Action:
    """Build the action of the labelling screen that chooses the answer of a number."""
    help_text = f"Save answer number {number} of those listed below the text."
    return Action("label", f"choose({number})", str(number), f"answer {number}", help_text, False, str(number))


def make_aspect_actions(others: Iterable[Action]) -> Iterator[Action]:
    """Build the actions of the labelling screen that answer the questions about aspects, with keys that are free."""
    taken = {key for action in others if action.screen in ("label", "everywhere") for key in action.keys.split(",")}
    free_keys = (key for key in ASPECT_KEYS if key not in taken)
    for aspect in REVIEW_ASPECTS:
        help_text = f"Aspect '{aspect.label}' (optional): yes, no or none."
        yield Action("label", f"aspect('{aspect.name}')", next(free_keys), aspect.label, help_text, False, "aspect")


def _make_scroll_actions(screen: ScreenName, page_down: str = "pagedown", *, in_footer: bool = False) -> list[Action]:
    """Build the actions by which the text of a screen is scrolled."""
    return [
        Action(screen, "down", "j,down", "down", "Scroll down.", in_footer, call="move_by(1)"),
        Action(screen, "up", "k,up", "up", "Scroll up.", in_footer, call="move_by(-1)"),
        Action(screen, "page_down", page_down, "page down", "Scroll down one page.", call="move_by_pages(1)"),
        Action(screen, "page_up", "pageup", "page up", "Scroll up one page.", call="move_by_pages(-1)"),
    ]


def _make_neighbour_actions(
    screen: ScreenName, noun: str, end: str = "", *, in_footer: bool = False
) -> Iterator[Action]:
    """Build the actions that open what follows or precedes in the list."""
    for name, key, side, offset in (("following", "right", "after", 1), ("preceding", "left", "before", -1)):
        help_text = f"Open the {noun} {side} this one{end}."
        call = f"open_neighbour({offset})"
        yield Action(screen, name, f"{key}_square_bracket", name, help_text, in_footer, "open", call)


_SCREEN_ACTIONS = (
    Action("everywhere", "help", "question_mark,f1", "keys", "Show all keys of this screen.", True, "help"),
    Action("everywhere", "command_palette", "ctrl+p", "palette", "Search these actions by name."),
    Action("everywhere", "theme", "T", "dark or light", "Switch between the dark and the light theme."),
    Action(
        "everywhere",
        "open_next",
        "N",
        "open next",
        "Open the next conflict or text by itself, or stay.",
        plain_text_command="open-next",
    ),
    Action("everywhere", "quit", "ctrl+q", "quit", "Quit. Everything is saved.", plain_text_command="quit"),
    Action("home", "open", "enter", "open", "Open the audit's list of conflicts.", True, "open"),
    Action("home", "people", "a", "agreement", "Show how raters and judges agree.", True, "agreement"),
    Action("home", "errors", "E", "errors", "Show why requests failed, and how to fix it.", True, "errors"),
    Action("home", "down", "j,down", "down", "Move down.", call="move_by(1)"),
    Action("home", "up", "k,up", "up", "Move up.", call="move_by(-1)"),
    Action("home", "leave", "q,escape", "quit", "Quit. Everything is saved.", True, "quit", "app.quit"),
    Action("queue", "open", "enter", "open", "Open the conflict.", True, "open"),
    Action("queue", "best", "space", "next", "Open the next undecided conflict of the list.", True, "next"),
    Action("queue", "filter", "slash", "filter", "Filter and search, as in kind:binary divorce.", True, "filter"),
    Action("queue", "sort", "o", "order", "Change the sort order.", True, "sort"),
    Action("queue", "reverse", "O", "reverse", "Reverse the sort order.", plain_text_command="reverse"),
    Action("queue", "filters", "F", "saved filters", "Use, save or delete a filter.", plain_text_command="filters"),
    Action(
        "queue",
        "clear",
        "x",
        "clear filter",
        "Clear the filter and show all conflicts.",
        False,
        "clear",
        "filter_by('')",
    ),
    Action("queue", "people", "a", "agreement", "Show how raters and judges agree.", True, "agreement"),
    Action("queue", "errors", "E", "errors", "Show why requests failed, and how to fix it.", True, "errors"),
    Action("queue", "undo", "u", "undo", "Undo your last decision, note or flag.", True, "undo"),
    Action("queue", "redo", "r", "redo", "Redo what you undid last.", plain_text_command="redo"),
    Action("queue", "down", "j,down", "down", "Move down one row.", call="move_by(1)"),
    Action("queue", "up", "k,up", "up", "Move up one row.", call="move_by(-1)"),
    Action("queue", "page_down", "pagedown,ctrl+d", "page down", "Move down one page.", call="move_by_pages(1)"),
    Action("queue", "page_up", "pageup,ctrl+u", "page up", "Move up one page.", call="move_by_pages(-1)"),
    Action("queue", "first", "g,home", "first", "Move to the first row."),
    Action("queue", "last", "G,end", "last", "Move to the last row."),
    Action("queue", "reload", "R", "reload", "Reload the list.", plain_text_command="list"),
    Action("queue", "leave", "q,escape", "back", "Go back to the list of audits.", True, "audits", "app.go_back"),
    *map(_make_decide_action, Decision),
    Action("conflict", "best", "space,enter", "next", "Open the next undecided conflict of the list.", True, "next"),
    Action("conflict", "undo", "u", "undo", "Undo your last decision, note or flag.", True, "undo"),
    Action("conflict", "redo", "r", "redo", "Redo what you undid last.", plain_text_command="redo"),
    Action("conflict", "note", "n", "note", "Write a note on this conflict.", plain_text_command="note"),
    Action("conflict", "flag", "f", "flag", "Flag this conflict, or remove the flag.", plain_text_command="flag"),
    Action(
        "conflict",
        "reveal",
        "v",
        "reveal",
        "Show authors, verdicts and survey; this is logged.",
        plain_text_command="reveal",
    ),
    Action("conflict", "question", "i", "question", "Read the whole question.", plain_text_command="show"),
    Action("conflict", "history", "h", "history", "Show your actions on this conflict.", plain_text_command="history"),
    Action(
        "conflict",
        "next_sample",
        "full_stop",
        "next sample",
        "Read the next sample of both sides.",
        plain_text_command="sample",
        call="change_sample(1)",
    ),
    Action(
        "conflict",
        "last_sample",
        "comma",
        "last sample",
        "Read the previous sample of both sides.",
        plain_text_command="sample",
        call="change_sample(-1)",
    ),
    Action("conflict", "differences", "d", "differences", "Show or hide the marks where the texts differ."),
    *_make_neighbour_actions("conflict", "conflict", " in the list"),
    *_make_scroll_actions("conflict"),
    Action("conflict", "leave", "q,escape", "back", "Go back to the list.", False, "list", "app.go_back"),
    *_make_scroll_actions("people", "pagedown,space"),
    Action("people", "contested", "enter", "contested", "List the contested conflicts.", True, "contested"),
    Action("people", "leave", "q,escape", "back", "Go back.", True, "list", "app.go_back"),
    *_make_scroll_actions("errors", "pagedown,space", in_footer=True),
    Action("errors", "leave", "q,escape", "back", "Go back.", True, "list", "app.go_back"),
    *map(_make_choose_action, range(1, 1 + max(len(kind.choices) for kind in list_label_kinds()))),
)
_LABEL_ACTIONS = (
    Action("label", "undo", "u", "undo", "Undo your last label, and show its text again.", True, "undo"),
    Action("label", "best", "space,enter", "next", "Open the next text that you have not labelled.", True, "next"),
    Action("label", "skip", "s", "skip", "Skip this text; it comes again at the end.", True, "skip"),
    Action("label", "note", "n", "note", "Write a note, which is saved with your label.", True, "note"),
    *_make_neighbour_actions("label", "text", in_footer=True),
    *_make_scroll_actions("label"),
    Action("label", "leave", "q,escape", "quit", "Quit. Everything is saved.", True, "quit", "app.quit"),
)
ACTIONS = (*_SCREEN_ACTIONS, *make_aspect_actions((*_SCREEN_ACTIONS, *_LABEL_ACTIONS)), *_LABEL_ACTIONS)
DEFAULT_KEYS = {action.id: action.keys for action in ACTIONS}
"""Keys of each action, by its id."""

KEY_NAMES = {
    "question_mark": "?",
    "slash": "/",
    "equals_sign": "=",
    "full_stop": ".",
    "comma": ",",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "escape": "esc",
    "enter": "⏎",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def actions_for(screen: ScreenName) -> tuple[Action, ...]:
    """The actions of one screen."""
    return tuple(action for action in ACTIONS if action.screen == screen)


def bindings_for(screen: ScreenName) -> list[BindingType]:
    """The key bindings of one screen."""
    return [
        Binding(action.keys, action.method, action.label, show=action.in_footer, id=action.id)
        for action in actions_for(screen)
    ]


def key_name(key: str) -> str:
    """Return a short name of a key for display, such as `?` for `question_mark`."""
    key = key.strip()
    return KEY_NAMES.get(key, key)


def command_help(command: str, screen: ScreenName | None = None) -> str:
    """Return the help text that a plain-text command shares with an action: that of a screen, or the first one."""
    actions = ACTIONS if screen is None else actions_for(screen)
    text = next(action.help for action in actions if action.plain_text_command == command)
    return text[0].lower() + text[1:]


def render_key_tables() -> str:
    """Render the keys of every screen as Markdown tables, for `docs/keys.md`; those of several screens stand once."""
    equal_actions: dict[tuple[str, str, str | None], list[Action]] = {}
    for action in ACTIONS:
        equal_actions.setdefault((action.keys, action.help, action.plain_text_command), []).append(action)
    tables: dict[str, list[list[Action]]] = {"everywhere": [], "several screens": []}
    for actions in equal_actions.values():
        tables.setdefault(actions[0].screen if len(actions) == 1 else "several screens", []).append(actions)
    lines = []
    for title, rows in tables.items():
        lines += [f"## {title.capitalize()}", "", "| key | action (plain-text command) | name |", "|---|---|---|"]
        for actions in rows:
            action = actions[0]
            keys = " ".join(f"`{key_name(key)}`" for key in action.keys.split(","))
            command = f" (`{action.plain_text_command}`)" if action.plain_text_command else ""
            names = ", ".join(f"`{action.id}`" for action in actions)
            lines.append(f"| {keys} | {action.help}{command} | {names} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(render_key_tables())
