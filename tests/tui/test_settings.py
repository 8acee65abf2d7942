from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.errors import ConfigError
from auditor.tui.key_bindings import ACTIONS
from auditor.tui.settings import LIGHT, ReviewSettings, load_review_settings


def write(folder: Path, text: str) -> Path:
    (folder / "review.toml").write_text(text, encoding="utf-8")
    return folder


def test_missing_settings_have_defaults(tmp_path: Path) -> None:
    assert load_review_settings(tmp_path) == ReviewSettings(tmp_path)


def test_all_settings_are_loaded(tmp_path: Path) -> None:
    text = 'theme = "nord"\n[keys]\n"conflict.left" = "h"\n"conflict.history" = "H"\n[filters]\nwide = "gap:>1 is:todo"'
    settings = load_review_settings(write(tmp_path, text))
    assert settings.theme == "nord"
    assert settings.keys == {"conflict.left": "h", "conflict.history": "H"}
    assert settings.filters == {"wide": "gap:>1 is:todo"}


def test_saved_state_is_loaded_again(tmp_path: Path) -> None:
    settings = load_review_settings(tmp_path / "new")
    settings.save_filter("wide", "gap:>1")
    settings.save_filter("odd \x1b name", "divorce")
    settings.save_theme(LIGHT.name)
    settings.delete_filter("wide")
    settings.delete_filter("never was")
    reloaded = load_review_settings(tmp_path / "new")
    assert reloaded.filters == {"odd \x1b name": "divorce"}
    assert reloaded.theme == LIGHT.name


@pytest.mark.parametrize(
    "broken",
    ["", "{", "[]", '"x"', '{"filters": []}', '{"filters": null}', '{"theme": 3}', '{"open_next": "no"}'],
)
def test_a_damaged_state_file_and_saved_values_of_another_type_are_ignored(tmp_path: Path, broken: str) -> None:
    (tmp_path / "review-state.json").write_text(broken, encoding="utf-8")
    assert load_review_settings(tmp_path) == ReviewSettings(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("theme =", "not valid TOML"),
        ("thme = 'x'", "Did you mean 'theme'?"),
        ("[keys]\n'conflict.lft' = 'h'", "Did you mean 'conflict.left'?"),
        ("[keys]\n'conflict.left' = '2'", "the key '2' is assigned to conflict.left and to conflict.right"),
        ("[keys]\n'everywhere.help' = 'j'", "the key 'j' is assigned to"),
        ("[filters]\nwide = 'gap:1'", "the filter 'wide': 'gap:1' has no valid limit."),
    ],
)
def test_invalid_settings_are_explained(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_review_settings(write(tmp_path, text))
    assert expected in str(caught.value)


def test_a_key_may_be_used_on_two_screens(tmp_path: Path) -> None:
    assert load_review_settings(write(tmp_path, "[keys]\n'queue.people' = 'p'\n'home.people' = 'p'")).keys


def test_action_ids_are_unique_and_the_state_file_is_json(tmp_path: Path) -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    settings = ReviewSettings(tmp_path)
    settings.save_filter("a", "b")
    assert json.loads((tmp_path / "review-state.json").read_text())["filters"] == {"a": "b"}
    assert [path.name for path in tmp_path.iterdir()] == ["review-state.json"]


def test_two_windows_keep_what_each_of_them_saves(tmp_path: Path) -> None:
    load_review_settings(tmp_path).save_filter("old", "gap:>1")
    first, second = load_review_settings(tmp_path), load_review_settings(tmp_path)
    first.save_filter("wide", "gap:>1.5")
    first.save_theme(LIGHT.name)
    second.toggle_open_next("off")
    second.save_filter("near", "gap:<0.5")
    second.delete_filter("old")
    reloaded = load_review_settings(tmp_path)
    assert reloaded.filters == {"wide": "gap:>1.5", "near": "gap:<0.5"}
    assert (reloaded.theme, reloaded.open_next) == (LIGHT.name, False)
