"""Blinding: what a judge may not know is taken out of a trace before the judge reads it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

COUNTRY, OTHER_COUNTRY, TOPIC, AUTHOR = "[country]", "[another country]", "[practice]", "[analyst]"

MAKERS = (
    "openai", "chatgpt", "gpt", "anthropic", "claude", "google", "gemini", "gemma", "deepmind", "meta", "llama",
    "mistral", "mixtral", "qwen", "alibaba", "deepseek", "cohere", "grok", "xai", "smollm", "hugging face",
    "huggingface", "microsoft", "phi", "nvidia", "nemotron", "moonshot", "kimi", "zhipu", "baidu", "ernie",
)  # fmt: skip
"""Names by which models and those who make them speak of themselves."""

_JOINED = re.compile("[\u0600-\u06ff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts that write words together (Chinese, Japanese) or put particles before them (Arabic): matched within words."""
_SELF = re.compile(r"\bas an? (?:ai|artificial intelligence|(?:large )?language model)\b[^,.;\n]*,?\s*", re.IGNORECASE)


def blind(
    text: str,
    *,
    country_words: Sequence[str],
    topic_words: Sequence[str],
    model_names: Sequence[str],
    other_countries: Sequence[str] = (),
) -> str:
    """The text with country, topic and author replaced by labels, and self-descriptions taken out.

    Words are matched whole, in any case, and with the endings that English puts on them; one that ends in `*` with any
    ending.

    Args:
        text: what the audited model wrote.
        country_words: the country's names and demonyms.
        topic_words: the words that give the topic away.
        model_names: names of the audit's models; those of well-known models and makers are always replaced.
        other_countries: names and demonyms of the audit's other countries: a comparison would give the country away.
    """
    text = _SELF.sub("", text)
    for words, label in (
        (country_words, COUNTRY),
        (other_countries, OTHER_COUNTRY),
        (topic_words, TOPIC),
        ((*model_names, *MAKERS), AUTHOR),
    ):
        if words:
            text = _pattern(tuple(words)).sub(label, text)
    return re.sub(r"(\[(?:country|another country|practice|analyst)\])(?:\s+\1)+", r"\1", text)


@functools.lru_cache(maxsize=4096)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted({w for w in words if w.strip()}, key=len, reverse=True)
    options = "|".join(_option(w) for w in longest_first)
    joined = "|".join(_option(w) for w in longest_first if _JOINED.search(w))
    unspaced = f"|{joined}" if joined else ""
    return re.compile(rf"(?<!\w)(?:{options})(?:'s|’s|s'|es|s|ns|ing|ed)?(?!\w){unspaced}", re.IGNORECASE)


def _option(word: str) -> str:
    pattern = r"\s+".join(map(re.escape, word.removesuffix("*").split()))
    if word.endswith("*"):
        return pattern + r"\w*"
    # US is a country, us is not.
    return f"(?-i:{pattern})" if word.isupper() else pattern
