"""Calls of one provider in a loop, without journal or scores: wall and processor seconds of the loop alone, as JSON.

`python benchmarks/call_loop.py BASE_URL CALLS CONCURRENCY CLIENT`, where CLIENT is `evaluator`, or `openai` for a bare
loop of that SDK with its default client and typed objects.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

from skill_evaluator.library.config import Model, Settings
from skill_evaluator.library.prompts import dialogue
from skill_evaluator.providers import PROVIDERS
from skill_evaluator.providers.base import Request, call_once

SYSTEM, DOCUMENT = "You read a notice and answer in JSON. " * 10, "A notice about a budget line. " * 40


async def timed(call: Callable[[int], Awaitable[object]], calls: int, concurrency: int) -> dict[str, float]:
    """Make the calls after one that warms the connection, and return the seconds."""
    await call(0)
    seeds = iter(range(calls))

    async def work() -> None:
        for seed in seeds:
            await call(seed)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


async def evaluator(url: str, calls: int, concurrency: int) -> dict[str, float]:
    """Measure the `openai` provider."""
    settings = Settings()
    provider = PROVIDERS["openai"].open(Model(id="m", provider="openai", base_url=url), None, settings)

    async def call(seed: int) -> None:
        messages = dialogue(SYSTEM, DOCUMENT)
        request = Request(case_id="one", replicate=0, messages=messages, max_output_tokens=1024, seed=seed)
        await call_once(provider, request, settings)

    try:
        return await timed(call, calls, concurrency)
    finally:
        await provider.close()


async def openai(url: str, calls: int, concurrency: int) -> dict[str, float]:
    """Measure the bare SDK."""
    from openai import AsyncOpenAI

    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": DOCUMENT}]
    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

        async def call(seed: int) -> None:
            await client.chat.completions.create(
                model="m",
                messages=messages,  # type: ignore[arg-type]
                max_tokens=1024,
                temperature=0,
                seed=seed,
            )

        return await timed(call, calls, concurrency)


if __name__ == "__main__":
    measured = evaluator if sys.argv[4] == "evaluator" else openai
    print(json.dumps(asyncio.run(measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
