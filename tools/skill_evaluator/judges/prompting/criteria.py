"""The criteria of a rubric that a mode judges, their text for the judge, and the families of models."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from skill_evaluator.errors import JudgeError
from skill_evaluator.library.config import Model
from skill_evaluator.library.rubrics import Criterion, MethodName, Mitigation, Rubric
from skill_evaluator.text import nearest

_COMMANDS: Mapping[MethodName, str] = {
    "pairwise_comparison": "judge pairwise compares two outputs by it",
    "direct_scoring": "judge score scores one output by it",
    "reference_based": "judge score scores one output by it, beside its source",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRubric:
    """A rubric, its file, and the criteria that are judged."""

    file: str
    rubric: Rubric
    criteria: Sequence[Criterion]

    @property
    def paper(self) -> dict[str, Any]:
        """The content of evaluation_rubric.json."""
        judged = [criterion.id for criterion in self.criteria]
        whole = self.rubric.model_dump(mode="json")
        return {"file": self.file, "digest": self.rubric.digest, "judged": judged, **whole}

    def field_of(self, component: str) -> str:
        """Return the field that the criteria judge, empty for the whole output. Raise JudgeError if there are two."""
        targets = {one.id: one.applies_to for one in self.criteria if one.applies_to is not None}
        for name, target in targets.items():
            if target.component != component:
                raise JudgeError(
                    f"'{name}' in {self.file} is for the component '{target.component}', not '{component}'"
                )
        fields = sorted({target.field for target in targets.values()})
        if len(fields) > 1:
            which = f"the criteria of {self.file} are for different fields ({', '.join(fields)})"
            raise JudgeError(f"{which}; judge them one after the other: --criterion ID")
        return fields[0] if fields else ""


def choose_criteria(file: str, rubric: Rubric, wanted: Sequence[str], methods: Sequence[MethodName]) -> NamedRubric:
    """Return the named criteria, or all; raise JudgeError if one is unknown or of a different method."""
    by_id = {criterion.id: criterion for criterion in rubric.criteria}
    for name in wanted:
        if name not in by_id:
            raise JudgeError(f"no criterion '{name}' in {file} {nearest(name, by_id)}")
    chosen = [by_id[name] for name in dict.fromkeys(wanted)] or list(rubric.criteria)
    for criterion in chosen:
        if criterion.primary_method not in methods:
            others = [other.id for other in rubric.criteria if other.primary_method in methods]
            rest = f"; for the others here add --criterion {' --criterion '.join(others)}" if others else ""
            raise JudgeError(
                f"the method of '{criterion.id}' in {file} is {criterion.primary_method}: "
                f"{_COMMANDS[criterion.primary_method]}{rest}"
            )
    return NamedRubric(file=file, rubric=rubric, criteria=chosen)


def mitigations_of(criterion: Criterion) -> frozenset[Mitigation]:
    """Return the bias mitigations that a criterion declares."""
    return frozenset(criterion.method.bias_mitigations if criterion.method else ())


def criteria_text(rubric: Rubric, criteria: Sequence[Criterion], sentences: Mapping[str, str], *, scored: bool) -> str:
    """Return the criteria as Markdown for the judge; `sentences` are the prompt's, by bias mitigation."""
    parts = ["\n".join(_lines(criterion, sentences, scored=scored)) for criterion in criteria]
    if rubric.scoring_guidelines:
        parts.append("\n".join(["## For all criteria", *(f"- {line}" for line in rubric.scoring_guidelines)]))
    return "\n\n".join(parts)


def _lines(criterion: Criterion, sentences: Mapping[str, str], *, scored: bool) -> Iterator[str]:
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


_FAMILIES = {  # a word of the model's name begins so
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
    """Return the family of a model: that of `families`, by id, or by its name, or the first word of its name.

    >>> family_of("openai/gpt-5-mini"), family_of("smollm2-135m-instruct-greedy"), family_of("our-own")
    ('gpt', 'smollm', 'our')
    """
    words = re.findall(r"[a-z]+\d*", name.lower())
    return families.get(name) or _known_family(name) or (words[0] if words else name)


def _known_family(name: str) -> str | None:
    known = (family for family, words in _FAMILIES.items() if re.search(f"(?<![a-z])({words})", name.lower()))
    return next(known, None)


def families_of(models: Sequence[Model]) -> dict[str, str]:
    """Return the family of each model by id: as declared in models.yaml, or by its name, or by the vendor's API.

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
    """Warn of each judge of a writer's family. If `refuse`, raise JudgeError with the `demand` instead."""
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
