"""The peers of the engine benchmark: the same calls by a bare `AsyncOpenAI`, under a semaphore or by pydantic-evals.

`python benchmarks/bare_client.py BASE_URL LIBRARY CALLS CONCURRENCY [pydantic_evals | aiohttp]`; it sends what the
evaluator sends for LIBRARY, and throws the answers away. With `aiohttp` it is a bare loop of that library.
"""

import asyncio
import json
import sys
from pathlib import Path

from openai import AsyncOpenAI


async def main(base_url: str, library: Path, calls: int, concurrency: int, evals: bool) -> None:
    """Ask `calls` times, round robin through the cases."""
    client = AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0)
    prompt = (library / "components/bench/prompt.md").read_text().split("---\n", 2)[2].strip()
    schema = json.loads((library / "components/bench/schema.json").read_text())
    documents = [path.read_text() for path in sorted((library / "fixtures/bench/cases").glob("*/document.md"))]
    form = {"type": "json_schema", "json_schema": {"name": "bench", "schema": schema, "strict": True}}

    async def ask(index: int) -> str | None:
        completion = await client.chat.completions.create(
            model="m",
            messages=[
                {"role": "system", "content": prompt},
                {"role": "user", "content": documents[index % len(documents)]},
            ],
            max_tokens=1024,
            temperature=0,
            seed=index,
            response_format=form,
        )
        return completion.choices[0].message.content

    if evals:
        from pydantic_evals import Case, Dataset

        cases = [Case(name=str(index), inputs=index) for index in range(calls)]
        await Dataset(name="bench", cases=cases).evaluate(ask, max_concurrency=concurrency, progress=False)
        return
    gate = asyncio.Semaphore(concurrency)

    async def ask_in_turn(index: int) -> None:
        async with gate:
            await ask(index)

    await asyncio.gather(*(ask_in_turn(index) for index in range(calls)))


async def bare(base_url: str, library: Path, calls: int, concurrency: int) -> None:
    """Ask by aiohttp alone: workers that post a body, and parse the answer."""
    import aiohttp

    prompt = (library / "components/bench/prompt.md").read_text().split("---\n", 2)[2].strip()
    schema = json.loads((library / "components/bench/schema.json").read_text())
    documents = [path.read_text() for path in sorted((library / "fixtures/bench/cases").glob("*/document.md"))]
    form = {"type": "json_schema", "json_schema": {"name": "bench", "schema": schema, "strict": True}}
    fixed = {"model": "m", "max_tokens": 1024, "temperature": 0, "response_format": form}
    indexes = iter(range(calls))

    async def work(session: aiohttp.ClientSession) -> None:
        for index in indexes:
            messages = [
                {"role": "system", "content": prompt},
                {"role": "user", "content": documents[index % len(documents)]},
            ]
            body = {**fixed, "messages": messages, "seed": index}
            async with session.post(f"{base_url}/chat/completions", json=body) as response:
                (await response.json())["choices"][0]["message"]["content"]

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(work(session) for _ in range(concurrency)))


if __name__ == "__main__":
    if "aiohttp" in sys.argv:
        asyncio.run(bare(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
        sys.exit()
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), "pydantic_evals" in sys.argv))
