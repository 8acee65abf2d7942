from __future__ import annotations

from auditor.agents.blinding import blind
from auditor.surveys import demonyms, load_survey


def hide(text: str, country: str = "Germany", topic: str = "homosexuality") -> str:
    words = load_survey("wvs7-sample").words[topic]
    return blind(
        text,
        country_words=(country, *demonyms(country)),
        topic_words=(topic, *words),
        model_names=("my-model", "SmolLM2-135M"),
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


def test_self_descriptions_and_names_are_gone() -> None:
    hidden = hide("As an AI language model trained by OpenAI, I, my-model (GPT-4, Claude), think so. SmolLM2-135M too.")
    for word in ("openai", "my-model", "gpt", "claude", "smollm", "language model"):
        assert word not in hidden.lower()
    assert "think so" in hidden


def test_a_country_code_is_not_a_pronoun() -> None:
    hidden = blind("The US view tells us much.", country_words=("US", "United States"), topic_words=(), model_names=())
    assert hidden == "The [country] view tells us much."


def test_words_inside_words_stay() -> None:
    assert hide("The metadata of a Germanium diode") == "The metadata of a Germanium diode"


def test_every_topic_and_country_of_the_built_in_surveys_can_be_hidden() -> None:
    for name in ("wvs7-sample", "pew2013-sample"):
        survey = load_survey(name)
        for country in survey.countries:
            assert country not in hide(f"They of {country} say so.", country=country)
        for topic in survey.topics:
            words = survey.words[topic]
            hidden = blind(f"About {topic}: fine.", country_words=(), topic_words=(topic, *words), model_names=())
            assert hidden == "About [practice]: fine."
