"""No error message of a configuration has words of pydantic or Python, whichever key has the wrong value."""

from __future__ import annotations

import copy
import datetime
import math
import re
import tomllib
from collections.abc import Iterator
from itertools import product
from typing import Any

import pydantic
import pytest
import yaml

from auditor import config
from auditor.config import AuditConfig, sections
from auditor.config.base import ConfigSection
from auditor.config.validation_messages import SECRET_KEYS, explain_validation_error
from auditor.config.value_checks import SEPARATORS, Syntax, field_types, type_at_step
from auditor.probes.distribution import settings as distribution
from auditor.probes.logic import settings as logic
from auditor.probes.semantic import settings as semantic
from tests.support.config_fields import iterate_fields

Path = tuple[Any, ...]
FOREIGN = re.compile(
    r"Input should be|NoneType|valid string|type=|_type\b|Value error|pydantic|Field required|Extra inputs|\bdict\b"
    r"|\bNone\b|datetime\.|<class|Section\b|Probe\b|Literal\[|\bUnion\b|\bfloat\b|\bint\b|\bbool\b|\btuple\b|\[key\]"
)
WRONG: tuple[Any, ...] = (
    5, -1, 0, 3.7, 10**30, "", "x y\x1b[31m", "{topic}", [], [1, "x", None], {}, {"x": 5}, {"x": {"y": []}}, True, None,
    datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.time(1), math.nan, math.inf,
    -math.inf, b"x", [[[]]], [{"x": 1}], {"": ""},
)  # fmt: skip
FULL: dict[str, Any] = {
    "name": "a",
    "survey": {"source": "wvs7-sample", "rephrase": {"question": {"en": "{topic} {country}"}, "topics": {"t": "x"}}},
    "models": [{"name": "m", "model": "openai/a", "price": {"input": 1.0, "output": 1.0}, "params": {"p": 1}},
     {"name": "n", "model": "openai/b", "reasoning": {"effort": "low"}, "capabilities": {"dropped_keywords": ["x"]}}],
    "judges": [{"name": "j", "model": "openai/c"}],
    "probes": {**{"direct": {}, "logprob": {}, "review": {}, "distribution": {}, "logic": {}},
     "semantic": {"consistency": {"judge": "j"}}},
    "panel": {"weights": {"j": 1.0}},
    "task": {"source": "x", "answer": "score", "range": [0.0, 1.0]},
    "compare": {"non_inferiority": {"baseline": "before", "margin": 0.05}},
    "telemetry": {"headers": {"h": "os.environ/K"}},
    **{name: {} for name in ("conflicts", "embedding", "limits", "check", "labels", "run", "batch")},
}  # fmt: skip


def every_key(annotation: Any = AuditConfig, value: Any = FULL, path: Path = ()) -> Iterator[Path]:
    """Paths of all keys of the schema, and of all elements in the lists and free tables of `FULL`."""
    if fields := field_types(annotation):
        for name, field_type in fields.items():
            yield (*path, name)
            if isinstance(value, dict) and isinstance(value.get(name), (dict, list)):
                yield from every_key(field_type, value[name], (*path, name))
    elif isinstance(value, (dict, list)):
        for part in value if isinstance(value, dict) else range(len(value)):
            yield (*path, part)
            part_type, is_step = type_at_step(annotation, part, ())
            part_type = part_type if is_step else type_at_step(annotation, "a branch", (part,))[0]
            part_type = part_type if is_step else type_at_step(part_type, part, ())[0]
            if isinstance(value[part], (dict, list)):
                yield from every_key(part_type, value[part], (*path, part))


def with_value(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of `FULL` with the value at one path replaced."""
    config_data = copy.deepcopy(FULL)
    table: Any = config_data
    for part in path[:-1]:
        table = table[part]
    table[path[-1]] = value
    return config_data


KEYS = list(every_key())


def test_every_key_covers_the_complete_schema() -> None:
    named = {name for path in KEYS for name in path if isinstance(name, str)}
    models: list[type[pydantic.BaseModel]] = [AuditConfig, *_models()]
    for model in models:
        assert set(model.model_fields) <= named
    assert len(KEYS) > 150


def _models() -> Iterator[type[pydantic.BaseModel]]:
    """Classes of all sections in the schema."""
    schema = AuditConfig.model_json_schema()["$defs"]
    for name in schema:
        yield next(
            getattr(module, name)
            for module in (config, distribution, logic, sections, semantic)
            if hasattr(module, name)
        )


def test_no_wrong_value_is_explained_in_pydantics_words() -> None:
    for path, value in product(KEYS, WRONG):
        for line in explain_errors(with_value(path, value)).split("\n  also: "):
            assert not FOREIGN.search(line), (path, line)
            assert not line or re.search(r"How to fix: \S", line), (path, line)
            assert len(line) < 600, (path, line)


@pytest.mark.parametrize("syntax", ["toml", "yaml"])
def test_every_example_in_a_message_is_valid(syntax: Syntax) -> None:
    for path in KEYS:
        check_examples(path, syntax)


def check_examples(path: Path, syntax: Syntax) -> None:
    """The settings that the message for a wrong value names as examples are valid."""
    message = explain_errors(with_value(path, datetime.time(1)), syntax)
    examples = re.findall(r", for example (.+?)(?:, or remove| \(the default\)|\.$)", message.split("\n")[0])
    assert examples or "os.environ/" in message or path[-2:-1] == ("params",), message
    separator = SEPARATORS[syntax]
    parse = tomllib.loads if syntax == "toml" else yaml.safe_load
    for setting in re.split(rf" or (?=\w+{separator})", examples[0]) if examples else ():
        text = setting if re.match(rf"\w+{separator}", setting) else f"item{separator}{setting}"
        [(key, value)] = parse(text).items()
        changed_path = path[: path.index(key) + 1] if key in path else path  # the table or list around the value
        explained = explain_errors(with_value(changed_path, value))
        assert not re.search(r"must be|cannot be|unknown key|is missing", explained), (setting, explained)


def explain_errors(data: dict[str, Any], syntax: Syntax = "toml") -> str:
    """The message for a configuration; empty if it is valid."""
    try:
        AuditConfig.model_validate(data)
    except pydantic.ValidationError as error:
        message = explain_validation_error(error, data, AuditConfig, syntax)
        assert message
        return message
    return ""


def test_no_unknown_key_is_explained_in_pydantics_words() -> None:
    for name in set(AuditConfig.model_fields) - {"models"}:
        for data in (FULL | {name + "x": 1}, FULL | {name: {"x\x1b": 1}}, {k: FULL[k] for k in set(FULL) - {name}}):
            message = explain_errors(data)
            assert not FOREIGN.search(message), message
            assert not message or "How to fix: " in message, name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"limits": {"max_attempts": "x"}}, "'limits.max_attempts' must be a whole number from 1 to 100, not \"x\". "
         "How to fix: Correct that value, for example max_attempts = 6 (the default), or remove the key."),
        ({"judges": "peer"},
         '\'judges\' must be "peers" or a list of tables, not "peer". How to fix: Correct that value, for example '
         'judges = "peers" or judges = [{ name = "gpt-4o", model = "openai/gpt-4o" }] or judges = [], or remove '
         'the key: its default is "peers".'),
        ({"judges": ["gpt"]}, "'judges[1]' must be a table, not \"gpt\". How to fix: Correct that value, for example "
         '{ name = "gpt-4o", model = "openai/gpt-4o" }.'),
        ({"judges": 5}, "'judges' must be \"peers\" or a list of tables, not 5. "),
        ({"judges": [5]}, "'judges[1]' must be a table, not 5. "),
        ({"survey": {"source": "x", "countries": ["Japan", 5]}}, "'survey.countries[2]' must be a string, not 5. "),
        ({"conflicts": {"threshold": 3}}, 'must be a number greater than 0 and at most 2 or "auto", not 3. '),
        ({"panel": {"weights": {"j": math.inf}}},
         "'panel.weights.j' must be a finite number of at least 0, not inf. "),
        ({"language": {"str": 5}}, "'language' must be a string or a list of strings, not a table. "),
        ({"task": {"source": "x", "answer": "score", "range": [1]}}, "'task.range' must be a list of 2 values"),
        ({"probes": {"direct": {"schema_version": "2"}}}, "'probes.direct.schema_version' must be 1 or 2, not \"2\". "),
        ({"probes": {"logic": {"k": []}}},
         "'probes.logic.k' must be a non-empty list of values, each a whole number of at least 3, not an empty list. "),
        ({"batch": datetime.date(2020, 1, 1)}, "'batch' must be a table, not the date or time 2020-01-01. "),
        ({"telemetry": {"headers": {"h": "hunter2"}}}, "'telemetry.headers.h' must be"),
        ({"storage": 5}, "'storage' must be a string, not this number. "),
    ],
)  # fmt: skip
def test_a_message_names_the_key_its_type_and_the_value(change: dict[str, Any], message: str) -> None:
    data = {"name": "a", "survey": {"source": "wvs7-sample"}, "models": FULL["models"]} | change
    with pytest.raises(pydantic.ValidationError) as caught:
        AuditConfig.model_validate(data)
    text = explain_validation_error(caught.value, data, AuditConfig)
    assert message in text
    assert "hunter2" not in text


def test_ten_problems_are_listed_and_the_rest_are_counted() -> None:
    data = {"name": "a", "models": [1] * 1_010}
    with pytest.raises(pydantic.ValidationError) as caught:
        AuditConfig.model_validate(data)
    assert explain_validation_error(caught.value, data, AuditConfig).endswith("also: 1\u202f000 more problems.")


def explain_changes(**changes: Any) -> str:
    """Error message for `FULL` with invalid changes."""
    data = copy.deepcopy(FULL) | changes
    with pytest.raises(pydantic.ValidationError) as caught:
        AuditConfig.model_validate(data)
    return explain_validation_error(caught.value, data, AuditConfig)


def test_the_known_keys_are_listed_once() -> None:
    message = explain_changes(xx=1, yy=2, zz=3)
    assert message.count("Known keys: ") == 1
    assert "unknown key 'zz'. How to fix: Correct or remove it." in message


def test_lists_are_counted_in_words() -> None:
    assert "not an empty list." in explain_changes(models=[])
    assert "not a list of 1 item." in explain_changes(seed=[1])
    assert "not a list of 2 items." in explain_changes(seed=[1, 2])


def test_a_description_of_several_lines_is_shown_on_one() -> None:
    class Named(ConfigSection):
        name: str = pydantic.Field(pattern="^a")
        """A name
        that begins with a."""

    with pytest.raises(pydantic.ValidationError) as caught:
        Named.model_validate({"name": "b"})
    assert "A name that begins with a." in explain_validation_error(caught.value, {"name": "b"}, Named)


def test_no_message_shows_a_key_or_an_address() -> None:
    """Addresses and the URL of a database may hold a password, and `params` may hold anything."""
    types = {name: repr((info.annotation, info.metadata)) for _, name, info in iterate_fields()}
    holding_secrets = {name for name, type_ in types.items() if "os\\\\.environ" in type_ or "check_base_url" in type_}
    assert holding_secrets == {"api_key", "api_base", "endpoint", "headers"}
    assert set(SECRET_KEYS) == holding_secrets | {"params", "storage"}
    assert types.keys() >= set(SECRET_KEYS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"probes": {"direct": {"samples": True}}}, "'probes.direct.samples' must be a whole number from 1"),
        ({"probes": {"direct": {"samples": 5, "tolerance": True}}}, "'probes.direct.tolerance' must be a number"),
        ({"probes": {"pressure": {"cells": True}}}, "'probes.pressure.cells' must be a whole number"),
        ({"conflicts": {"threshold": True}}, "'conflicts.threshold' must be a number greater than 0"),
        ({"check": {"min_pearson": True}}, "'check.min_pearson' must be a number from -1 to 1, not true"),
        ({"check": {"min_skill": True}}, "'check.min_skill' must be a number"),
        ({"panel": {"weights": {"j": True}}}, "'panel.weights': true and false are not numbers"),
        ({"models": [{"name": "m", "model": "openai/a", "price": {"input": 1, "output": 1, "as_of": 0}}]},
         "as_of' must be a date such as 2026-07-01, not 0"),
    ],
)  # fmt: skip
def test_true_is_no_number_and_a_number_is_no_date(table: dict[str, Any], message: str) -> None:
    """Pydantic reads true as 1: whoever switches early stopping on would stop each question at the minimum."""
    data = {key: FULL[key] for key in ("name", "survey", "models", "judges")} | table
    with pytest.raises(pydantic.ValidationError) as caught:
        AuditConfig.model_validate(data)
    assert message in explain_validation_error(caught.value, data, AuditConfig)


def test_a_key_of_the_whole_file_in_a_section_has_to_move() -> None:
    """In TOML, what is written below `[[models]]` belongs to the model."""
    data = copy.deepcopy(FULL) | {"models": [{"name": "m", "model": "openai/a", "limits": {"budget_usd": 1}}]}
    with pytest.raises(pydantic.ValidationError) as caught:
        AuditConfig.model_validate(data)
    message = explain_validation_error(caught.value, data, AuditConfig)
    assert "unknown key 'models[1 'm'].limits'. How to fix: 'limits' is a key of the whole file: move it" in message


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"samples": 5}, "'samples' in the table 'probes.direct'"),
        ({"budget_usd": 4}, "Set 'budget_usd' in the table 'limits'."),
        ({"budget": 4}, "Set 'budget_usd' in the table 'limits'."),
        ({"countries": ["Germany"]}, "Set 'countries' in the table 'survey'"),
        ({"threshold": 0.4}, "Set 'threshold' in the table 'conflicts'"),
        ({"temperature": 0.5}, "Set 'temperature' in the table 'models' or 'judges' or "),
        ({"direct": {"samples": 2}}, "Set 'direct' in the table 'probes'."),
        ({"providers": []}, "Did you mean 'models'?"),
        ({"database": "my.db"}, "Did you mean 'storage'?"),
        ({"run": {"concurrency": 3}}, "Set 'concurrency' in the table 'models'"),
        ({"limits": {"rpm": 3}}, "Set 'rpm' in the table 'models'"),
        ({"limits": {"top_p": 0.9}}, "Set 'top_p' in the table 'probes.direct'"),
        ({"survey": {"path": "my.csv"}}, "Did you mean 'source'?"),
        ({"output": "report.html"}, "Known keys: "),
    ],
)
def test_a_key_of_another_table_or_tool_is_explained(change: dict[str, Any], hint: str) -> None:
    assert hint in explain_errors(FULL | change)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("base_url", "Did you mean 'api_base'?"),
        ("endpoint", "Did you mean 'api_base'?"),
        ("id", "Did you mean 'model'?"),
        ("provider", "Did you mean 'model'?"),
        ("top_p", "Write it in 'params', for example params = { top_p = … }."),
        ("headers", "Write it in 'params', for example params = { extra_headers = … }."),
        ("max_retries", "Set 'max_attempts' in the table 'limits'."),
        ("direct", "Set 'direct' in the table 'probes'."),
        ("tempratur", "Did you mean 'temperature'?"),
    ],
)
def test_a_key_that_other_tools_have_for_a_model_is_explained(key: str, hint: str) -> None:
    models = [FULL["models"][0] | {key: "x"}]
    assert hint in explain_errors(FULL | {"models": models})
