from __future__ import annotations

import re

import pytest

from auditor.agents.blinding import (
    COUNTRY_LABEL,
    author_names,
    blind_and_truncate,
    blind_text,
    build_term,
    country_terms,
    identifying_terms,
    mask_authors,
    topic_terms,
)
from auditor.agents.localization import country_name, translate_topic
from auditor.domain import LANGUAGES
from auditor.surveys import load_survey
from tests.support.language_samples import SAMPLES

SURVEY = load_survey("wvs7-sample")
URUGUAY = build_term("Uruguay", COUNTRY_LABEL)


def hide(text: str, country: str = "Germany", topic: str = "homosexuality", language: str = "en") -> str:
    terms = identifying_terms(SURVEY, country, topic, language)
    model_names = ("a", "base", "large", "my-model", "SmolLM2-135M", "gpt-4o")
    return blind_text(text, terms=terms, model_names=model_names, language=language)


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
    terms = tuple(build_term(name, COUNTRY_LABEL) for name in ("US", "United States"))
    hidden = blind_text("The US view tells us much.", terms=terms, model_names=())
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
    surveys = [SURVEY, load_survey("pew2013-sample")]
    for country in dict.fromkeys(country for survey in surveys for country in survey.countries):
        words = country_terms(country, language)
        sentence = f"x {country_name(country, language)} x {country} x"
        hidden = blind_text(sentence, terms=words, model_names=(), language=language)
        assert hidden == "x [country] x [country] x", country
    for survey in surveys:
        for topic in survey.topics:
            words = topic_terms(survey, topic, language)
            sentence = f"x {translate_topic(topic, language)} x {topic} x"
            hidden = blind_text(sentence, terms=words, model_names=(), language=language)
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
    ("en", "Japan", "Germany and Japan.", "[another country] and [country]."),
]  # fmt: skip


@pytest.mark.parametrize(("language", "country", "text", "hidden"), INFLECTED)
def test_inflected_forms_cities_and_peoples(language: str, country: str, text: str, hidden: str) -> None:
    blinded = hide(text, country=country, language=language)
    for mark in ",;.،":
        blinded, hidden = blinded.replace(mark, " "), hidden.replace(mark, " ")
    assert words(blinded) == words(hidden)


def words(text: str) -> list[str]:
    """Without labels that follow themselves: where two words met that give the same away, one label is left."""
    tokens = re.findall(r"\[[a-z ]+\]|[^\s\[\]]+", text)
    return [w for i, w in enumerate(tokens) if not (w == "[country]" and tokens[i - 1 : i] == [w])]


OVER = [
    ("es", "Un individuo indica francamente lo romántico; la meta."),
    ("tr", "Cinsel yönelim ve cinayet."), ("de", "Er spricht, indem er am Rand der Stadt steht."),
    ("sw", "mali ya watu"), ("id", "akan ada lima orang"), ("ar", "المصرف قريب"), ("pt", "Indo ao indivíduo, o real."),
    ("fr", "L'argent indique l'individu."), ("ru", "Читаем о гангрене и киргизах."),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text"), OVER)
def test_words_that_look_like_countries_stay(language: str, text: str) -> None:
    assert hide(text, country="Germany", topic="divorce", language=language) == text


MYSELF = [(code, *pair) for code, samples in SAMPLES.items() for pair in samples["self_descriptions"].items()]


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


IDS = ("o1", "o3", "k2", "r1", "4o", "GPT-4", "o1-mini", "c4ai", "01")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("I am o1.", "I am [analyst]."),
        ("O1, o3 differ; K2's view, R1: 4o!", "[analyst], [analyst] differ; [analyst] view, [analyst]: [analyst]!"),
        ("gpt-4, (o1-mini)", "[analyst], ([analyst])"),
        ("o1-2024-12-17 and o3-pro, o1-preview", "[analyst] and [analyst], [analyst]"),
        ("我是o1模型，不是o3。", "我是[analyst]模型，不是[analyst]。"),
        ("私はo1です。", "私は[analyst]です。"),
        ("Ben o1'im; я o1, saya o1", "Ben [analyst]'im; я [analyst], saya [analyst]"),
        ("أنا o1، मैं o1 हूँ", "أنا [analyst]، मैं [analyst] हूँ"),
        ("o1_ and model_o1 and ｏ１, Ｏ１", "[analyst]_ and model_[analyst] and [analyst], [analyst]"),
    ],
)  # fmt: skip
def test_ids_of_two_characters_are_hidden_in_any_case(text: str, hidden: str) -> None:
    assert mask_authors(text, IDS) == hidden


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("Yi", "Yi thinks so, and YI's maker too.", "[analyst] thinks so, and [analyst]'s maker too."),
        ("yi", "As Yi would say.", "As [analyst] would say."), ("yi", "My name is yi.", "My name is [analyst]."),
        ("Phi", "So Phi says.", "So [analyst] says."), ("R", "My name is R.", "My name is [analyst]."),
        ("No", "I am No, ask me.", "I am [analyst], ask me."),
        ("no", 'a model called "no"', 'a model called "[analyst]"'),
        ("Al", "Me llamo Al.", "Me llamo [analyst]."), ("Es", "Ich heiße Es.", "Ich heiße [analyst]."),
        ("On", "Je m'appelle On.", "Je m'appelle [analyst]."), ("7", "So says model 7.", "So says model [analyst]."),
    ],
)  # fmt: skip
def test_short_names_are_hidden_with_a_capital_or_where_introduced(name: str, text: str, hidden: str) -> None:
    assert mask_authors(text, [name]) == hidden


SHORT = (*IDS, "Yi", "R", "a", "A", "Al", "On", "No", "Es", "En", "El", "It", "Is", "Da", "So", "Or", "An", "Ne", "Um",
         "Die", "Der", "Los", "Una", "Les", "Son", "Bir", "Dan", "Ini", "Kwa", "Wa", "Он", "Не", "Это", "The",
         "Th", "1", "2", "3", "42", "1990", "1990s", "2nd", "3.5")  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "No, it is on a list. So, or an ox. I am no expert; I am on the side of the poor. The model is no help.",
        "It is called an act of faith. I am a judge. I'm so sure. The model, a simple one, is on trial.",
        "In 1990, 3 reasons; on the 2nd day 42 of 100 people, 3.5 of them young, in the 1990s. a 1 b 2. o 1, 0 1.",
        "Thing and bring, sting; On the one hand, No one. Section 4 of 7. Add 01 to 02? Or 10.",
        "The view of R and D. A, B and C. Plan A is on. Dan eats; the 3 people.",
        "Es ist so. Die Ehe und der Tod. An der Wand. Ich bin der Meinung, es sei so. Ich bin es. Im Jahr 1990. Da.",
        "No es así. Los padres, al fin. El hombre soy yo. Es una ley. En 1990, 3 de 10. Una mujer. Soy de la idea.",
        "On dit que les gens sont bons. Les hommes. Es-tu là ? Or, je suis un homme. Il en a 3. En 1990, on a dit.",
        "Um homem é um ser. No ano de 1990, os dois. Da lei. Sou um homem; é o modelo da sociedade. As 3 razões.",
        "Bir kadın. Al bunu. O, on kişi. En iyi 3 neden. Ben bir insanım. Ne var ki. On iki yıl, 1990'da.",
        "Ini adalah dan itu. Di sini ada 3. Dan saya ini. Pada 1990 orang tua. Saya di rumah.",
        "Wa kwanza ni huyo. Kwa sababu 3. Mimi ni mtu. Ni kwa ajili ya watu. Mwaka 1990.",
        "Он не прав. Не так. Это не модель, я не он. На 2-м месте в 1990 году. Они и он. Я это знаю.",
        "В 1990 году 3 причины. Он сказал: нет.",
        "في عام 1990، 3 أسباب. أنا لا أعرف.",
        "सन 1990 में 3 कारण। मैं नहीं जानता।",
        "1990年には3つの理由がある。私は知らない。モデルは3つある。",
        "1990年有3个理由。我是人。第2个。10月1日。",
    ],
)
def test_ordinary_words_and_numbers_are_no_names(text: str) -> None:
    assert mask_authors(text, SHORT) == text


def test_the_names_of_a_model_are_its_id_and_what_the_id_is_called_for_short() -> None:
    assert {"fast", "o1", "o1-2024-12-17"} <= set(author_names((("fast", "openai/o1-2024-12-17"),)))
    assert "o1" in author_names((("x", "openrouter/openai/o1-preview"),))
    assert "o3" in author_names((("x", "azure/o3-mini-high"),))
    assert {"kimi-k2", "k2"} <= set(author_names((("x", "moonshot/kimi-k2-0905-preview"),)))
    assert "r1" in author_names((("x", "deepseek/deepseek-r1"),))
    assert "claude-3-5-sonnet" in author_names((("x", "vertex_ai/claude-3-5-sonnet@20240620"),))
    assert "llama3" in author_names((("x", "ollama/llama3:8b"),))


def test_names_for_short_are_no_ordinary_words() -> None:
    for name in author_names((("my-model", "x/my-model-2024"), ("v3", "x/some-v3-q4"), ("b", "fireworks/models/b-7b"))):
        assert name not in ("my", "some", "models", "q4")


@pytest.mark.parametrize("n", [80, 230, 500, 5_000])
@pytest.mark.parametrize("shift", range(8))
def test_nothing_that_is_hidden_shows_at_a_cut(n: int, shift: int) -> None:
    text = "." * shift + "Uruguay o1 " * n
    shown = blind_and_truncate(text, 800, terms=(URUGUAY,), model_names=("o1",))
    assert len(shown) <= 800
    assert not re.search(r"Ur|ug|gu|ay|o1|\bo\b", shown)
    assert "characters left out" in shown


def test_nothing_shows_at_a_cut_of_a_text_that_is_all_but_invisible() -> None:
    text = "Uruguay " + "\u200b" * 1_790 + "Uruguay " * 5_000 + "\u200b" * 1_793 + "Uruguay "
    for shift in range(10):
        shown = blind_and_truncate("x" * shift + text, 800, terms=(URUGUAY,), model_names=())
        assert not re.search("Ur|ru|ay", shown)
