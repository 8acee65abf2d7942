"""Settings of a reviewer: `review.toml`, `review-state.json`, and the themes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs
from textual.theme import Theme

from auditor.atomic_files import make_folder, write_atomically
from auditor.errors import ConfigError, UsageError, did_you_mean
from auditor.input_files import read_toml
from auditor.review.conflict_list import parse_filter
from auditor.tui.formatting import to_single_line
from auditor.tui.key_bindings import ACTIONS, DEFAULT_KEYS, key_name

DARK = Theme(
    name="auditor-dark",
    dark=True,
    primary="#7aa2f7",
    secondary="#9d8cf0",
    accent="#f0b866",
    foreground="#d8dee9",
    background="#12151c",
    surface="#181c25",
    panel="#222835",
    success="#8fce85",
    warning="#f0b866",
    error="#f2828d",
    variables={
        "border": "#7aa2f7",
        "border-blurred": "#3a4358",
        "footer-background": "#181c25",
        "footer-key-foreground": "#f0b866",
        "footer-description-foreground": "#aab4c8",
        "text-muted": "#a0abc0",
        "text-success": "#8fce85",
        "text-warning": "#f0b866",
        "text-error": "#f2828d",
        "text-secondary": "#ab9df2",
        "text-primary": "#8fb2ff",
        "text-accent": "#f0b866",
        "block-cursor-background": "#2c3a5c",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "bold",
        "scrollbar": "#3a4358",
        "scrollbar-hover": "#56627d",
        "scrollbar-active": "#7aa2f7",
        "scrollbar-background": "#181c25",
        "scrollbar-background-hover": "#181c25",
        "scrollbar-background-active": "#181c25",
    },
)
LIGHT = Theme(
    name="auditor-light",
    dark=False,
    primary="#2a55b8",
    secondary="#6a4fc4",
    accent="#8a5300",
    foreground="#22283a",
    background="#f7f6f2",
    surface="#efede6",
    panel="#e3e0d6",
    success="#276b2c",
    warning="#8a5300",
    error="#b0253a",
    variables={
        "border": "#2a55b8",
        "border-blurred": "#c2bdae",
        "footer-background": "#e8e5dc",
        "footer-key-foreground": "#2a55b8",
        "footer-description-foreground": "#454c60",
        "text-muted": "#555b6d",
        "text-success": "#276b2c",
        "text-warning": "#8a5300",
        "text-error": "#b0253a",
        "text-secondary": "#6a4fc4",
        "text-primary": "#2a55b8",
        "text-accent": "#8a5300",
        "block-cursor-background": "#cfdaf5",
        "block-cursor-foreground": "#101728",
        "block-cursor-text-style": "bold",
        "scrollbar": "#c2bdae",
        "scrollbar-hover": "#a49e8c",
        "scrollbar-active": "#2a55b8",
        "scrollbar-background": "#efede6",
        "scrollbar-background-hover": "#efede6",
        "scrollbar-background-active": "#efede6",
    },
)
THEMES = (DARK, LIGHT)


SETTINGS_FOLDER_VARIABLE = "AUDITOR_REVIEW_DIR"
STATE_FILE = "review-state.json"
SHOWN_NAMES = "Press `?` in the app to see the names."
KNOWN_KEYS = ("theme", "open_next", "keys", "filters")


@dataclass
class ReviewSettings:
    """Settings of a reviewer.

    Attributes:
        folder: folder of the settings files.
        theme: name of a Textual theme.
        open_next: whether the next conflict opens by itself after a decision.
        keys: keys by action id, for actions with other keys than the default.
        filters: saved filters by name; those of `review.toml` come first.
    """

    folder: Path
    theme: str = DARK.name
    open_next: bool = True
    keys: Mapping[str, str] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=dict)

    def key_names(self, action_id: str) -> list[str]:
        """Names of an action's configured keys, for display."""
        return [key_name(key) for key in self.keys.get(action_id, DEFAULT_KEYS[action_id]).split(",")]

    def save_filter(self, name: str, filter_text: str) -> None:
        """Save a filter under a name."""
        self.filters[name] = filter_text
        self._save_state(filters={name: filter_text})

    def delete_filter(self, name: str) -> None:
        """Delete a saved filter; one that is defined in `review.toml` returns at the next start."""
        self.filters.pop(name, None)
        self._save_state(filters={name: None})

    def save_theme(self, name: str) -> None:
        """Save the name of the theme."""
        self.theme = name
        self._save_state(theme=name)

    def toggle_open_next(self, word: str = "") -> None:
        """Save whether the next conflict opens by itself after a decision: the opposite, or as `on` or `off` says.

        Raises:
            UsageError: it is another word.
        """
        if word.lower() not in ("", "on", "off"):
            raise UsageError(f"'{to_single_line(word)}' is not a value of open-next.", "Enter 'on' or 'off'.")
        self.open_next = word.lower() == "on" if word else not self.open_next
        self._save_state(open_next=self.open_next)

    def _save_state(self, *, filters: Mapping[str, str | None] | None = None, **changes: Any) -> None:
        """Write changed settings to `review-state.json`; the others stay as another window may have saved them.

        Args:
            filters: changed filters by name; None for one that was deleted.
            changes: other settings by name.
        """
        make_folder(self.folder)
        path = self.folder / STATE_FILE
        state = {"theme": self.theme, "open_next": self.open_next, **_read_saved_state(path), **changes}
        saved_filters = {**state.get("filters", {}), **(filters or {})}
        state["filters"] = {name: text for name, text in saved_filters.items() if text is not None}
        write_atomically(json.dumps(state, indent=1), path)


def load_review_settings(folder: Path | None = None) -> ReviewSettings:
    """Load a reviewer's settings; missing files count as empty.

    Args:
        folder: folder of the settings; by default AUDITOR_REVIEW_DIR or the user's configuration folder.

    Raises:
        ConfigError: `review.toml` cannot be read, has an unknown key or action, an invalid filter, or one key for two
            actions of a screen.
    """
    folder = folder or Path(os.environ.get(SETTINGS_FOLDER_VARIABLE) or platformdirs.user_config_path("auditor"))
    state = _read_saved_state(folder / STATE_FILE)
    user_settings = _read_settings_file(folder / "review.toml")
    keys = {str(name): str(text) for name, text in user_settings.get("keys", {}).items()}
    filters = {str(name): str(text) for name, text in user_settings.get("filters", {}).items()}
    _check_key_bindings(keys)
    for name, text in filters.items():
        try:
            parse_filter(text)
        except UsageError as error:
            raise ConfigError(f"review.toml: the filter '{name}': {error.message}", error.how_to_fix) from None
    theme = str(user_settings.get("theme") or state.get("theme") or DARK.name)
    return ReviewSettings(
        folder,
        theme=theme,
        open_next=bool(user_settings.get("open_next", state.get("open_next", True))),
        keys=keys,
        filters={**filters, **state.get("filters", {})},
    )


def _read_settings_file(path: Path) -> dict[str, Any]:
    """Read `review.toml`, empty if missing; raise ConfigError for an unknown key or one that must be a table."""
    if not path.exists():
        return {}
    settings_table = read_toml(path, ConfigError)
    for key in settings_table:
        if key not in KNOWN_KEYS:
            raise ConfigError(f"{path}: unknown key '{key}'.", did_you_mean(key, KNOWN_KEYS, SHOWN_NAMES))
    for key in ("keys", "filters"):
        if not isinstance(settings_table.get(key, {}), dict):
            raise ConfigError(f"{path}: '{key}' must be a table.", f"Write its entries below a line [{key}].")
    if not isinstance(settings_table.get("open_next", True), bool):
        raise ConfigError(f"{path}: 'open_next' must be true or false.", "Write: open_next = false")
    return settings_table


def _read_saved_state(path: Path) -> dict[str, Any]:
    """Read `review-state.json`; a missing or invalid file counts as empty, so that the app starts anyway."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(state, dict):
        return {}
    valid_types = {"theme": str, "open_next": bool, "filters": dict}
    return {name: state[name] for name, kind in valid_types.items() if isinstance(state.get(name), kind)}


def _check_key_bindings(key_by_action: Mapping[str, str]) -> None:
    """Raise ConfigError for an unknown action, or a key with two actions on the same screen."""
    for action_id in key_by_action:
        if action_id not in DEFAULT_KEYS:
            suggestion = did_you_mean(action_id, DEFAULT_KEYS, SHOWN_NAMES)
            raise ConfigError(f"review.toml: there is no action '{action_id}'.", suggestion)
    for screen in {action.screen for action in ACTIONS}:
        action_by_key: dict[str, str] = {}
        for action in ACTIONS:
            if action.screen not in (screen, "everywhere"):
                continue
            for key in key_by_action.get(action.id, action.keys).split(","):
                bound_action = action_by_key.setdefault(key.strip(), action.id)
                if bound_action != action.id:
                    raise ConfigError(
                        f"review.toml: the key '{key.strip()}' is assigned to {bound_action} and to {action.id}.",
                        "Assign another key to one of them.",
                    )
