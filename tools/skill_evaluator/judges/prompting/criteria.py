"""Select the criteria of a rubric, format them for the judge, and find the families of models."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.library.config import Model
from skill_evaluator.library.rubrics import Criterion, MethodName, Mitigation, Rubric
from skill_evaluator.text import nearest

_COMMAND_OF_METHOD: Mapping[MethodName, str] = {
    "pairwise_comparison": "use judge pairwise, which compares two outputs",
    "direct_scoring": "use judge score, which scores one output",
    "reference_based": "use judge score, which scores one output with its source",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRubric:
    """A rubric, its file, and the criteria that are judged."""

    file: str
    rubric: Rubric
    criteria: Sequence[Criterion]

    @property
    def content(self) -> dict[str, Any]:
        """The rubric as written to evaluation_rubric.json, with the ids of the criteria that are judged."""
        judged = [criterion.id for criterion in self.criteria]
        content = self.rubric.model_dump(mode="json")
        return {"file": self.file, "digest": self.rubric.digest, "judged": judged, **content}

    def field_of(self, component: str) -> str:
        """Return the field that the criteria apply to, or "" for the whole output.

        Raise JudgeError if they apply to different fields, or to another component than `component`.
        """
        targets = {one.id: one.applies_to for one in self.criteria if one.applies_to is not None}
        for name, target in targets.items():
            if target.component != component:
                raise JudgeError(
                    f"criterion '{name}' in {self.file} applies to component '{target.component}', not '{component}'"
                )
        fields = sorted({target.field for target in targets.values()})
        if len(fields) > 1:
            problem = f"the criteria of {self.file} apply to different fields ({', '.join(fields)})"
            raise JudgeError(f"{problem}; judge one field at a time with --criterion ID")
        return fields[0] if fields else ""


def choose_criteria(file: str, rubric: Rubric, names: Sequence[str], methods: Sequence[MethodName]) -> NamedRubric:
    """Return the rubric with the criteria to judge: those with the ids in `names`, or all if `names` is empty.

    Raise JudgeError if an id is unknown, or if the method of a selected criterion is not one of `methods`.
    """
    by_id = {criterion.id: criterion for criterion in rubric.criteria}
    for name in names:
        if name not in by_id:
            raise JudgeError(f"no criterion '{name}' in {file} {nearest(name, by_id)}")
    chosen = [by_id[name] for name in dict.fromkeys(names)] or list(rubric.criteria)
    for criterion in chosen:
        if criterion.primary_method not in methods:
            others = [other.id for other in rubric.criteria if other.primary_method in methods]
            suggestion = f"; for the other criteria add --criterion {' --criterion '.join(others)}" if others else ""
            raise JudgeError(
                f"the method of criterion '{criterion.id}' in {file} is {criterion.primary_method}: "
                f"{_COMMAND_OF_METHOD[criterion.primary_method]}{suggestion}"
            )
    return NamedRubric(file=file, rubric=rubric, criteria=chosen)


def mitigations_of(criterion: Criterion) -> frozenset[Mitigation]:
    """Return the bias mitigations that a criterion declares."""
    return frozenset(criterion.method.bias_mitigations if criterion.method else ())


def criteria_text(rubric: Rubric, criteria: Sequence[Criterion], sentences: Mapping[str, str], *, scored: bool) -> str:
    """Format criteria for a judge as Markdown, with scores if `scored`. `sentences`: one for each bias mitigation."""
    parts = ["\n".join(_criterion_lines(criterion, sentences, scored=scored)) for criterion in criteria]
    if rubric.scoring_guidelines:
        parts.append("\n".join(["## For all criteria", *(f"- {line}" for line in rubric.scoring_guidelines)]))
    return "\n\n".join(parts)


def _criterion_lines(criterion: Criterion, sentences: Mapping[str, str], *, scored: bool) -> Iterator[str]:
    yield f"## {criterion.id}: {criterion.name}"
    yield criterion.description
    yield f"Scale: whole numbers from 1 to {criterion.highest}." if scored else "From worse to better:"
    for score, level in sorted(criterion.rubric.items()):
        yield f"- {f'{score}, ' if scored else ''}{level.label}: {level.description}"
        yield from (f"  - {characteristic}" for characteristic in level.characteristics)
        yield from (f"  - Example: {example}" for example in level.examples)
    yield from (f"- If: {case.situation}. Then: {case.guidance}" for case in criterion.edge_cases)
    yield from (f"- {line}" for line in criterion.scoring_guidelines)
    declared = mitigations_of(criterion)
    yield from (f"- {sentence}" for name, sentence in sentences.items() if name in declared)


_FAMILIES = {  # family → pattern that a word of the model's name begins with
    "claude": "claude",
    "gpt": "gpt|chatgpt|o1|o3|o4",
    "palmyra": "palmyra",
    "gemini": "gemini|gemma|palm",
    "llama": "llama|vicuna",
    "mistral": "[a-z]*stral|[a-z]*xtral",  # codestral, mixtral, …
    "qwen": "qwen|qwq",
    "deepseek": "deepseek",
    "smollm": "smollm",
}
_VENDORS = {"anthropic": "claude", "openai": "gpt", "google": "gemini"}


def family_of(name: str, families: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the family of a model: from `families`, else a known family in its name, else the first word of its name.

    >>> family_of("openai/gpt-5-mini"), family_of("smollm2-135m-instruct-greedy"), family_of("our-own")
    ('gpt', 'smollm', 'our')
    """
    name_parts = re.findall(r"[a-z]+\d*", name.lower())
    return families.get(name) or _known_family(name) or (name_parts[0] if name_parts else name)


def _known_family(name: str) -> str | None:
    matches = (family for family, words in _FAMILIES.items() if re.search(f"(?<![a-z])({words})", name.lower()))
    return next(matches, None)


def families_of(models: Sequence[Model]) -> dict[str, str]:
    """Return the family of each model by id: declared, else known by name or vendor, else the first word of its name.

    >>> families_of([Model(id="our-judge", provider="anthropic")])
    {'our-judge': 'claude'}
    """
    families = {}
    for model in models:
        vendor = _VENDORS.get(model.provider) if model.base_url is None or model.place else None
        declared = model.family and (_known_family(model.family) or model.family)
        families[model.id] = declared or _known_family(model.api_name) or vendor or family_of(model.api_name)
    return families


def family_warnings(
    judges: Sequence[Model], models: Sequence[Model], writers: Iterable[str | None], demand: str, *, refuse: bool
) -> list[str]:
    """Return a warning for each judge of the same family as a model that wrote outputs (`writers`).

    If `refuse` is set, raise JudgeError instead. Its message is `demand`, a colon and the first warning.
    """
    families = families_of([*models, *judges])
    by_family = {family_of(name, families): name for name in dict.fromkeys(writers) if name is not None}
    warnings = [
        f"{judge.id} is of the family of {by_family[family]}, which wrote outputs"
        for judge in judges
        if (family := families[judge.id]) in by_family
    ]
    if warnings and refuse:
        raise JudgeError(f"{demand}: {warnings[0]}; name another judge")
    return warnings
