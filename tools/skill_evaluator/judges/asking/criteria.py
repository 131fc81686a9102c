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

_ELSEWHERE: Mapping[MethodName, str] = {
    "pairwise_comparison": "judge pairwise compares two outputs by it",
    "direct_scoring": "judge score scores one output by it",
    "reference_based": "judge score scores one output by it, beside its source",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRubric:
    """A rubric, the file it was read from, and the criteria that are judged."""

    file: str
    rubric: Rubric
    criteria: Sequence[Criterion]

    @property
    def paper(self) -> dict[str, Any]:
        """The rubric as evaluation_rubric.json has it."""
        judged = [criterion.id for criterion in self.criteria]
        return {
            "file": self.file,
            "digest": self.rubric.digest,
            "judged": judged,
            **self.rubric.model_dump(mode="json"),
        }

    def field_of(self, component: str) -> str:
        """Return the field of a component's answer that the criteria judge, empty for the whole; raise JudgeError.

        They must be for this component, and for one field.
        """
        applied = [(criterion.id, criterion.applies_to) for criterion in self.criteria if criterion.applies_to]
        for name, place in applied:
            if place.component != component:
                raise JudgeError(f"'{name}' in {self.file} is for the component '{place.component}', not '{component}'")
        fields = {place.field for _, place in applied}
        if len(fields) > 1:
            raise JudgeError(
                f"the criteria of {self.file} are for different fields ({', '.join(sorted(fields))}); judge them one "
                "after the other: --criterion ID"
            )
        return next(iter(fields), "")


def choose_criteria(file: str, rubric: Rubric, wanted: Sequence[str], methods: Sequence[MethodName]) -> NamedRubric:
    """Return the criteria that are named, or all; raise JudgeError for an unknown one, or one of a different method."""
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
                f"{_ELSEWHERE[criterion.primary_method]}{rest}"
            )
    return NamedRubric(file=file, rubric=rubric, criteria=chosen)


def mitigations_of(criterion: Criterion) -> frozenset[Mitigation]:
    """Return the bias mitigations that a criterion declares."""
    return frozenset(criterion.method.bias_mitigations if criterion.method else ())


def criteria_text(rubric: Rubric, criteria: Sequence[Criterion], sentences: Mapping[str, str], *, scored: bool) -> str:
    """Return what a judge is told of criteria, as Markdown; `sentences` are those of the prompt's mitigations."""
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
    mine = mitigations_of(criterion)
    yield from (f"- {sentence}" for name, sentence in sentences.items() if name in mine)


_FAMILIES = {
    "claude": ("claude",),
    "gpt": ("gpt", "chatgpt", "o1", "o3", "o4"),
    "palmyra": ("palmyra",),
    "gemini": ("gemini", "gemma", "palm"),
    "llama": ("llama", "vicuna"),
    "mistral": (
        *("mistral", "mixtral", "ministral", "magistral", "codestral"),
        *("devstral", "mathstral", "pixtral", "voxtral"),
    ),
    "qwen": ("qwen", "qwq"),
    "deepseek": ("deepseek",),
    "smollm": ("smollm",),
}
_VENDORS = {"anthropic": "claude", "openai": "gpt", "google": "gemini"}
_WORD = re.compile(r"[a-z]+\d*")


def family_of(name: str, families: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the family of a model: that of `families`, by id, else by its name, of an unknown one the first word.

    >>> family_of("openai/gpt-5-mini"), family_of("smollm2-135m-instruct-greedy"), family_of("our-own")
    ('gpt', 'smollm', 'our')
    """
    if name in families:
        return families[name]
    words = _WORD.findall(name.lower())
    for family, beginnings in _FAMILIES.items():
        if any(word.startswith(beginnings) for word in words):
            return family
    return words[0] if words else name


def family_of_model(model: Model) -> str:
    """Return the family of a model of models.yaml: as declared there, or by its name, or by its API.

    >>> family_of_model(Model(id="our-judge", provider="anthropic"))
    'claude'
    """
    family = family_of(model.family or model.api_name)
    if model.family is not None:
        return family if family in _FAMILIES else model.family
    vendor = _VENDORS.get(model.provider) if model.base_url is None or model.place else None
    return vendor if vendor is not None and family not in _FAMILIES else family


def families_of(models: Sequence[Model]) -> dict[str, str]:
    """Return by id the families of the models of models.yaml."""
    return {model.id: family_of_model(model) for model in models}


def strict_criteria(rubric: NamedRubric) -> list[str]:
    """Return the criteria that require a judge of a family other than the writer's."""
    return [one.id for one in rubric.criteria if "different_model_family" in mitigations_of(one)]


def family_warnings(
    judges: Sequence[Model], models: Sequence[Model], writers: Iterable[str | None], demand: str, *, refuse: bool
) -> list[str]:
    """Return a warning for each judge of the family that wrote an output; raise JudgeError instead to `refuse` it.

    `models` are those of models.yaml: writers are named by their ids or by the vendors' names. `demand` says in the
    error which criterion or setting requires a different family.
    """
    families = families_of(models)
    names = [name for name in dict.fromkeys(writers) if name is not None]
    warnings = []
    for judge in judges:
        own = next((name for name in names if family_of(name, families) == family_of_model(judge)), None)
        if own is not None and refuse:
            raise JudgeError(f"{demand}: {judge.id} is of the family of {own}, which wrote outputs; name another judge")
        if own is not None:
            warnings.append(f"{judge.id} is of the family of {own}, which wrote outputs")
    return warnings
