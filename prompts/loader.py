"""Loading prompt templates, with all checks when they are loaded."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from auditor.domain import Message
from auditor.errors import ConfigError
from auditor.input_files import MAX_SETTINGS_BYTES, read_text, require_file

FOLDER = resources.files("auditor.prompts")
"""Folder of the program's templates, which has a folder for each language."""
PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_PROMPT_FILE = re.compile(
    r"\A---\n(?P<front>.*?)\n---\n"
    r"(?:\[system\]\n(?P<system>.*?)|\[user\]\n(?P<opening>.*?)\n\[assistant\]\n(?P<reply>.*?))"
    r"\n\[user\]\n(?P<user>.*)\Z",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt template.

    Attributes:
        id: its name, such as `direct.structured`.
        version: incremented whenever its text changes.
        language: ISO 639-1 code of its folder.
        purpose: a description of its use.
        fields: names of its placeholders.
        system, user: the two messages; `system` is empty in a prompt with an opening.
        opening: messages of a user and of the assistant that come before `user` in place of a system message.
    """

    id: str
    version: int
    language: str
    purpose: str
    fields: frozenset[str]
    system: str
    user: str
    opening: tuple[str, str] | None = None

    def render(self, *, preamble: str | None = None, **values: str) -> tuple[Message, ...]:
        """Fill in the placeholders and return the messages: system and user; or user, assistant and user.

        Args:
            preamble: text put before the system message; a system message of its own if the prompt has none.
            values: one for each of `fields`.

        Raises:
            ValueError: a value is missing, or does not belong to any field.
        """
        if set(values) != self.fields:
            raise ValueError(f"prompt {self.id} takes {sorted(self.fields)}, but was given {sorted(values)}")
        if self.opening is None:
            system = fill_placeholders(self.system, values)
            messages = [Message("system", f"{preamble}\n\n{system}" if preamble else system)]
        else:
            request, reply = (fill_placeholders(text, values) for text in self.opening)
            messages = [Message("system", preamble)] if preamble else []
            messages += [Message("user", request), Message("assistant", reply)]
        return (*messages, Message("user", fill_placeholders(self.user, values)))


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Replace each `{name}` by its value, in one pass: braces inside a value are never read as a placeholder."""
    parts = _split(text).copy()
    parts[1::2] = [values[name] for name in parts[1::2]]
    return "".join(parts)


@functools.lru_cache(maxsize=1024)
def _split(text: str) -> list[str]:
    """Split a text into literal parts and, between them, names of placeholders; cached, since templates are few."""
    return PLACEHOLDER.split(text)


@functools.cache
def load_prompt(name: str, language: str = "en", package: str | None = None) -> Prompt:
    """Load a template.

    Args:
        name: of the template.
        language: ISO 639-1 code of its folder.
        package: the package of a probe, whose template is `prompts/LANGUAGE/NAME.md`; None for a built-in template.

    Raises:
        ConfigError: it does not exist, or its front matter and its placeholders differ.
    """
    folder = FOLDER if package is None else resources.files(package) / "prompts"
    file = folder / language / f"{name}.md"
    if not file.is_file():
        suffix = "" if package is None else f" of the package '{package}'"
        raise ConfigError(f"there is no prompt '{name}' in the language '{language}'{suffix}.")
    return parse_prompt(file.read_text(encoding="utf-8"), language, source=f"prompts/{language}/{name}.md")


def read_prompt(path: str, language: str = "en") -> Prompt:
    """Read a user's template from a file.

    Raises:
        ConfigError: it does not exist, or its front matter and its placeholders differ.
    """
    file = Path(path)
    require_file(file, ConfigError)
    return _read_prompt_cached(path, language, file.stat().st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _read_prompt_cached(path: str, language: str, modified_ns: int) -> Prompt:
    """Read a template from a file; `modified_ns` makes the cache miss once the file has changed."""
    return parse_prompt(read_text(Path(path), ConfigError, max_bytes=MAX_SETTINGS_BYTES), language, source=path)


def parse_prompt(text: str, language: str, *, source: str) -> Prompt:
    """Parse the text of a template.

    Args:
        source: name of the file, for error messages.

    Raises:
        ConfigError: the layout or the front matter is invalid, or the declared fields and the placeholders differ.
    """
    match = _PROMPT_FILE.match(text)
    if match is None:
        raise ConfigError(
            f"{source}: is not laid out as a prompt.",
            "Begin with front matter between '---' lines, then write [system], then [user].",
        )
    from auditor.config.strict_yaml import parse_yaml  # loads yaml, which a report does not need

    front_matter = parse_yaml(match["front"], source)
    required_keys = {"id", "version", "purpose", "fields"}
    if set(front_matter) != required_keys:
        raise ConfigError(
            f"{source}: the front matter has {_join_names(front_matter)}.",
            f"Give it {_join_names(required_keys)}, and no other keys.",
        )
    _check_front_matter(front_matter, source)
    opening = None if match["opening"] is None else (match["opening"].strip(), match["reply"].strip())
    system = (match["system"] or "").strip()
    used_fields = set(PLACEHOLDER.findall("\n".join([system, *(opening or ()), match["user"]])))
    if used_fields != set(front_matter["fields"]):
        raise ConfigError(
            f"{source}: declares the fields {_join_names(front_matter['fields'])}, "
            f"but its text has {_join_names(used_fields)}.",
            "Make the two the same.",
        )
    return Prompt(
        id=front_matter["id"],
        version=front_matter["version"],
        language=language,
        purpose=front_matter["purpose"],
        fields=frozenset(front_matter["fields"]),
        system=system,
        user=match["user"].strip(),
        opening=opening,
    )


def _check_front_matter(front_matter: Mapping[str, Any], source: str) -> None:
    """Raise a ConfigError if a value of the front matter has the wrong type."""
    fields, version = front_matter["fields"], front_matter["version"]
    if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
        raise ConfigError(f"{source}: 'fields' is not a list of names.", "Write it as fields: [topic, country].")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ConfigError(f"{source}: 'version' is not a whole number.", "Write it as version: 1.")
    for key in ("id", "purpose"):
        if not isinstance(front_matter[key], str):
            raise ConfigError(f"{source}: '{key}' is not a text.", "Put it in quotes.")


def _join_names(names: Iterable[str]) -> str:
    """Names in alphabetical order, separated by commas; `none` if there are none."""
    return ", ".join(sorted(names)) or "none"
