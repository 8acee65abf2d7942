"""DeepEval on the questions of an audit: answers, and a model that grades each. `bench_peers.py` runs it.

Usage: python benchmarks/deepeval_loop.py URL QUESTIONS.json CONNECTIONS GRADER

DeepEval asks no model for its answers, so that they come from OpenAI's client, with as many requests in flight. Each
answer is graded by `GEval` with given steps, which is one request. All grades share a client: DeepEval makes one for
each request, which takes 35 ms for its certificates. Fails if a grade is missing.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from pathlib import Path
from typing import Any

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import GEval
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase, SingleTurnParams
from openai import AsyncOpenAI  # noqa: TID251 - not of auditor: the program that it is compared with


class SharedClientModel(LocalModel):  # type: ignore[misc]
    """A model of a local server with one client for all requests."""

    @functools.cache  # noqa: B019 - there is one model
    def load_model(self, async_mode: bool = False) -> Any:
        """The client."""
        return super().load_model(async_mode)


async def ask_all(url: str, questions: list[str], connections: int) -> list[LLMTestCase]:
    """Ask the model under test all questions."""
    cases: dict[int, LLMTestCase] = {}
    queue = iter(enumerate(questions))
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def work() -> None:
            for i, question in queue:
                reply = await client.chat.completions.create(
                    model="m0",
                    messages=[{"role": "user", "content": question}],
                    temperature=0.7,
                    max_tokens=400,
                )
                cases[i] = LLMTestCase(input=question, actual_output=reply.choices[0].message.content)

        await asyncio.gather(*(work() for _ in range(connections)))
    return [cases[i] for i in range(len(questions))]


def main() -> None:
    """Ask, grade, and check that every answer has a grade."""
    url, questions_file, connections, grader = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    questions = [f"{i}. {question}" for i, question in enumerate(json.loads(questions_file.read_text()))]
    metric = GEval(
        name="Support",
        evaluation_steps=["Check that the reasoning supports the score."],
        evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
        model=SharedClientModel(model=grader, base_url=url, api_key="none", temperature=0.7),
    )
    evaluation = evaluate(
        test_cases=asyncio.run(ask_all(url, questions, connections)),
        metrics=[metric],
        async_config=AsyncConfig(max_concurrent=connections),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
    )
    grades = [grade for case in evaluation.test_results for grade in case.metrics_data or [] if grade.error is None]
    if len(grades) != len(questions):
        raise SystemExit(f"{len(grades)} of {len(questions)} answers have a grade.")


if __name__ == "__main__":
    main()
