"""`scenarios draft`: have a model draft a family of scenarios for a domain, marked as unreviewed."""

import re
from pathlib import Path
from typing import Any

from pydantic import Field

from skill_evaluator.audit.request import ScenariosDraftRequest
from skill_evaluator.errors import ConfigError
from skill_evaluator.files import FrozenModel
from skill_evaluator.judges.prompting import forms
from skill_evaluator.judges.prompting.judging import JudgeRunSize
from skill_evaluator.judges.workflows.drafting import HEADER, draft, draft_task
from skill_evaluator.library.reading import yaml_text
from skill_evaluator.library.scenarios import SLOT, new_family, write_family
from skill_evaluator.runner.session import Watch

_SCENARIO = forms.object_of({"name": forms.TEXT, "intent": forms.TEXT, "template": (forms.TEXT[0], f"…\n\n{SLOT}")})
_SCENARIOS = forms.object_of({"scenarios": forms.list_of(_SCENARIO)})


class _Scenario(FrozenModel):
    name: str = Field(pattern="[A-Za-z0-9]", max_length=60)
    intent: str = Field(min_length=1, max_length=500)
    template: str = Field(max_length=4000)


class _Family(FrozenModel):
    scenarios: tuple[_Scenario, ...] = Field(min_length=8)


def draft_scenarios(request: ScenariosDraftRequest, watch: Watch | None = None) -> JudgeRunSize | Path:
    """Have a model draft eight to ten scenarios and return the folder of the family; in a dry run return the size.

    Raise ConfigError if the family exists, and JudgeError if the output contains no valid family.
    """
    if not request.task.strip():
        raise ConfigError("--task is empty: name the domain in a few words")
    family = request.family or _file_name(request.task)
    folder = new_family(request.config, family)
    task = draft_task("scenarios", family, _SCENARIOS, {"domain": request.task}, request.seed)
    texts = draft(request.calling(request.model), task, lambda value: _family_of(value, family), watch)
    if isinstance(texts, JudgeRunSize):
        return texts
    write_family(folder, texts)
    return folder


def _family_of(value: Any, family: str) -> dict[str, str]:
    scenarios = _Family.model_validate(value).scenarios[:10]
    templates = [scenario.template.strip() for scenario in scenarios]
    if len(set(templates)) < len(templates) or any(template.count(SLOT) != 1 for template in templates):
        raise ValueError(f"expected distinct templates, each with {SLOT} exactly once")
    texts = {}
    for number, (scenario, template) in enumerate(zip(scenarios, templates, strict=True), 1):
        name = f"{family}-{number:02}-{_file_name(scenario.name)}"
        front = {"name": name, "intent": " ".join(scenario.intent.split()), "unreviewed": True}
        texts[name] = f"---\n{HEADER}{yaml_text(front)}---\n{template}\n"
    return texts


def _file_name(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
