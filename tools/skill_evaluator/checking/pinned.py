"""The pinned outputs of a component, held against its cases and its prompt → what is stale, and what is wrong."""

from collections.abc import Sequence

from skill_evaluator.errors import JudgeError
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import Component
from skill_evaluator.records.pinned import PinnedOutputs, read_pinned


def pinned_remarks(component: Component, cases: Sequence[Case]) -> tuple[list[str], list[str]]:
    """Return hints on outputs that are stale, and problems with files that cannot be used.

    An output is stale where its case is gone or another, or where the prompt of its version is no longer that prompt.
    """
    try:
        pinned = read_pinned(component.folder, component.name)
    except JudgeError as problem:
        return [], [str(problem)]
    digests = {case.id: case.digest for case in cases}
    return [hint for outputs in pinned.values() for hint in _stale(outputs, component, digests)], []


def _stale(outputs: PinnedOutputs, component: Component, digests: dict[str, str]) -> list[str]:
    stale = [
        f"case '{case_id}' is {'another' if case_id in digests else 'gone'}"
        for case_id, output in outputs.outputs.items()
        if digests.get(case_id) != output.case
    ]
    if outputs.skill_version == component.version and outputs.digests.get("prompt") != component.digests["prompt"]:
        stale.append(f"the prompt of {component.version} is another")
    name = f"the pinned outputs of {outputs.model_id} ({outputs.run_id})"
    return [f"{name} are stale: {what}; pin a newer run with `judge pin RUN`" for what in stale]
