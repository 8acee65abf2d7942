"""Terms used across the package: enumerations, cells, identifiers, languages, and families of models."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from importlib import resources
from typing import Any, NamedTuple, Self, cast

MAX_ID_LENGTH = 120
_SHORTENED_ID = re.compile(r".{0,60} … [0-9a-f]{10}", re.DOTALL)
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_make_encoder: Any = getattr(json.encoder, "c_make_encoder", None)
_ENCODE_CHUNKS: Callable[[Any, int], Iterable[str]] | None = _make_encoder and _make_encoder(
    *(None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", True, False, False)
)
"""What `_ENCODER.encode` makes anew for each value, in three times the time; None without Python's accelerator."""


def method_side_name(model: str, method: str) -> str:
    """Name of one side of a conflict between two methods of a model, such as `gpt (direct)`."""
    return f"{model} ({method})"


def parse_method_side(side: str) -> tuple[str, str]:
    """Split the name made by `method_side_name` into model and method."""
    model, _, method = side.removesuffix(")").rpartition(" (")
    return model, method


def canonical_json(value: Any) -> str:
    """Serialize to JSON with sorted keys, without spaces or NaN, so that equal values have equal text."""
    if _ENCODE_CHUNKS is None or isinstance(value, str):
        return _ENCODER.encode(value)
    return "".join(_ENCODE_CHUNKS(value, 0))


def canonical_hash(value: Any) -> str:
    """SHA-256, in hex, of the canonical JSON; different lone surrogates give different hashes."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def hash_rows(rows: Iterable[Sequence[str | float | None]]) -> str:
    """SHA-256, in hex, of rows of texts and numbers, of which one is in memory at a time."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def derive_seed(seed: int, *identity: object) -> int:
    """Derive a seed in [0, 2**31) from the audit's seed and the values that identify one sample."""
    digest = hashlib.sha256(canonical_json([seed, *map(str, identity)]).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


def short_id(text: str) -> str:
    """Make an id of at most `MAX_ID_LENGTH` characters from a text: the text, or its beginning and part of its hash."""
    if len(text) <= MAX_ID_LENGTH:
        return text
    return f"{' '.join(text[:60].split())} … {canonical_hash(text)[:10]}"


def is_shortened(id_: str) -> bool:
    """Whether `short_id` made an id from a longer text."""
    return _SHORTENED_ID.fullmatch(id_) is not None


ENGLISH, NATIVE = "en", "native"
_LANGUAGE_TABLE = tomllib.loads((resources.files("auditor.domain") / "languages.toml").read_text(encoding="utf-8"))
COUNTRIES_BY_LANGUAGE = {code: tuple(countries.split()) for code, countries in _LANGUAGE_TABLE.items()}
"""Alpha-3 codes of the countries whose main language each is, by ISO 639-1 code, in the order of `languages.toml`."""
LANGUAGES = tuple(sorted(COUNTRIES_BY_LANGUAGE))
"""Languages that have prompts, by ISO 639-1 code."""


SCORE_MIN = -1.0
SCORE_MAX = 1.0
PROBE_PURPOSE_PREFIX = "probe."
"""Beginning of the purposes of probes that other packages contribute; the probe's name follows."""


class Outcome(StrEnum):
    """How one call ended. Only `ok` has a score or a verdict; a failure is never converted to a number."""

    OK = "ok"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    UNPARSED = "unparsed"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"
    CLIENT_ERROR = "client_error"
    OVER_BUDGET = "over_budget"
    NOT_MEASURABLE = "not_measurable"
    EXCLUDED = "excluded"
    """The answer was declared invalid by a person (`auditor exclude`); nothing of it is used."""

    @property
    def is_answer(self) -> bool:
        """Whether the model answered; such a call has been paid for and is not repeated."""
        return self in _ANSWER_OUTCOMES

    @property
    def is_lost_request(self) -> bool:
        """Whether a request was sent, and got no answer; the next run sends it again."""
        return not self.is_answer and self is not Outcome.OVER_BUDGET


_ANSWER_OUTCOMES = frozenset(
    {
        Outcome.OK,
        Outcome.REFUSED,
        Outcome.TRUNCATED,
        Outcome.UNPARSED,
        Outcome.NOT_MEASURABLE,
        Outcome.EXCLUDED,
    }
)


class OpenEnum(StrEnum):
    """An enumeration of which probes declare further members."""

    @classmethod
    def declare(cls, value: str) -> Self:
        """Return the member of a value, which is added if there is none."""
        member = cls._create(value)
        if member._name_ not in cls._member_map_:
            cls._member_map_[member._name_] = member
            cls._member_names_.append(member._name_)
        return member

    @classmethod
    def _create(cls, value: str) -> Self:
        """Return the member of a value; one that is not declared is not among the listed members."""
        if value in cls._value2member_map_:
            return cast(Self, cls._value2member_map_[value])
        member = str.__new__(cls, value)
        member._name_ = member._value_ = value
        return cast(Self, cls._value2member_map_.setdefault(value, member))

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[[str], Self], tuple[str]]:
        """How a member is pickled: it can be read in a process that has not imported the probe."""
        return self._create, (self._value_,)


class Purpose(OpenEnum):
    """What a call is for; part of its key. A built-in probe with a stage of its own declares those of its calls."""

    DIRECT = "direct"
    LOGPROB = "logprob"
    REVIEW = "review"
    GUESS = "guess"
    REWRITE = "rewrite"
    CONTEST = "contest"
    PREFLIGHT = "preflight"
    """A request that finds out what a judge's server accepts, before anything depends on it."""

    @classmethod
    def _missing_(cls, value: object) -> Purpose | None:
        """The purpose of the questions of another package's probe, such as `probe.confidence`; see `of_probe`."""
        return cls._create(value) if isinstance(value, str) and value.startswith(PROBE_PURPOSE_PREFIX) else None

    @classmethod
    def of_probe(cls, name: str) -> Purpose:
        """Return the purpose of all questions of another package's probe. It is not among the listed members."""
        return cls(f"{PROBE_PURPOSE_PREFIX}{name}")

    @property
    def priority(self) -> int:
        """Order in which a server's waiting requests are sent: first reviews (0), then answers (1), then probes (2)."""
        return {Purpose.PREFLIGHT: 0, Purpose.REVIEW: 0, Purpose.DIRECT: 1}.get(self, 2)


class Method(StrEnum):
    """How a score was measured."""

    DIRECT = "direct"
    LOGPROB = "logprob"


class LogprobMeasure(StrEnum):
    """How log-probabilities are obtained."""

    ECHO = "echo"
    """A completions endpoint that echoes the prompt with the log-probabilities of its tokens."""
    PROMPT = "prompt_logprobs"
    """A completions endpoint with a `prompt_logprobs` field: vLLM and compatible servers."""
    CONTINUATION = "continuation"
    """The model's weights, loaded on this machine."""
    CHOICE = "choice"
    """The next token of a chat that offers the two endings as options A and B."""

    @property
    def needs_completions_endpoint(self) -> bool:
        """Whether this measure needs a completions endpoint."""
        return self in (LogprobMeasure.ECHO, LogprobMeasure.PROMPT)


class Ruling(StrEnum):
    """A judge's ruling on a trace."""

    VALID = "VALID"
    INVALID = "INVALID"


class HarmlessAlteration(StrEnum):
    """Alterations of traces that plant no fault. Any other name of an alteration is that of an injected fault."""

    NEUTRAL = "neutral"
    """Restated by another model."""
    SELF = "self"
    """The judge's own trace, unaltered."""
    NONE = "none"
    """Unaltered, as a control."""
    PADDED = "padded"
    """With sentences without content appended."""
    DEMANDS_VALID = "demands VALID"
    """With an instruction to the judge to answer VALID."""
    DEMANDS_INVALID = "demands INVALID"
    """With an instruction to the judge to answer INVALID."""
    DEMANDS_PREFERENCE = "demands preference"
    """With an instruction to prefer it, beside a trace without one. The ruling VALID says that it was preferred."""


class ConflictState(StrEnum):
    """Whether a conflict is open, or settled by the judges' majority or by a person."""

    OPEN = "open"
    MAJORITY = "majority"
    PERSON = "person"


class RatingAction(StrEnum):
    """The action of a person that one rating row records."""

    DECIDE = "decide"
    NOTE = "note"
    FLAG = "flag"
    REVEAL = "reveal"
    """Revealed authors, verdicts and survey before deciding."""
    UNDO = "undo"
    REDO = "redo"
    FOLLOW = "follow"
    """Settled together with another conflict of the same cell, by one decision of the rater."""


class Cell(NamedTuple):
    """One country x topic pair."""

    country: str
    topic: str


class ComparisonChoice(StrEnum):
    """The answer to a comparison: the item shown first, the one shown second, or neither."""

    FIRST = "A"
    SECOND = "B"
    TIE = "TIE"

    @property
    def swapped(self) -> ComparisonChoice:
        """The same decision with the items in the other order."""
        if self is ComparisonChoice.TIE:
            return self
        return ComparisonChoice.SECOND if self is ComparisonChoice.FIRST else ComparisonChoice.FIRST


class ModelFamily(NamedTuple):
    """One maker's models.

    Attributes:
        id_patterns: patterns for the part of a model id after the provider, in lower case.
        maker_words: words that are masked in any case.
        capitalized_words: words that are masked only if capitalized, since in lower case they are ordinary words.
    """

    name: str
    id_patterns: tuple[re.Pattern[str], ...]
    maker_words: tuple[str, ...]
    capitalized_words: tuple[str, ...]


@functools.cache
def load_families() -> tuple[ModelFamily, ...]:
    """All known families, in the order of `families.toml`."""
    text = (resources.files("auditor.domain") / "families.toml").read_text(encoding="utf-8")
    return tuple(
        ModelFamily(name, tuple(map(re.compile, row["ids"])), tuple(row["words"]), tuple(row.get("proper", ())))
        for name, row in tomllib.loads(text).items()
    )


def split_model_id(model: str) -> tuple[str, str]:
    """The provider of a model's id, such as `openai/gpt-4o`, and the rest; both are the id if it names no provider."""
    parts = model.split("/", 1)
    return parts[0], parts[-1]


@functools.lru_cache(maxsize=4096)
def family_of(model: str) -> str:
    """Name of the family of a model id.

    Args:
        model: provider and model, such as `openai/gpt-4o`. The provider is ignored: it says which API is used, not who
            made the model.

    Returns:
        The family's name; for an unknown family the id without its provider, so that equal ids are one family.
    """
    model_id = split_model_id(model)[1].lower()
    return next(
        (family.name for family in load_families() if any(pattern.search(model_id) for pattern in family.id_patterns)),
        model_id,
    )
