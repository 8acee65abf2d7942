"""A store keeps the first capability of each model, until one with a form completes it."""

from __future__ import annotations

from auditor.domain import AnswerForm, Capability, CapabilityKey
from auditor.models.capability_registry import MemoryCapabilityStore

KEY = CapabilityKey("openai/x", None, None)


async def test_the_first_capability_is_kept_until_one_with_a_form_completes_it() -> None:
    store = MemoryCapabilityStore()
    free_text, tool = Capability(dropped_params=("seed",)), Capability(AnswerForm.TOOL, dropped_params=("seed",))
    assert await store.save(KEY, free_text, "") == free_text
    assert await store.save(KEY, Capability(), "") == free_text
    assert await store.save(KEY, tool, "") == tool
    assert await store.save(KEY, Capability(AnswerForm.TEXT), "") == tool
    assert store.load() == {KEY: tool}


async def test_models_servers_and_efforts_have_capabilities_of_their_own() -> None:
    store = MemoryCapabilityStore({KEY: Capability()})
    for key in (KEY._replace(model="openai/y"), KEY._replace(server="http://a"), KEY._replace(effort="low")):
        assert await store.save(key, Capability(AnswerForm.TEXT), "") == Capability(AnswerForm.TEXT)
    assert store.load()[KEY] == Capability()
    assert len(store.load()) == 4
