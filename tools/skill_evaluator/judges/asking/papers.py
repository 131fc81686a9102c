"""What a judging leaves beside its journal for people: the rubric, and the prompts as they were asked."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.display.safe_text import code_block
from skill_evaluator.files import FrozenModel, json_text, replace_text
from skill_evaluator.judges.asking.prompts import JudgePrompt

RUBRIC = "evaluation_rubric.json"
PROMPT = "evaluation_prompt.md"
RESULTS = "evaluation_results.json"
BIAS = "bias_analysis_report.md"


def write_papers(
    folder: Path,
    rubric: Mapping[str, Any],
    prompts: Sequence[JudgePrompt],
    systems: Sequence[str],
    results: FrozenModel,
    bias: str,
) -> None:
    """Write all four; raise StorageError. `systems`: the instructions that were sent, each once."""
    replace_text(folder / RUBRIC, json_text(rubric))
    replace_text(folder / PROMPT, _prompt_page(prompts, systems))
    replace_text(folder / RESULTS, json_text(results.model_dump(mode="json")))
    replace_text(folder / BIAS, bias)


def _prompt_page(prompts: Sequence[JudgePrompt], systems: Sequence[str]) -> str:
    parts = ["# What the judge was told\n"]
    for prompt in prompts:
        parts.append(f"Prompt `{prompt.identity.name}` {prompt.identity.version}, `{prompt.identity.digest}`.\n")
    parts += [f"## Instructions, the same for every item\n\n{code_block(system)}\n" for system in systems]
    for prompt in prompts:
        parts.append(f"## Where the texts of an item go: {prompt.identity.name}\n\n{code_block(prompt.texts)}\n")
    return "\n".join(parts)
