"""The probes that are installed: those in folders below `auditor/probes`, and those of other packages.

Names come from the folders and from the metadata of packages. The module of a probe is imported once a configuration or
a database names the probe. A probe that cannot be used raises a `ProbeError` where it is named, and nowhere else.
"""

from __future__ import annotations

import functools
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from auditor.config.base import ConfigSection
from auditor.config.probe_section import BuiltInProbe, ProbeSettings
from auditor.config.value_checks import field_types
from auditor.domain import Message, Outcome, Purpose
from auditor.errors import AuditorError, ConfigError, ProbeError
from auditor.probe_interface import (
    INTERFACE_VERSION,
    Headline,
    Probe,
    ProbeAnswer,
    ProbeAudit,
    Question,
    Reading,
    Unit,
)
from auditor.text_safety import LONE_SURROGATE

if TYPE_CHECKING:
    from auditor.config.audit import AuditConfig

GROUP = "auditor.probes"
"""Group of the entry points of other packages; also the package of the built-in probes."""
FOLDERS = [Path(__file__).parent.parent / "probes"]
"""Where folders of probes are; tests add one."""
NAME_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,49}")
RESERVED_NAMES = frozenset({"direct", "logprob", "review"})
"""Names of tables under `[probes]` that no probe can use."""
ROLES = get_args(get_type_hints(Message)["role"])
"""Roles of messages of a chat."""
T = TypeVar("T")
_QUESTION_FIELDS: Mapping[str, type | tuple[type, ...]] = {
    **{"unit": tuple, "messages": tuple, "sample": int, "schema": (type, NoneType)},
    **{"temperature": (float, int), "max_tokens": int, "language": str},
}


@dataclass(frozen=True)
class ProbeSource:
    """Where a probe comes from.

    Attributes:
        package: name of the distribution; "auditor" for a built-in probe.
        version: version of the distribution.
        load: imports the class of the probe.
        problem: why the name cannot be used, as a sentence; empty if it can.
    """

    name: str
    package: str
    version: str
    load: Callable[[], Any]
    problem: str = ""


def _list_built_in_sources() -> dict[str, ProbeSource]:
    """List the probes in folders below `auditor/probes` by name, in alphabetical order; no probe is imported."""
    return {
        name: ProbeSource(name, "auditor", "", functools.partial(_load_built_in, name))
        for name in _list_packages(tuple(map(str, FOLDERS)))
    }


@functools.cache
def _list_packages(folders: tuple[str, ...]) -> list[str]:
    """Names of the packages in folders; listed once, since each validation of a configuration asks for them."""
    return [module.name for module in pkgutil.iter_modules(folders) if module.ispkg]


@functools.cache
def list_probe_sources() -> dict[str, ProbeSource]:
    """List the installed probes by name, each kind in alphabetical order.

    Those in folders of the program come first, then those of other packages.
    Reads names only; no probe is imported.
    """
    from importlib import metadata  # 20 ms, which a configuration without such a probe does not need

    sources = _list_built_in_sources()
    built_in = {*RESERVED_NAMES, *sources}
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("an unknown package", "")
        problem = ""
        if not NAME_PATTERN.fullmatch(entry.name):
            problem = (
                f"The probe '{entry.name}' of {package} has a name that cannot be used: names consist of lower-case "
                "letters, digits and underscores."
            )
        elif entry.name in built_in:
            problem = f"The probe '{entry.name}' of {package} is not used, since a built-in probe has this name."
        elif (other := sources.get(entry.name)) is not None and other.package != package:
            problem = f"The probe '{entry.name}' is in two packages, {other.package} and {package}: uninstall one."
        key = f"{entry.name} ({package})" if entry.name in built_in else entry.name
        sources[key] = ProbeSource(entry.name, package, version, entry.load, problem)
    return sources


def list_probe_names() -> list[str]:
    """List the names of the installed probes; no probe is imported."""
    return [name for name, source in list_probe_sources().items() if name == source.name]


def is_installed(name: str) -> bool:
    """Whether a probe of this name is installed, be it broken or not."""
    return name in _list_built_in_sources() or name in list_probe_names()


class InstalledProbe:
    """A probe of a folder or of another package, whose hooks are checked when they are called.

    Attributes:
        probe: the object of the probe's class.
        source: where it comes from.
    """

    def __init__(self, probe: Probe[Any, Any], source: ProbeSource) -> None:
        self.probe = probe
        self.source = source
        self.name = source.name

    @property
    def title(self) -> str:
        """Heading of the probe."""
        return self.probe.title or self.name

    @property
    def purpose(self) -> Purpose:
        """Purpose of all questions of the probe."""
        return Purpose.of_probe(self.name)

    @property
    def package(self) -> str | None:
        """The package whose folder `prompts` has the probe's templates; None for those of the program."""
        return None if self.source.package == "auditor" else sys.modules[type(self.probe).__module__].__package__ or ""

    def call(self, hook: str, *arguments: Any, returns: type[T]) -> T:
        """Call a hook that returns a value of one type.

        Raises:
            ProbeError: it raised an exception, or returned a value of another type.
        """
        value = self._run(hook, lambda: getattr(self.probe, hook)(*arguments))
        if not isinstance(value, returns):
            raise self._wrong_type(hook, value, f"a {returns.__name__}")
        return value

    def call_optional(self, hook: str, *arguments: Any, returns: type[T]) -> T | None:
        """Call a hook that returns a value of one type or None; see `call`."""
        value = self._run(hook, lambda: getattr(self.probe, hook)(*arguments))
        if value is not None and not isinstance(value, returns):
            raise self._wrong_type(hook, value, f"a {returns.__name__} or None")
        return value

    def call_each(self, hook: str, *arguments: Any, item: type[T]) -> list[T]:
        """Call a hook that returns, or yields, several values of one type; see `call`."""
        values = self._run(hook, lambda: _to_list(getattr(self.probe, hook)(*arguments)))
        if not isinstance(values, list):
            raise self._wrong_type(hook, values, f"several values of the type {item.__name__}")
        for value in values:
            if not isinstance(value, item):
                raise self._wrong_type(hook, value, f"values of the type {item.__name__}", is_item=True)
        return values

    def plan(self, audit: ProbeAudit[Any]) -> list[Unit]:
        """List the units that models are asked about; see `Probe.plan`."""
        units = [tuple(unit) for unit in self.call_each("plan", audit, item=tuple)]
        for unit in units:
            if not unit or not all(isinstance(part, str) for part in unit):
                raise self._wrong_type("plan", unit, "tuples of texts", is_item=True)
        if len(set(units)) < len(units):
            raise ProbeError(f"the hook 'plan' of the probe '{self.name}' returned a unit twice.", self.advice)
        return units

    def respondents(self, audit: ProbeAudit[Any]) -> list[str]:
        """List the models or judges that are asked; see `Probe.respondents`."""
        names = self.call_each("respondents", audit, item=str)
        for name in names:
            if name not in audit.config.models_by_name:
                raise ProbeError(
                    f"the hook 'respondents' of the probe '{self.name}' named '{name}', which is no model or judge.",
                    self.advice,
                )
        return names

    def count_calls(self, audit: ProbeAudit[Any], model: str) -> tuple[int, int]:
        """Count the least and the most calls of a model; see `Probe.count_calls`."""
        counted = self.call_optional("count_calls", audit, model, returns=tuple)
        if counted is None:
            n_questions = len(self.ask(audit, model, self.plan(audit)))
            return n_questions, n_questions * self.probe.max_turns
        if [type(count) for count in counted] != [int, int] or not 0 <= counted[0] <= counted[1]:
            raise self._wrong_type("count_calls", counted, "two whole numbers from 0, the smaller one first")
        return counted

    def fingerprint_inputs(self, audit: ProbeAudit[Any]) -> list[Any]:
        """List what determines the questions besides settings and prompts; see `Probe.fingerprint_inputs`."""
        inputs = self.call_each("fingerprint_inputs", audit, item=object)
        self._require_json("fingerprint_inputs", inputs)
        return inputs

    def ask(self, audit: ProbeAudit[Any], model: str, units: Iterable[Unit]) -> list[Question]:
        """Build the questions to a model about some units; see `Probe.ask`."""
        questions = self.call_each("ask", audit, model, list(units), item=Question)
        for question in questions:
            self._check_question("ask", question)
        if len({(question.unit, question.sample) for question in questions}) < len(questions):
            raise ProbeError(
                f"the hook 'ask' of the probe '{self.name}' returned two questions with the same unit and sample.",
                self.advice,
            )
        return questions

    def ask_next(self, audit: ProbeAudit[Any], turns: Iterable[Any]) -> Question | None:
        """Build the question that follows answered ones; see `Probe.ask_next`."""
        question = self.call_optional("ask_next", audit, list(turns), returns=Question)
        if question is not None:
            self._check_question("ask_next", question)
        return question

    def read(self, answer: ProbeAnswer) -> Reading:
        """Read an answer; see `Probe.read`."""
        reading = self.call("read", answer, returns=Reading)
        self.require_fields("read", reading, {"outcome": Outcome})
        if (reading.value is None) == (reading.outcome.value == "ok"):
            raise ProbeError(
                f"the hook 'read' of the probe '{self.name}' returned the outcome '{reading.outcome}' with "
                f"{'no value' if reading.value is None else 'a value'}: only an answer that is 'ok' has a value.",
                self.advice,
            )
        self._require_json("read", reading.value)
        return reading

    def headline(self, figures: BaseModel) -> Headline | None:
        """The sentence for page one; see `Probe.headline`."""
        headline = self.call_optional("headline", figures, returns=Headline)
        if headline is not None:
            self.require_fields("headline", headline, {"sentence": str, "p_value": (float, int, NoneType)})
            if headline.p_value is not None and not 0 <= headline.p_value <= 1:
                raise self._wrong_type("headline", headline, "a p-value from 0 to 1 or None")
        return headline

    def check_settings(self, settings: ProbeSettings, config: AuditConfig) -> None:
        """Check the rules between the probe's table and others; see `ProbeSettings.check`.

        Raises:
            ValueError: a rule does not hold.
            ProbeError: the hook failed.
        """
        try:
            settings.check(config)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        except (AuditorError, ValueError):
            raise
        except (Exception, SystemExit) as error:
            raise self.failure("the hook 'check'", error) from error

    def resolve_paths(self, settings: ProbeSettings, resolve: Callable[[str], str]) -> ProbeSettings:
        """The probe's table with resolved paths; see `ProbeSettings.resolve_paths`."""
        resolved = self._run("resolve_paths", lambda: settings.resolve_paths(resolve))
        if not isinstance(resolved, type(settings)):
            raise self._wrong_type("resolve_paths", resolved, f"a {type(settings).__name__}")
        return resolved

    def require_fields(self, hook: str, value: object, types: Mapping[str, type | tuple[type, ...]]) -> None:
        """Check the types of fields of a value that a hook returned.

        Raises:
            ProbeError: one has another type; the message names the probe, the hook and the field.
        """
        for name, expected in types.items():
            field = getattr(value, name)
            if not isinstance(field, expected) or isinstance(field, bool):
                names = " or ".join(one.__name__ for one in (expected if isinstance(expected, tuple) else (expected,)))
                raise ProbeError(
                    f"the hook '{hook}' of the probe '{self.name}' returned a {type(value).__name__} whose '{name}' is "
                    f"of the type {type(field).__name__}; it must be {names}.",
                    self.advice,
                )

    def failure(self, part: str, error: BaseException) -> ProbeError:
        """The error of code of the probe that raised an exception.

        Args:
            part: the part of the probe, such as "the hook 'plan'".
        """
        return ProbeError(f"{part} of the probe '{self.name}' failed: {type(error).__name__}: {error}.", self.advice)

    def _require_json(self, hook: str, value: Any) -> None:
        """Raise ProbeError for a value that JSON cannot represent, such as a set or a number that is not finite."""
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ProbeError(
                f"the hook '{hook}' of the probe '{self.name}' returned a value that JSON cannot represent: {error}.",
                self.advice,
            ) from None

    @property
    def advice(self) -> str:
        """How to fix a broken probe."""
        return f"Report this to the authors of {self.source.package}, or remove the probe from the configuration."

    def _check_question(self, hook: str, question: Question) -> None:
        """Raise ProbeError for a field of the wrong type, and for a schema that the probe does not declare."""
        self.require_fields(hook, question, _QUESTION_FIELDS)
        problem = _find_question_problem(question)
        if problem:
            raise ProbeError(
                f"the hook '{hook}' of the probe '{self.name}' returned a Question {problem}.", self.advice
            )
        if question.schema is not None and question.schema not in self.probe.schemas:
            raise ProbeError(
                f"the hook '{hook}' of the probe '{self.name}' asks for the structure '{question.schema.__name__}', "
                "which is not in the probe's list of schemas.",
                self.advice,
            )

    def _run(self, hook: str, function: Callable[[], T]) -> T:
        """Run a hook; an exception becomes a ProbeError that names the probe and the hook."""
        try:
            return function()
        except AuditorError:
            raise
        except (Exception, SystemExit) as error:
            raise self.failure(f"the hook '{hook}'", error) from error

    def _wrong_type(self, hook: str, value: object, expected: str, *, is_item: bool = False) -> ProbeError:
        """The error of a hook that returned a value of the wrong type."""
        prefix = "a list with a value of the type" if is_item else "a value of the type"
        return ProbeError(
            f"the hook '{hook}' of the probe '{self.name}' returned {prefix} {type(value).__name__}; it must return "
            f"{expected}.",
            self.advice,
        )


def _find_question_problem(question: Question) -> str:
    """What is wrong with a question whose fields have the right types, as the end of a sentence; empty if nothing."""
    if not all(isinstance(part, str) for part in question.unit):
        return "whose unit does not consist of texts"
    if not question.messages:
        return "without messages"
    for message in question.messages:
        if not (isinstance(message, Message) and message.role in ROLES and isinstance(message.content, str)):
            return "with a message that is no Message of two texts, with the role system, user or assistant"
        if not message.content.isascii() and LONE_SURROGATE.search(message.content):
            return "with an incomplete character (a lone surrogate) in a message"
    if not 0 <= question.temperature <= 2:
        return f"whose temperature is {question.temperature}; it must be from 0 to 2"
    if question.max_tokens < 1:
        return f"whose max_tokens is {question.max_tokens}; it must be at least 1"
    return f"whose sample is {question.sample}; it must be at least 0" if question.sample < 0 else ""


def _to_list(values: Any) -> Any:
    """The values that a hook returned or yielded, as a list; anything else unchanged."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str) else values


_LOADED: dict[str, InstalledProbe] = {}
"""The probes that were imported, by name."""


def load_probe(name: str) -> InstalledProbe:
    """Import the installed probe of this name.

    Raises:
        ConfigError: no such probe is installed.
        ProbeError: it cannot be used; the message is one sentence, with the package's name.
    """
    if name in _LOADED:
        return _LOADED[name]
    source = _list_built_in_sources().get(name) or list_probe_sources().get(name)
    if source is None:
        raise ConfigError(f"the probe '{name}' is not installed.", "Install its package.")
    advice = f"Update or uninstall {source.package}."
    if source.problem:
        raise ProbeError(f"{source.problem[0].lower()}{source.problem[1:]}", advice)
    start = f"the probe '{name}' of {source.package} cannot be used"
    try:
        probe_class = source.load()
    except (Exception, SystemExit) as error:  # whatever another package's module raises
        raise ProbeError(f"{start}: {type(error).__name__} at import: {error}.", advice) from error
    if not (isinstance(probe_class, type) and issubclass(probe_class, Probe)):
        raise ProbeError(f"{start}: its entry point is not a class below auditor.probes.Probe.", advice)
    version = getattr(probe_class, "interface_version", None)
    if version != INTERFACE_VERSION:
        raise ProbeError(
            f"{start}: it is written for version {version} of the interface, and this program has version "
            f"{INTERFACE_VERSION}.",
            advice,
        )
    settings = getattr(probe_class, "settings", None)
    if not (isinstance(settings, type) and issubclass(settings, ConfigSection)):
        raise ProbeError(f"{start}: 'settings' is not a class below auditor.probes.ProbeSettings.", advice)
    if source.package != "auditor":
        _require_attributes(probe_class, start, advice)
    try:
        probe = probe_class()
    except (Exception, SystemExit) as error:
        raise ProbeError(f"{start}: its class cannot be created: {type(error).__name__}: {error}.", advice) from error
    probe.name = name
    return _LOADED.setdefault(name, InstalledProbe(probe, source))


def _require_attributes(probe_class: type[Probe[Any, Any]], start: str, advice: str) -> None:
    """Check the types of a probe's attributes, those that `Probe` declares.

    Raises:
        ProbeError: one has another type.
    """
    problem = ""
    for name, hint in get_type_hints(Probe, localns={"BaseModel": BaseModel}).items():
        if name in ("interface_version", "settings"):  # checked before
            continue
        value, [expected] = getattr(probe_class, name), getattr(hint, "__args__", None) or [hint]
        try:
            TypeAdapter(expected).validate_python(value, strict=True)
        except ValidationError:
            type_name = expected.__name__ if inspect.isclass(expected) else str(expected)
            problem = f"'{name}' must be of the type {type_name}, and is {value!r}"
    limits = [name for name in ([] if problem else probe_class.gates) if not name.startswith(("min_", "max_"))]
    if limits:
        problem = f"the name '{limits[0]}' in 'gates' must begin with min_ or max_"
    if problem:
        raise ProbeError(f"{start}: {problem}.", advice)


def load_built_in(name: str) -> BuiltInProbe:
    """Import the built-in probe of this name, one of `BUILT_IN_PROBES`."""
    probe = load_probe(name).probe
    assert isinstance(probe, BuiltInProbe), name
    return probe


def find_progress_label(name: str) -> str:
    """How the display of progress calls the stage of a built-in probe; empty for its name, and for other stages."""
    return load_built_in(name).progress_label if name in _list_built_in_sources() and _has_stage(name) else ""


def list_folder_probes() -> list[InstalledProbe]:
    """Import the probes in folders of the program that have no stage of their own, in alphabetical order."""
    return [load_probe(name) for name in _list_built_in_sources() if not _has_stage(name)]


def _has_stage(name: str) -> bool:
    """Whether the probe in a folder has a stage of its own, the module `stage`: a class below `BuiltInProbe`."""
    return any((folder / name / "stage.py").is_file() for folder in FOLDERS)


def list_built_in_names() -> tuple[str, ...]:
    """List the names of the probes of `list_built_in_probes`, in the order of their stages."""
    return tuple(probe.name for probe in list_built_in_probes())


@functools.cache
def list_built_in_probes() -> list[BuiltInProbe]:
    """Import the probes in folders of the program that have a stage of their own, in the order of their stages."""
    probes = [load_built_in(name) for name in _list_built_in_sources() if _has_stage(name)]
    return sorted(probes, key=lambda probe: probe.position)


def list_threshold_fields() -> dict[str, Any]:
    """Types of the thresholds under `[check]` that built-in probes declare, with their constraints, by name."""
    return {name: field for probe in list_built_in_probes() for name, field in field_types(probe.thresholds).items()}


def add_probe_fields(model: type[BaseModel], types: Mapping[str, type]) -> None:
    """Add a field for each built-in probe to a model, by the probe's name: a value of a type, or None, the default."""
    for name, field_type in types.items():
        annotation: Any = field_type | None
        model.__annotations__[name] = annotation  # for classes below it
        model.model_fields[name] = FieldInfo(
            annotation=annotation, default=None, description=inspect.getdoc(field_type)
        )
    if model.__pydantic_complete__:  # else it is built at its first use, of parts that are built by then
        model.model_rebuild(force=True)


def find_settings_class(name: str) -> type[ConfigSection] | None:
    """The class of the settings of a probe of the program, or of one that was imported; None for any other."""
    if name in _LOADED or name in _list_built_in_sources():
        settings: type[ConfigSection] = load_probe(name).probe.settings
        return settings
    return None


def _load_built_in(name: str) -> Any:
    """Import the class of a built-in probe: `PROBE` of the module `probe` in its folder."""
    return pkgutil.resolve_name(f"{GROUP}.{name}.probe:PROBE")
