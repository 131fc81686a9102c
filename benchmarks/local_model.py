"""Tokens per second of the local provider against the engine called bare: `python benchmarks/local_model.py [RUNS]`.

Same weights, settings and requests, in turn, in one process: one slot, no prompt cache, two threads.
"""

import asyncio
import sys
import time
from statistics import median

import xllamacpp
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import Request
from skill_evaluator.providers.local import open_provider, smollm2_weights

SYSTEM = "Repeat the list of the user as JSON."
USER = "\n".join(f"item {number}: {number * 7}" for number in range(60))
SCHEMA = {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}}
TOKENS = 128


def _bare_engine() -> xllamacpp.Server:
    params = xllamacpp.CommonParams()
    params.model.path = str(smollm2_weights())
    params.n_ctx = 8192
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.ui = False
    params.warmup = False
    params.verbosity = 0
    return xllamacpp.Server(params)


def _ask_bare(engine: xllamacpp.Server, seed: int) -> int:
    answer = engine.handle_chat_completions(
        {
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}],
            "max_tokens": TOKENS,
            "temperature": 0.0,
            "seed": seed,
            "cache_prompt": False,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "output", "schema": SCHEMA, "strict": True},
            },
        }
    )
    return int(answer["usage"]["total_tokens"])


def main(runs: int) -> None:
    """Print both rates and their ratio."""
    bare = _bare_engine()
    provider = open_provider(Model(id="m", provider="local"), None, 60)
    rates: list[tuple[float, float]] = []
    for run in range(runs + 1):
        begun = time.perf_counter()
        request = Request(
            case_id="c", replicate=run, system=SYSTEM, user=USER, max_output_tokens=TOKENS, seed=run, schema=SCHEMA
        )
        usage = asyncio.run(provider.complete(request)).usage
        ours = ((usage.input_tokens or 0) + (usage.output_tokens or 0)) / (time.perf_counter() - begun)
        begun = time.perf_counter()
        rates.append((ours, _ask_bare(bare, run) / (time.perf_counter() - begun)))
    counted = rates[1:]  # the first of each is a warm-up
    print(
        f"local provider {median(ours for ours, _ in counted):.0f} tokens/s, bare {median(b for _, b in counted):.0f}"
    )
    print(f"ratio {median(ours / peer for ours, peer in counted):.3f}   at least 0.95")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
