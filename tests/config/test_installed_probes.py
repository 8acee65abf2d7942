"""Probes of other packages: found by metadata, imported when a configuration names them, and checked."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import BaseModel

from auditor.config import AuditConfig, installed_probes, load_config, load_stored_config
from auditor.errors import ConfigError, ProbeError
from auditor.probe_interface import Probe, ProbeAudit, Question
from tests.support.probe_packages import TOY_MODULE, install_package, use_packages

ENTRY_POINTS = """toy = toy:Toy
old = toy:Old
broken = toy:nothing
exit = toy:Exit
absent = exiting:Toy
direct = toy:Toy
Bad = toy:Toy"""
CONFIG = """name = "simulated-toy"
survey = { source = "wvs7-sample" }
judges = []
[[models]]
name = "one"
model = "simulated/inconsistent"
[probes]
"""


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    install_package(folder, ENTRY_POINTS)
    (folder / "exiting.py").write_text("raise SystemExit(4)\n")
    use_packages(monkeypatch, folder)
    return folder


def load(tmp_path: Path, probes: str) -> AuditConfig:
    path = tmp_path / "audit.toml"
    path.write_text(CONFIG + probes)
    return load_config(path)


def test_only_a_probe_that_is_named_is_imported(tmp_path: Path) -> None:
    assert load(tmp_path, "direct = {}").probes.plugins == {}
    assert "toy" not in sys.modules
    config = load(tmp_path, "toy = { samples = 3 }")
    assert config.probes.plugins["toy"].model_dump() == {"samples": 3}
    assert config.probes.direct is None


def test_an_installed_probe_changes_no_hash_and_a_used_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_package = load(tmp_path, "direct = {}").hash
    assert load(tmp_path, "direct = {}\ntoy = {}").hash != with_package
    use_packages(monkeypatch, tmp_path / "empty")
    assert load(tmp_path, "direct = {}").hash == with_package


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        ("toy = { smples = 3 }", "unknown key 'probes.toy.smples'. How to fix: Did you mean 'samples'?"),
        ("toi = {}", "Did you mean 'toy'? A probe of another package has to be installed."),
        ("toy = { samples = 'x' }", "'probes.toy.samples' must be a whole number, not \"x\"."),
        ("toy = 5", "'probes.toy' must be a table, not 5."),
        ("old = {}", "it is written for version 7 of the interface, and this program has version 1."),
        ("broken = {}", "the probe 'broken' of toy-probes cannot be used: AttributeError at import"),
        ("Bad = {}", "has a name that cannot be used"),
        ("exit = {}", "the probe 'exit' of toy-probes cannot be used: its class cannot be created: SystemExit: 3."),
        ("absent = {}", "the probe 'absent' of toy-probes cannot be used: SystemExit at import: 4."),
    ],
)
def test_errors_name_the_key_or_the_package(tmp_path: Path, probes: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, probes)
    assert message in str(caught.value)


def test_a_name_that_is_taken_is_reported_and_the_built_in_probe_is_used(tmp_path: Path) -> None:
    sources = installed_probes.list_probe_sources()
    assert "a built-in probe has this name" in sources["direct (toy-probes)"].problem
    assert load(tmp_path, "direct = { samples = 3 }").direct.samples == 3


def test_a_name_in_two_packages_cannot_be_used(tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(packages, "toy = other:Toy", name="other-probes", module_name="other")
    use_packages(monkeypatch, packages)
    with pytest.raises(ProbeError, match=r"in two packages, .* uninstall one"):
        load(tmp_path, "toy = {}")


def test_a_folder_of_the_program_is_a_built_in_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "probes"
    (folder / "folded").mkdir(parents=True)
    (folder / "folded" / "__init__.py").touch()
    (folder / "folded" / "probe.py").write_text(f"{TOY_MODULE}\nPROBE = Toy\n")
    monkeypatch.setattr(installed_probes, "FOLDERS", [folder])
    monkeypatch.setattr("auditor.probes.__path__", [str(folder)])
    monkeypatch.delitem(sys.modules, "auditor.probes.folded", raising=False)
    installed_probes.list_probe_sources.cache_clear()
    assert load(tmp_path, "folded = { samples = 5 }").probes.plugins["folded"].model_dump() == {"samples": 5}
    assert next(iter(installed_probes.list_probe_sources())) == "folded"


@pytest.fixture(autouse=True)
def forget_packages() -> Iterator[None]:
    yield
    installed_probes.list_probe_sources.cache_clear()


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ({"gone": {"samples": 2}}, "the probe 'gone' is not installed."),
        ({"old": {"samples": 2}}, "the probe 'old' of toy-probes cannot be used"),
        ({"toy": {"x": 2}}, "the installed version of the probe 'toy' cannot read its stored settings."),
    ],
)
def test_a_stored_audit_opens_without_its_probe(tmp_path: Path, stored: dict[str, Any], reason: str) -> None:
    settings = load(tmp_path, "direct = {}").model_dump(mode="json")
    text = json.dumps({**settings, "probes": {**settings["probes"], **stored}})
    config = load_stored_config(text)
    [(name, message)] = config.probes.missing.items()
    assert message.startswith(reason)
    assert config.model_dump(mode="json")["probes"][name] == stored[name]


@pytest.mark.parametrize(
    ("hook", "body", "message"),
    [
        ("plan", "return 5", "'plan' of the probe 'toy' returned a value of the type int"),
        ("plan", "return [5]", "'plan' of the probe 'toy' returned a list with a value of the type int"),
        ("plan", "return [(1, 2)]", "it must return tuples of texts"),
        ("plan", "return [('a',), ('a',)]", "'plan' of the probe 'toy' returned a unit twice"),
        ("plan", "raise SystemExit(3)", "the hook 'plan' of the probe 'toy' failed: SystemExit: 3"),
        ("plan", "raise KeyError('x')", "the hook 'plan' of the probe 'toy' failed: KeyError: 'x'"),
        ("ask", "return 'text'", "'ask' of the probe 'toy' returned a value of the type str"),
        ("ask", "yield None", "'ask' of the probe 'toy' returned a list with a value of the type NoneType"),
        ("read", "return 0.5", "'read' of the probe 'toy' returned a value of the type float"),
        ("read", "return Reading(0.5, Outcome.REFUSED)", "only an answer that is 'ok' has a value"),
        ("read", "return Reading({1, 2})", "'read' of the probe 'toy' returned a value that JSON cannot represent"),
        ("read", "return Reading(float('nan'))", "returned a value that JSON cannot represent"),
        ("respondents", "return ['nobody']", "'respondents' of the probe 'toy' named 'nobody', which is no model"),
        ("count_calls", "return (1, 'x')", "'count_calls' of the probe 'toy' returned a value of the type tuple"),
        ("fingerprint_inputs", "return [{1}]", "'fingerprint_inputs' of the probe 'toy' returned a value that JSON"),
        ("ask_next", "return 1", "'ask_next' of the probe 'toy' returned a value of the type int"),
        ("ask_next", "return Question('a', ())", "Question whose 'unit' is of the type str; it must be tuple"),
        ("count_calls", "return (9, 5)", "two whole numbers from 0, the smaller one first"),
        ("count_calls", "return (-1, 5)", "two whole numbers from 0, the smaller one first"),
        ("ask", "yield Question((1,), ASKED)", "'ask' of the probe 'toy' returned a Question whose unit does not"),
        ("ask", "yield Question(ASKED, ASKED)", "returned a Question whose unit does not consist of texts"),
        ("ask", "yield Question(('a',), ())", "returned a Question without messages"),
        ("ask", "yield Question(('a',), ('text',))", "returned a Question with a message that is no Message"),
        ("ask", "yield Question(('a',), (Message('user', 5),))", "with a message that is no Message of two texts"),
        ("ask", "yield Question(('a',), (Message('boss', 'Do'),))", "with the role system, user or assistant"),
        ("ask", "yield Question(('a',), (Message('user', chr(0xD800)),))", "an incomplete character"),
        ("ask", "yield Question(('a',), ASKED, temperature=7)", "whose temperature is 7; it must be from 0 to 2"),
        ("ask", "yield Question(('a',), ASKED, temperature=float('nan'))", "whose temperature is nan; it must be"),
        ("ask", "yield Question(('a',), ASKED, max_tokens=0)", "whose max_tokens is 0; it must be at least 1"),
        ("ask_next", "return Question(('a',), ASKED, -1)", "whose sample is -1; it must be at least 0"),
        ("ask", "yield Question(('a',), (), max_tokens='5')", "whose 'max_tokens' is of the type str; it must be int"),
        ("read", "return Reading(5, 'ok')", "Reading whose 'outcome' is of the type str; it must be Outcome"),
        ("headline", "return Headline(5)", "Headline whose 'sentence' is of the type int; it must be str"),
        ("headline", "return Headline('a', 2)", "it must return a p-value from 0 to 1 or None"),
    ],
)
def test_a_hook_with_a_wrong_result_is_named_with_its_probe(
    packages: Path, tmp_path: Path, hook: str, body: str, message: str
) -> None:
    module = TOY_MODULE.replace("import Needs", "import Headline, Message, Needs, Question")
    asked = "ASKED = (Message('user', 'Why?'),)"
    (packages / "toy.py").write_text(f"{module}\n    def {hook}(self, *arguments):\n        {body}\n\n{asked}\n")
    source = installed_probes.list_probe_sources()["old"]
    probe = installed_probes.InstalledProbe(source.load()(), installed_probes.ProbeSource("toy", "x", "1", source.load))
    audit: Any = ProbeAudit(settings=None, config=load(tmp_path, "direct = {}"), survey=None)  # type: ignore[arg-type]
    calls: dict[str, Callable[[], object]] = {
        "plan": lambda: probe.plan(audit),
        "ask": lambda: probe.ask(audit, "one", [("a",)]),
        "read": lambda: probe.read(None),  # type: ignore[arg-type]
        "respondents": lambda: probe.respondents(audit),
        "count_calls": lambda: probe.count_calls(audit, "one"),
        "fingerprint_inputs": lambda: probe.fingerprint_inputs(audit),
        "ask_next": lambda: probe.ask_next(audit, []),
        "headline": lambda: probe.headline(None),  # type: ignore[arg-type]
    }
    with pytest.raises(ProbeError, match=r"Report this to the authors of x") as caught:
        calls[hook]()
    assert message in caught.value.message


def test_a_question_with_a_structure_that_is_not_declared_is_refused(packages: Path) -> None:
    question = "Question(('a',), (Message('user', 'Why?'),), schema=Reading)"
    module = f"{TOY_MODULE}\n    def ask(self, *arguments):\n        yield {question}\n"
    (packages / "toy.py").write_text(module.replace("import Needs", "import Message, Needs, Question"))
    source = installed_probes.list_probe_sources()["old"]
    probe = installed_probes.InstalledProbe(source.load()(), source)
    with pytest.raises(ProbeError, match="'Reading', which is not in the probe's list of schemas"):
        probe.ask(ProbeAudit(None, None, None), "one", [("a",)])  # type: ignore[arg-type]
    assert Question(("a",), ()).schema is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("check(self, config):\n        return {}['x']", "the hook 'check' of the probe 'toy' failed: KeyError: 'x'"),
        ("check(self, config):\n        raise ValueError('Too few.')", "audit.toml: Too few. How to fix:"),
        ("check(self, config):\n        raise ConfigError('Few.', 'How to fix: More.')", "audit.toml: Few. How to"),
        ("resolve_paths(self, resolve):\n        return 5", "'resolve_paths' of the probe 'toy' returned a value of"),
        ("resolve_paths(self, resolve):\n        raise OSError('x')", "'resolve_paths' of the probe 'toy' failed: OS"),
    ],
)
def test_a_method_of_the_settings_that_fails_is_named(packages: Path, tmp_path: Path, body: str, message: str) -> None:
    module = TOY_MODULE.replace("\nclass Toy(", f"\n    def {body}\n\nclass Toy(", 1)
    (packages / "toy.py").write_text(module.replace("import Needs", "import ConfigError, Needs"))
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "toy = {}")
    assert message in str(caught.value)


ATTRIBUTES = sorted(get_type_hints(Probe, localns={"BaseModel": BaseModel}).keys() - {"interface_version", "settings"})


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_each_attribute_of_a_wrong_type_is_named_with_its_probe(packages: Path, tmp_path: Path, attribute: str) -> None:
    (packages / "toy.py").write_text(f"{TOY_MODULE}\nToy.{attribute} = [5.5]\n")
    with pytest.raises(ProbeError, match=rf"the probe 'toy' .*: '{attribute}' must be of the type .* and is \[5.5\]"):
        load(tmp_path, "toy = {}")


def test_thresholds_have_a_direction(packages: Path, tmp_path: Path) -> None:
    (packages / "toy.py").write_text(f"{TOY_MODULE}\nToy.gates = {{'gap': 'A gap.'}}\n")
    with pytest.raises(ProbeError, match="the name 'gap' in 'gates' must begin with min_ or max_"):
        load(tmp_path, "toy = {}")


HOOKS = [name for name, hook in vars(Probe).items() if inspect.isfunction(hook) and not name.startswith("_")]
CHECKED_CALL = re.compile(r"\.(call|call_optional|call_each)\(\s*\"(\w+)\"")


def test_the_program_calls_every_hook_through_the_checks() -> None:
    root = Path(installed_probes.__file__).parents[1]
    # The folders at the top of the repository are links below the package.
    files = [Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names]
    sources = [file.read_text(encoding="utf-8") for file in files if file.suffix == ".py"]
    checked = {match.group(2) for source in sources for match in CHECKED_CALL.finditer(source)}
    assert checked == set(HOOKS)
    assert not [source for source in sources if re.search(rf"probe\.probe\.({'|'.join(HOOKS)})\(", source)]


@pytest.mark.parametrize("checked_call", ["call", "call_optional", "call_each"])
@pytest.mark.parametrize("hook", HOOKS)
def test_each_hook_that_returns_a_wrong_type_is_named_with_its_probe(
    packages: Path, hook: str, checked_call: str
) -> None:
    (packages / "toy.py").write_text(f"{TOY_MODULE}\n    def {hook}(self, *arguments):\n        return [5]\n")
    source = installed_probes.list_probe_sources()["old"]
    probe = installed_probes.InstalledProbe(source.load()(), installed_probes.ProbeSource("toy", "x", "1", source.load))
    expected = {"item": str} if checked_call == "call_each" else {"returns": str}
    with pytest.raises(ProbeError, match=rf"the hook '{hook}' of the probe 'toy' returned .*; it must return "):
        getattr(probe, checked_call)(hook, None, **expected)
