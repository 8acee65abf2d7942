"""Loading a template, and checking it then rather than in the middle of an audit."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from auditor.config.strict_yaml import parse_yaml
from auditor.domain import Message
from auditor.errors import ConfigError

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_FILE = re.compile(r"\A---\n(?P<front>.*?)\n---\n\[system\]\n(?P<system>.*?)\n\[user\]\n(?P<user>.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One template.

    Attributes:
        id: its name, such as `direct.structured`.
        version: raised whenever its words change.
        language: ISO 639-1 code of its folder.
        purpose: what it is for, in words.
        fields: the placeholders that it must be given.
        system, user: the two messages.
    """

    id: str
    version: int
    language: str
    purpose: str
    fields: frozenset[str]
    system: str
    user: str

    def render(self, *, preamble: str | None = None, **values: str) -> tuple[Message, ...]:
        """Fill the placeholders.

        Args:
            preamble: text put before the system message.
            values: one for each of `fields`.

        Raises:
            ValueError: a value is missing, or there is one too many.
        """
        if set(values) != self.fields:
            raise ValueError(f"prompt {self.id} takes {sorted(self.fields)}, but was given {sorted(values)}")
        system = fill(self.system, values)
        return (
            Message("system", f"{preamble}\n\n{system}" if preamble else system),
            Message("user", fill(self.user, values)),
        )


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put values in the place of `{name}`, in one pass: what a value contains is never read as a placeholder."""
    return PLACEHOLDER.sub(lambda match: values[match.group(1)], text)


@functools.cache
def load_prompt(name: str, language: str = "en") -> Prompt:
    """Read a built-in template.

    Raises:
        ConfigError: there is none, or its front matter and its placeholders do not agree.
    """
    file = resources.files("auditor.prompts") / language / f"{name}.md"
    if not file.is_file():
        raise ConfigError(f"there is no prompt '{name}' in the language '{language}'.")
    return parse_prompt(file.read_text(encoding="utf-8"), language, where=f"prompts/{language}/{name}.md")


def read_prompt(path: str, language: str = "en") -> Prompt:
    """Read a template of the user's own.

    Raises:
        ConfigError: there is none, or its front matter and its placeholders do not agree.
    """
    try:
        return _read_prompt(path, language, Path(path).stat().st_mtime_ns)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a prompt: {error}.", "Name a UTF-8 file.") from None


@functools.lru_cache(maxsize=64)
def _read_prompt(path: str, language: str, changed_at: int) -> Prompt:
    return parse_prompt(Path(path).read_text(encoding="utf-8"), language, where=path)


def parse_prompt(text: str, language: str, *, where: str) -> Prompt:
    """Read a template's text.

    Raises:
        ConfigError: the file is not laid out as it must be, or a placeholder is missing or not declared.
    """
    match = _FILE.match(text)
    if match is None:
        raise ConfigError(f"{where}: needs front matter between '---' lines, then [system], then [user].")
    front = parse_yaml(match["front"], where)
    wanted = {"id", "version", "purpose", "fields"}
    if set(front) != wanted:
        raise ConfigError(f"{where}: the front matter must have {sorted(wanted)}, but has {sorted(front)}.")
    used = set(PLACEHOLDER.findall(match["system"] + match["user"]))
    if used != set(front["fields"]):
        raise ConfigError(f"{where}: declares the fields {sorted(front['fields'])}, but uses {sorted(used)}.")
    return Prompt(
        id=front["id"],
        version=front["version"],
        language=language,
        purpose=front["purpose"],
        fields=frozenset(front["fields"]),
        system=match["system"].strip(),
        user=match["user"].strip(),
    )
