from __future__ import annotations

import re

import pytest

from auditor.agents.blinding import blind
from auditor.agents.giveaways import country_words, other_countries, topic_words
from auditor.agents.languages import country_name, topic_in
from auditor.domain import LANGUAGES
from auditor.surveys import load_survey

SURVEY = load_survey("wvs7-sample")


def hide(text: str, country: str = "Germany", topic: str = "homosexuality", language: str = "en") -> str:
    rest = tuple(c for c in SURVEY.countries if c != country)
    return blind(
        text,
        country_words=country_words(country, language),
        other_countries=other_countries(rest, language),
        topic_words=topic_words(SURVEY, topic, language),
        model_names=("a", "base", "large", "my-model", "SmolLM2-135M", "gpt-4o"),
        language=language,
    )


def test_country_topic_and_author_are_gone() -> None:
    text = (
        "In Germany, most Germans accept homosexuality; the GERMAN view of gay people and homosexuals' rights is mild."
    )
    hidden = hide(text)
    for word in ("german", "homosex", "gay"):
        assert word not in hidden.lower()
    assert "[country]" in hidden
    assert "[practice]" in hidden


def test_a_country_code_is_not_a_pronoun() -> None:
    hidden = blind("The US view tells us much.", country_words=("US", "United States"), topic_words=(), model_names=())
    assert hidden == "The [country] view tells us much."


@pytest.mark.parametrize(
    "text",
    [
        "The metadata of a Germanium diode, a meta-analysis.",
        "A base of large a model; they cohere, and some google it near a llama.",
        "A small village is at the base of a large hill.",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert hide(text) == text


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_country_and_topic_of_the_built_in_surveys_can_be_hidden(language: str) -> None:
    for name in ("wvs7-sample", "pew2013-sample"):
        survey = load_survey(name)
        for country in survey.countries:
            words = country_words(country, language)
            told = f"x {country_name(country, language)} x {country} x"
            hidden = blind(told, country_words=words, topic_words=(), model_names=(), language=language)
            assert hidden == "x [country] x [country] x", country
        for topic in survey.topics:
            words = topic_words(survey, topic, language)
            told = f"x {topic_in(topic, language)} x {topic} x"
            hidden = blind(told, country_words=(), topic_words=words, model_names=(), language=language)
            assert hidden == "x [practice] x [practice] x", topic


INFLECTED = [
    ("ru", "Germany", "В Германии немцы и немецкое общество; Берлину.", "В [country] и [country] общество; [country]."),
    ("ru", "Russia", "Россиянам, русских, после СССР и Кремля.", "[country], после [country] и [country]."),
    ("de", "Germany", "Die Deutschen und deutschlandweit deutsche Werte.", "Die [country] und [country] Werte."),
    ("es", "Mexico", "Los mexicanos, la mexicana y México.", "Los [country], la [country] y [country]."),
    ("fr", "United States", "Les Américains, l'Amérique, l'américaine.", "Les [country]."),
    ("pt", "Brazil", "Os brasileiros e a sociedade brasileira.", "Os [country] e a sociedade [country]."),
    ("tr", "Turkey", "Türkiye'deki Türklerin, Türk toplumunun; Ankara'da.", "[country] toplumunun; [country]."),
    ("tr", "Germany", "Almanlar ve Almanya'da Almanların.", "[country] ve [country]."),
    ("ar", "Egypt", "يرى المصريون والمصرية في مصر وبالقاهرة.", "يرى [country] في [country] [country]."),
    ("sw", "Nigeria", "Wanigeria na Mnigeria wa Lagos.", "[country] na [country] wa [country]."),
    ("sw", "Germany", "Wajerumani wa Ujerumani, Kijerumani.", "[country] wa [country], [country]."),
    ("id", "Indonesia", "Orang Jawa, keindonesiaan, Indonesianya.", "Orang [country], [country], [country]."),
    ("hi", "Pakistan", "पाकिस्तानियों और पाकिस्तानी लोगों का", "[country] और [country] लोगों का"),
    ("ja", "Japan", "日本人は東京で、ドイツ人は", "[country]人は[country]で、[another country]人は"),
    ("zh", "China", "中国人在北京和上海，德国人", "[country]人在[country]和[country]，[another country]人"),
    ("en", "Nigeria", "The Hausa, Nigerians' faith; Berlin.", "The [country]' faith; [another country]."),
    ("en", "Russia", "Soviet times and the Kremlin.", "[country] times and the [country]."),
]  # fmt: skip


@pytest.mark.parametrize(("language", "country", "text", "hidden"), INFLECTED)
def test_inflected_forms_cities_and_peoples(language: str, country: str, text: str, hidden: str) -> None:
    got = hide(text, country=country, language=language)
    for mark in ",;.،":
        got, hidden = got.replace(mark, " "), hidden.replace(mark, " ")
    assert words(got) == words(hidden)


def words(text: str) -> list[str]:
    """Without labels that follow themselves: where two words met that give the same away, one label is left."""
    found = re.findall(r"\[[a-z ]+\]|[^\s\[\]]+", text)
    return [w for i, w in enumerate(found) if not (w == "[country]" and found[i - 1 : i] == [w])]


OVER = [
    ("es", "Un individuo indica francamente lo romántico; la meta."),
    ("tr", "Cinsel yönelim ve cinayet."),
    ("de", "Er spricht, indem er am Rand der Stadt steht."),
    ("sw", "mali ya watu"),
    ("id", "akan ada lima orang"),
    ("ar", "المصرف قريب"),
    ("pt", "Indo ao indivíduo, o real."),
    ("fr", "L'argent indique l'individu."),
    ("ru", "Читаем о гангрене и киргизах."),
]


@pytest.mark.parametrize(("language", "text"), OVER)
def test_words_that_look_like_countries_stay(language: str, text: str) -> None:
    assert hide(text, country="Germany", topic="divorce", language=language) == text


MYSELF = [
    ("en", "As an AI language model trained by OpenAI, I think so. I'm ChatGPT, a chatbot. Fine.", "I think so. Fine."),
    ("de", "Als KI-Sprachmodell, das von OpenAI trainiert wurde, denke ich so.", "denke ich so."),
    ("es", "Como modelo de lenguaje entrenado por OpenAI, creo. Soy una IA de Meta. Bien.", "creo. Bien."),
    (
        "fr",
        "En tant qu'IA entraînée par Mistral, je crois. Je suis un modèle de langage de X. Bien.",
        "je crois. Bien.",
    ),
    ("pt", "Como uma IA treinada pela OpenAI, creio.", "creio."),
    ("ru", "Как языковая модель, обученная OpenAI, я думаю. Я — ИИ, созданный Google. Да.", "я думаю. Да."),
    ("tr", "OpenAI tarafından eğitilmiş bir yapay zeka modeli olarak, düşünüyorum.", "düşünüyorum."),
    ("id", "Sebagai model bahasa yang dilatih oleh OpenAI, saya pikir.", "saya pikir."),
    ("sw", "Kama modeli ya lugha iliyofunzwa na OpenAI, nadhani.", "nadhani."),
    ("ar", "بصفتي نموذجًا لغويًا دربته OpenAI، أعتقد.", "أعتقد."),
    ("hi", "OpenAI द्वारा प्रशिक्षित एक भाषा मॉडल के रूप में, मैं सोचता हूँ।", "मैं सोचता हूँ।"),
    ("ja", "OpenAIによって訓練されたAIとして、私は考える。", "私は考える。"),
    ("zh", "作为由OpenAI训练的人工智能语言模型，我认为。", "我认为。"),
]


@pytest.mark.parametrize(("language", "text", "hidden"), MYSELF)
def test_self_descriptions_are_gone(language: str, text: str, hidden: str) -> None:
    assert hide(text, language=language) == hidden


def test_every_prompt_language_has_self_descriptions_tested() -> None:
    assert {language for language, *_ in MYSELF} == set(LANGUAGES)


def test_names_of_models_and_makers_are_gone() -> None:
    hidden = hide("my-model (GPT-4, GPT4, gpt-4o, Claude), Meta's Llama, SmolLM2-135M too; I am large; Google says.")
    for word in ("openai", "my-model", "gpt", "claude", "smollm", "llama", "meta", "large", "google"):
        assert word not in hidden.lower()
    assert "says" in hidden


def test_style_is_gone() -> None:
    text = (
        "# Head\n- **one** 😀\n* _two_ ✅\n1. three `four`\n> five\n| a | b |\n|---|---|\n“six” — [seven](http://x.y)…"
    )
    assert hide(text) == 'Head\none\ntwo\nthree four\nfive\na , b\n\n"six" - seven...'


def test_the_own_country_goes_before_the_others() -> None:
    assert hide("Germany and Japan.", country="Japan") == "[another country] and [country]."
