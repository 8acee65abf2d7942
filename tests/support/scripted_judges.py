"""Nine scripted judges of known behaviour, and authors of traces that are randomly sound or faulty, long or short.

Sound traces contain "carefully", faulty ones "hastily", long ones "moreover". A judge's verdict depends on these, on
its behaviour and on a pseudo-random number from the question, so that every run gives the same verdicts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from tests.support.audit_configs import KEY_VARIABLE
from tests.support.fake_server import Reply, Request, completion, error
from tests.support.review_answers import rate_aspects

JUDGES = ("always", "coin", "long", "kin", "fails", "tired", "honest1", "honest2", "honest3")
HONEST_ACCURACY = 0.8
FAILURE_SHARE = 0.3
REFUSALS = ("no", "never", "not now", "not here", "not so")
"""What the judge `fails` says: five equal failures in a row, in whatever order requests arrive, would stop it."""
LONG_VALID_SHARES = (0.9, 0.1)
"""Probability of VALID from the judge `long`, for long and for short traces."""
TIRED_VALID_SHARES = (0.2, 0.8)
"""Probability of VALID from the judge `tired` in the first and in the second half; it prefers what it sees first."""
PADDING = " Moreover, what is said in public differs from what is done at home, and moreover it differs by generation."
COUNTRIES = ["Turkey", "Japan", "Nigeria", "Brazil", "Mexico"]
TOPICS = ["homosexuality", "divorce", "abortion", "suicide", "euthanasia"]


def audit(url: str, judges: tuple[str, ...] = JUDGES, n_models: int = 5, **changes: Any) -> dict[str, Any]:
    """A config of up to five models over 25 cells; model-a and the judge `kin` are of one family."""

    def section(name: str, **more: Any) -> dict[str, Any]:
        model_section = {
            "name": name, "model": f"openai/{name}", "api_base": url, "api_key": f"os.environ/{KEY_VARIABLE}",
        }  # fmt: skip
        return model_section | {"family": "one" if name in ("kin", "model-a") else name} | more

    return {
        "name": "scripted",
        "survey": {"source": "wvs7-sample", "countries": COUNTRIES, "topics": TOPICS},
        "embedding": {"model": "none"},
        "models": [section(f"model-{x}") for x in "abcde"[:n_models]],
        "judges": [section(name) for name in judges],
        "probes": {"direct": {"samples": 1}},
        "limits": {"max_attempts": 1},
        "seed": 6,
    } | changes


class Script:
    """Server script for all models; `asked` counts each judge's verdicts."""

    def __init__(self, verdicts: int) -> None:
        self.verdicts = verdicts
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Reply:
        name, schema = str(request.body["model"]), request.schema
        if request.is_direct_question:
            return _author(request)
        if schema == "BlindGuess":
            return _guess(request, name)
        if schema == "Restated":
            text = "People there think it over carefully." if "carefully" in request.text else "They judge hastily."
            return completion(json.dumps({"text": text}))
        if schema == "SidePreference":
            first = name == "tired" or request.draw("place") < 0.5
            return completion(json.dumps({"reason": "So.", "better": "FIRST" if first else "SECOND"}))
        self.asked[name] += 1
        if name == "fails" and request.draw("fail") < FAILURE_SHARE and self.asked[name] > 2:
            return error(400, REFUSALS[int(request.draw("words") * len(REFUSALS))])
        valid = request.draw("valid") < self._chance(name, request)
        return completion(json.dumps(_review(valid)))

    def _chance(self, name: str, request: Request) -> float:
        text = request.text.lower()
        if name == "always":
            return 1.0
        if name == "long":
            return LONG_VALID_SHARES["moreover" not in text and "in general terms" not in text]
        if name == "kin":
            return 1.0 if "kappa" in text else 0.5
        if name == "tired":
            return TIRED_VALID_SHARES[self.asked[name] > self.verdicts / 2]
        if name == "coin":
            return 0.5
        faulty = "hastily" in text or "rained" in text or "liberal societies" in text
        return 1 - HONEST_ACCURACY if faulty else HONEST_ACCURACY


def _author(request: Request) -> Reply:
    """Write a trace; those of model-a contain a word that the judge `kin` recognizes."""
    manner = "carefully" if request.draw("sound") < 0.5 else "hastily"
    mark = " They speak of kappa." if request.body["model"] == "model-a" else ""
    pad = PADDING if request.draw("long") < 0.5 else ""
    norms = f"People there weigh norm {int(1e6 * request.draw('n'))} {manner}.{mark}"
    score = round(2 * request.draw() - 1, 2)
    country = next(c for c in COUNTRIES if f"Country: {c}" in request.text)
    code = "leak" + "x" * COUNTRIES.index(country)
    return completion(json.dumps({"norms": norms, "reasoning": f"So it is, {code}.{pad}", "score": score}))


def _review(valid: bool) -> dict[str, Any]:
    return {
        **rate_aspects(valid), "justification": "So it is.", "verdict": "VALID" if valid else "INVALID",
        "confidence": 70,
    }  # fmt: skip


def _guess(request: Request, name: str) -> Reply:
    """Guess the country: `honest1` decodes it from the marker in the text, the others guess at random."""
    options_by_question = [
        re.findall(r"^\d+\. (.*)$", part, re.MULTILINE) for part in re.split("Practices:|Analysts:", request.text)
    ]
    picks = [1 + int(request.draw(f"guess{i}") * len(names)) for i, names in enumerate(options_by_question)]
    leak_match = re.search(r"leak(x*)", request.text)
    if name == "honest1" and leak_match is not None:
        picks[0] = 1 + options_by_question[0].index(COUNTRIES[len(leak_match[1])])
    return completion(json.dumps(dict(zip(("country", "practice", "analyst"), picks, strict=True))))
