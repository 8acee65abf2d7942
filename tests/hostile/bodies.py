"""Bodies of the server's replies, in bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.hostile import wires
from tests.hostile.axes import ECHO, KEYS
from tests.hostile.keys import echoed
from tests.hostile.wires import ABSENT, AnswerContent

SCORE = 0.25
JUDGEMENT = {"norms": "Viele sagen: Ja, für alle.", "reasoning": "So the view follows.", "score": SCORE}
"""A complete answer, with letters that encodings encode differently."""
PROSE = "Divorce is fine."
MARKER = "hostile words"
"""Words in the message of every error, which tests look for."""
HTML = "<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
OVER_64_KIB = 70_000
TOO_LARGE = 9_000_000


class Body(NamedTuple):
    """Content and content type of a reply."""

    content: bytes
    content_type: str = "application/json"


def body_of(case: Mapping[str, str], request: Mapping[str, Any], pem_chars: int = OVER_64_KIB) -> Body:
    """The body of the reply for a case.

    Args:
        request: the JSON body of the request, for the prompts that a completions endpoint repeats.
        pem_chars: number of characters of private-key headers in bodies of the kind `pem`.
    """
    kind = case["body"]
    if kind == "error" or (kind.startswith("error-") and case["status"] != "200"):
        return _error(case, kind.removeprefix("error").removeprefix("-"), pem_chars)
    if (unreadable_body := _unreadable(case["protocol"], kind)) is not None:
        return unreadable_body
    usage = ABSENT if case["usage"] == "-" else wires.usage_of(case["protocol"], case["usage"])
    if kind in ("no-choices", "null-choice"):
        answer_body = wires.without_choices(case["protocol"], usage, null_choice=kind == "null-choice")
    elif case["protocol"] == ECHO:
        answer_body = _echo(kind, request, wires.usage_of(ECHO, "right") if case["usage"] == "-" else usage)
    else:
        answer_body = _answer(case, pem_chars)
    return encoded(answer_body, case["encoding"])


def _answer(case: Mapping[str, str], pem_chars: int) -> dict[str, Any]:
    protocol, kind = case["protocol"], case["body"]
    answer_content = _content_of_kind(protocol, kind, pem_chars)
    finish = wires.finish_of(
        protocol, _or(case["finish"], "complete"), calls_function=answer_content.function is not None
    )
    answer_body = wires.answer(protocol, answer_content, finish, wires.usage_of(protocol, _or(case["usage"], "right")))
    if kind in KEYS and "system_fingerprint" not in answer_body:
        answer_body["system_fingerprint"] = f"fp {echoed(kind)}"
    if kind == "null-message" and "choices" in answer_body:
        answer_body["choices"][0]["message"] = None
    return answer_body


def _or(choice: str, default: str) -> str:
    return default if choice == "-" else choice


def _content_of_kind(protocol: str, kind: str, pem_chars: int) -> AnswerContent:
    """Text, function call or refusal of the model in an answer of this kind."""
    text = json.dumps(JUDGEMENT, ensure_ascii=False)
    if kind == "tool":
        name = "MoralJudgement"
        arguments = (
            {"arguments": text} if wires.family_of(protocol) not in wires.FUNCTION_CALLED else {"input": JUDGEMENT}
        )
        return AnswerContent(function={"name": name, **arguments})
    if kind in KEYS:
        words = json.dumps({**JUDGEMENT, "reasoning": f"Told: {echoed(kind)}"}, ensure_ascii=False)
        return AnswerContent((words,), model=f"{wires.MODEL} {echoed(kind)}")
    return {
        "normal": AnswerContent((text,)), "prose": AnswerContent((PROSE,)),
        "parts": AnswerContent((text[:20], text[20:])), "refusal": AnswerContent(refusal="I cannot do that."),
        "blank": AnswerContent(("",)), "null-message": AnswerContent(),
        "surrogate": AnswerContent((text + " " * OVER_64_KIB,), model=f"{wires.MODEL}-\ud800"),
        "nul": AnswerContent((f"\0{text}",)), "escapes": AnswerContent((ESCAPES + text,)),
        "pem": AnswerContent((PEM * (pem_chars // len(PEM)) + text,)),
    }[kind]  # fmt: skip


def _echo(kind: str, request: Mapping[str, Any], usage: Any) -> dict[str, Any]:
    """A completions answer with or without log-probabilities of the prompts."""
    mark = echoed(kind) if kind in KEYS else " " * OVER_64_KIB if kind == "surrogate" else ""
    model = f"{wires.MODEL} {mark}" if kind in KEYS else f"{wires.MODEL}-\ud800" if kind == "surrogate" else wires.MODEL
    return wires.echo_answer(list(request["prompt"]), model=model, measured=kind != "prose", usage=usage, mark=mark)


def _error(case: Mapping[str, str], kind: str, pem_chars: int) -> Body:
    if (unreadable_body := _unreadable(case["protocol"], kind)) is not None:
        return unreadable_body
    if kind == "prose":
        return Body(f"The server says {MARKER}.".encode(), "text/plain")
    words = {"nul": "\0", "escapes": ESCAPES, "pem": PEM * (pem_chars // len(PEM))}
    extra = echoed(kind) if kind in KEYS else words.get(kind, "für alle")
    return encoded(wires.error(case["protocol"], case["status"], f"{MARKER} {extra}"), case["encoding"])


def _unreadable(protocol: str, kind: str) -> Body | None:
    """A body that cannot be read as an answer of the protocol; None if the kind of body can be."""
    if kind == "foreign":
        return encoded(_foreign(protocol), "utf-8")
    if kind == "error-in-200":
        return encoded(wires.error(protocol, "503", MARKER), "utf-8")
    if kind == "cut-json":
        return Body(
            encoded(wires.answer("openai", AnswerContent((PROSE,)), {"finish": "stop"}, ABSENT), "utf-8").content[:60]
        )
    chunk = '{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}'
    bodies = {
        "html": Body(HTML.encode(), "text/html"), "empty": Body(b""), "null": Body(b"null"), "list": Body(b"[1, 2]"),
        "9mb": Body(b'{"error": {"message": "' + b"0" * TOO_LARGE + b'"}}'),
        "deep": Body(b"[" * 200_000 + b"]" * 200_000), "digits": Body(b'{"choices": ' + b"9" * 5_000 + b"}"),
        "sse": Body(f"data: {chunk}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"),
        "ndjson": Body(f"{chunk}\n{chunk}\n".encode(), "application/x-ndjson"),
    }  # fmt: skip
    return bodies.get(kind)


def _foreign(protocol: str) -> dict[str, Any]:
    """A valid answer in another provider's protocol, without usage."""
    other = "anthropic" if wires.family_of(protocol) != "anthropic" else "gemini"
    return wires.answer(other, AnswerContent((json.dumps(JUDGEMENT),)), wires.finish_of(other, "complete"), ABSENT)


def encoded(value: Any, encoding: str) -> Body:
    """Serialize a JSON value in an encoding; the default is UTF-8 with lone surrogates as JSON escapes."""
    text = json.dumps(value, ensure_ascii=encoding == "escaped")
    if encoding == "bom":
        return Body(b"\xef\xbb\xbf" + _utf8(text))
    if encoding == "utf-16":
        return Body(text.encode("utf-16"), "application/json; charset=utf-16")
    if encoding.startswith("latin-1"):
        declared = "application/json" if encoding == "latin-1-undeclared" else "application/json; charset=iso-8859-1"
        return Body(text.encode("latin-1", "replace"), declared)
    return Body(_utf8(text))


def _utf8(text: str) -> bytes:
    """Encode as UTF-8, with JSON escapes for lone surrogates."""
    return "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) < 0xE000 else c for c in text).encode()
