"""Which models are of one family: a judge tends to favour what its own family writes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from skill_evaluator.errors import JudgeError
from skill_evaluator.judges.asking.criteria import NamedRubric, mitigations_of
from skill_evaluator.library.config import Model

SameFamily = Literal["refuse", "half", "allow"]

_FAMILIES = {
    "claude": ("claude",),
    "gpt": ("gpt", "chatgpt", "o1", "o3", "o4"),
    "palmyra": ("palmyra",),
    "gemini": ("gemini", "gemma", "palm"),
    "llama": ("llama", "vicuna"),
    "mistral": (
        "mistral",
        "mixtral",
        "ministral",
        "magistral",
        "codestral",
        "devstral",
        "mathstral",
        "pixtral",
        "voxtral",
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
    """Return the family of a model of models.yaml: what is said there, or its name says, or whose API it has.

    >>> family_of_model(Model(id="our-judge", provider="anthropic"))
    'claude'
    """
    family = family_of(model.family or model.api_name)
    if model.family is not None:
        return family if family in _FAMILIES else model.family
    vendor = _VENDORS.get(model.provider) if model.base_url is None else None
    return vendor if vendor is not None and family not in _FAMILIES else family


def families_of(models: Sequence[Model]) -> dict[str, str]:
    """Return by id the families of the models of models.yaml."""
    return {model.id: family_of_model(model) for model in models}


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """The models of models.yaml: a writer may be named by its id there, or by its vendor's name."""

    models: Sequence[Model]

    def of_family(self, judge: Model, writer: str) -> bool:
        """Return whether the writer of an output is of a judge's family."""
        return family_of(writer, families_of(self.models)) == family_of_model(judge)


def check_families(
    rubric: NamedRubric,
    judges: Sequence[Model],
    written: Sequence[str | None],
    models: Writers,
    same_family: SameFamily,
) -> list[str]:
    """Raise JudgeError for a judge of the family that wrote an output, where a criterion and the settings refuse it.

    Return sentences on judges that are not refused but count half or in full, and on what could not be checked, since
    it is not said who wrote an output.
    """
    strict = strict_criteria(rubric)
    if not strict:
        return []
    wanted = f"'{strict[0]}' wants a judge of another family (different_model_family)"
    notes = refuse_family(wanted, judges, written, models, same_family)
    unknown = sum(writer is None for writer in written)
    if unknown:
        notes.append(f"who wrote {unknown} of {len(written)} outputs is not known; a judge may be of their family")
    return notes


def refuse_family(
    wanted: str, judges: Sequence[Model], written: Sequence[str | None], models: Writers, same_family: SameFamily
) -> list[str]:
    """Raise JudgeError for a judge of a writer's family where that is refused; `wanted` says what demands it.

    Return sentences on judges that are not refused but count half or in full.
    """
    notes = []
    for judge in judges:
        writer = next((name for name in dict.fromkeys(written) if name and models.of_family(judge, name)), None)
        if writer is None:
            continue
        if same_family == "refuse" or (same_family == "half" and len(judges) == 1):
            alone = "" if same_family == "refuse" else "; that it counts half is for a panel"
            raise JudgeError(
                f"{wanted}, and {judge.id} is of that of {writer}, which wrote outputs here; name another judge{alone}"
            )
        much = "half" if same_family == "half" else "in full"
        notes.append(f"{judge.id} is of the family of {writer}, and counts {much} where that wrote an output")
    return notes


def strict_criteria(rubric: NamedRubric) -> list[str]:
    """Return the criteria that want a judge of another family than the writer's."""
    return [one.id for one in rubric.criteria if "different_model_family" in mitigations_of(one)]
