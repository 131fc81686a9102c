"""What `mutate` reads: its options, the component with its cases, and every mutant with the folder of its answers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from skill_evaluator.display.options import (
    ComponentsOption,
    Concurrency,
    ConfigOption,
    FixturesOption,
    FormatOption,
    MaxCalls,
    MaxCost,
    Skill,
    flag,
    option,
    options,
)
from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.mutation_results import LEAST_REPLICATES
from skill_evaluator.files import read_text
from skill_evaluator.library.cases import Case, load_cases
from skill_evaluator.library.components import Component, load_component
from skill_evaluator.library.config import Model, select_models
from skill_evaluator.library.mutants import Mutant, capped, mutants_of, neutrals
from skill_evaluator.providers import Configuration, read_configuration
from skill_evaluator.runner.prices import input_sizes, not_applicable, refuse_unpriced
from skill_evaluator.runner.runs import input_digests
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.text import canonical_json, counted, digest

UNDAMAGED = "undamaged"
CONTROLS = ("control-1", "control-2", "control-3")
_LEAST_CASES = 2  # one case says nothing of how far cases move by chance


@options
class MutateOptions(ComponentsOption, FixturesOption, ConfigOption, FormatOption):
    """The options of `mutate`."""

    skill: Skill
    model: str | None = option(
        "The model of models.yaml that is asked; needed where it has several.",
        None,
        "-m",
        metavar="ID",
        completes="models",
    )
    replicates: int = option("Answers per case and mutant, at most; a killed one gets fewer.", 4, "-n")
    mutants: int = option("Ask at most N mutants, taking the kinds in turn.", 40)
    concurrency: Concurrency = None
    max_cost: MaxCost = None
    max_calls: MaxCalls = None
    results: Path | None = option("Where answers go; default: in the component.", metavar="DIR")
    dry_run: bool = flag("List the mutants, and say what asking them would take; make no call.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """Everything a mutation run reads, checked, and the mutants of it. `folder` is where its answers are kept."""

    component: Component
    cases: tuple[Case, ...]
    model: Model
    configuration: Configuration
    mutants: tuple[Mutant, ...]
    left_out: Mapping[str, int]
    folder: Path

    @property
    def asked(self) -> dict[str, Component]:
        """What is asked, by the name of its run folder: the undamaged prompt, its controls, then the mutants."""
        component = self.component
        return {
            UNDAMAGED: component,
            **{
                name: replace(component, prompt=prompt)
                for name, prompt in zip(CONTROLS, neutrals(component.prompt), strict=True)
            },
            **{name_of(one): replace(component, prompt=one.prompt, schema=one.schema) for one in self.mutants},
        }


def read_hunt(options: MutateOptions) -> Hunt:
    """Read configuration, component and cases, and damage the prompt; raise for any fault, before any call."""
    refuse_amounts(
        {"--replicates": options.replicates, "--concurrency": options.concurrency, "--mutants": options.mutants},
        options.max_calls,
        options.max_cost,
    )
    if options.replicates < LEAST_REPLICATES:
        raise RunError(f"--replicates must be at least {LEAST_REPLICATES}: one answer says nothing of chance")
    configuration = read_configuration(options.config)
    component = load_component(options.components, options.skill, configuration.settings.limits, options.fixtures)
    models = select_models(configuration.models, () if options.model is None else (options.model,))
    if len(models) != 1:
        raise RunError(f"mutate asks one model; name it with --model ({', '.join(one.id for one in models)})")
    (model,) = models
    if options.max_cost is not None:
        refuse_unpriced(models, configuration.kinds)
    cases = load_cases(component, options.fixtures)
    unfit = not_applicable(cases, input_sizes(component, cases), model, configuration.kinds[model.provider])
    cases = tuple(case for case in cases if case.labelled and case.id not in unfit)
    if len(cases) < _LEAST_CASES:
        raise RunError(f"'{component.name}' has {counted(len(cases), 'case')} with ground truth; mutate needs two")
    every = mutants_of(component.prompt, component.schema, first_line=_first_line(component))
    left_out = {}
    if model.structured_output != "json_schema":
        seen = [one for one in every if one.operator != "descriptions-removed"]
        left_out = {"schema.json is not sent to this model": len(every) - len(seen)} if len(seen) < len(every) else {}
        every = tuple(seen)
    mutants, over = capped(every, options.mutants)
    if not mutants:
        raise RunError(f"nothing in the prompt of '{component.name}' can be damaged: it has no rule, format or example")
    left_out |= {f"{operator}, over --mutants {options.mutants}": count for operator, count in over.items()}
    shaping = [input_digests(component, model), component.digests["datasets"], options.replicates]
    key = digest(canonical_json([*shaping, {case.id: case.digest for case in cases}, configuration.settings.seed]))
    results = options.results or component.results_dir
    return Hunt(
        component=component,
        cases=cases,
        model=model,
        configuration=configuration,
        mutants=mutants,
        left_out=left_out,
        folder=results / f"mutants-{key[-12:]}",
    )


def name_of(mutant: Mutant) -> str:
    """Return the name of a mutant's run folder; another text under the same id has another."""
    return f"{mutant.id}-{mutant.digest[-8:]}"


def _first_line(component: Component) -> int:
    """Return the line of prompt.md on which the prompt begins."""
    text = read_text(component.folder / "prompt.md", RunError)
    return text.count("\n", 0, max(0, text.find(component.prompt))) + 1
