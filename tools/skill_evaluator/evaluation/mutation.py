"""Mutation testing: remove one part of the prompt at a time, and test whether the scores change.

A mutant is compared with four runs of the whole prompt: one is unchanged, and three have an edit that keeps the meaning
(controls). The effect of such edits is the noise that a mutant must exceed.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from skill_evaluator.errors import RunError
from skill_evaluator.evaluation.pipeline import call_and_score
from skill_evaluator.evaluation.runs import EvaluationRequest, Inputs, read_inputs
from skill_evaluator.files import FrozenModel, read_text
from skill_evaluator.library import options as cli
from skill_evaluator.library.prompts import Message, Prompt
from skill_evaluator.records.record import CaseRecord, Record
from skill_evaluator.runner.journal import ComponentRun, RunSize, answered_calls, input_digests, new_runs
from skill_evaluator.runner.prices import estimate, input_sizes
from skill_evaluator.runner.schedule import refuse_amounts
from skill_evaluator.runner.session import Watch
from skill_evaluator.stats import ROUNDING, rounded, total_or_none
from skill_evaluator.text import canonical_json, digest
from skill_evaluator.verdicts.decide.comparability import Pair, field_scores, strict_scores
from skill_evaluator.verdicts.decide.measuring import Compared, Floats, Measure, measure_pair
from skill_evaluator.verdicts.decide.rules import VerdictRules, has_collapsed, rules_for

_FENCE = re.compile(r"[ \t]*(`{3}|~{3})")
_HEADING = re.compile(r"(#{1,6})[ \t]")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S")
_NO_TEXT = re.compile(r"[ \t]*(?:\||>|[-*_]{3,}[ \t]*$|</?\w|$)")
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s+[^\sa-z])|\Z)\s*", re.DOTALL)


@cli.options
class MutationRequest(cli.LimitsOption, cli.LibraryOptions):
    """The options of `mutate`."""

    skill: str = cli.argument(cli.SKILL, metavar="COMPONENT")
    model: str | None = cli.option("The model to call; required if models.yaml has several.", None, "-m", metavar="ID")
    replicates: int = cli.option("Calls per case and mutant.", 4, "-n")
    mutants: int = cli.option("Number of parts of the prompt to remove, longest first.", 40)
    dry_run: bool = cli.flag("List the mutants and their maximum cost; make no call.")
    results: Path | None = cli.rare("Folder for the runs; default: the component's evals/results.", metavar="DIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A prompt without one part. `text` is the removed part, and `line` its line in the prompt's file, from 1."""

    id: str
    line: int
    text: str
    prompt: Prompt


def mutants_of(prompt: Prompt, source: str = "") -> tuple[Mutant, ...]:
    """Return a mutant for each part of a prompt that can be removed, from top to bottom.

    A part cannot be removed if its message would then be empty or lack an input. Lines are counted in `source`, the
    text of the prompt's file, or by default in the prompt's text.

    >>> [(one.id, one.text) for one in mutants_of(Prompt.of("Read it. Trim it.\\n\\n- Never guess."))]
    [('sentence-1', 'Read it.'), ('sentence-1-2', 'Trim it.'), ('bullet-3', '- Never guess.')]
    """
    text, names, mutants = prompt.text, Counter[str](), []
    for kind, begin, end in parts_of(text):
        removed, remainder = text[begin:end].strip(), text[:begin] + text[end:]
        remainder = re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)[ \t]+$", "", remainder)).strip()
        shorter = prompt.like(remainder) if remainder else None
        if shorter is None:
            continue
        prompt_begin = source.find(text)  # -1 if the file has other whitespace
        position = prompt_begin + begin if prompt_begin >= 0 else source.find(removed.partition("\n")[0])
        line = (source.count("\n", 0, position) if position >= 0 else text.count("\n", 0, begin)) + 1
        name = f"{kind}-{line}"
        names[name] += 1
        name = name if names[name] == 1 else f"{name}-{names[name]}"
        mutants.append(Mutant(id=name, line=line, text=" ".join(removed.split()), prompt=shorter))
    return tuple(mutants)


def parts_of(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of each section, bullet and sentence of a Markdown text, from top to bottom.

    `start` and `end` count characters. A section includes everything below its heading, a bullet the indented lines
    below it. Code, tables, quotations and tags are no parts of their own.
    """
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    kinds = _kinds_of(lines)
    for number, kind in enumerate(kinds):
        following = range(number + 1, len(lines))
        if kind == "section":
            sections = (n for n in following if kinds[n] == "section")
            end = next((n for n in sections if _level(lines[n], "#") <= _level(lines[number], "#")), len(lines))
            yield kind, starts[number], starts[end]
        elif kind == "bullet":
            end = next((n for n in following if kinds[n] != "sentence"), len(lines))
            texts = (n for n in range(end, len(lines)) if lines[n].strip())
            end = next((n for n in texts if _level(lines[n]) <= _level(lines[number])), len(lines))
            yield kind, starts[number], starts[end]
        elif kind == "sentence" and (number == 0 or kinds[number - 1] not in ("sentence", "bullet")):
            end = next((n for n in following if kinds[n] != "sentence"), len(lines))
            for match in _SENTENCE.finditer(text, starts[number], len(text[: starts[end]].rstrip())):
                yield kind, match.start(), match.end()


def _kinds_of(lines: Sequence[str]) -> list[str]:
    """Return "section", "bullet", "sentence", or "none" (blank, code, table, quotation or tag) for each line."""
    kinds, fence = [], ""
    for line in lines:
        mark = _FENCE.match(line)
        if fence or mark:
            kinds.append("none")
            fence = fence if mark is None else "" if mark[1] == fence else fence or mark[1]
        elif _HEADING.match(line):
            kinds.append("section")
        else:
            kinds.append("none" if _NO_TEXT.match(line) else "bullet" if _BULLET.match(line) else "sentence")
    return kinds


def _level(line: str, marks: str | None = None) -> int:
    """Count the leading characters of a line that are in `marks` (None: whitespace)."""
    return len(line) - len(line.lstrip(marks))


def controls_of(prompt: Prompt) -> tuple[Prompt, ...]:
    """Return three edits of a prompt that keep its meaning.

    They are the first three of these that change its text: other bullet marks, wider gaps, an empty line before the
    text, an empty line after it, and both empty lines.

    >>> [control.text for control in controls_of(Prompt.of("- a\\n- b"))]
    ['* a\\n* b', '\\n- a\\n- b', '- a\\n- b\\n']
    """
    first, *tail = prompt.messages
    text = first.text
    marks = re.sub(r"(?m)^(\s*)([-*])(?=\s)", lambda mark: f"{mark[1]}{'*' if mark[2] == '-' else '-'}", text)
    wider = re.sub(r"(?<=[.!?]) (?=\S)", "  ", text.replace("\n\n", "\n\n\n"))
    texts = dict.fromkeys((marks, wider, f"\n{text}", f"{text}\n", f"\n{text}\n"))
    edited = [edit for edit in texts if edit != text][:3]
    return tuple(replace(prompt, messages=(Message(first.role, (edit,)), *tail)) for edit in edited)


MutantStatus = Literal["killed", "survived", "undecided"]


class Reaction(FrozenModel):
    """A changed metric, field or case: its means before and after the mutation, and the adjusted p-value (`q`)."""

    name: str
    kind: Literal["metric", "field", "case"]
    before: float
    after: float
    q: float


class MutantResult(FrozenModel):
    """The result of one mutant: killed if the cases notice the removed part."""

    id: str
    line: int = Field(description="of the part in the prompt's file")
    text: str = Field(description="the removed part")
    status: MutantStatus = "undecided"
    reactions: list[Reaction] = []
    reason: str | None = Field(default=None, description="why it is undecided")


class MutationResult(FrozenModel):
    """The result of mutation testing on a component with a model."""

    skill: str
    skill_version: str
    model_id: str
    n_cases: int
    replicates: int
    alpha: float
    mutants: list[MutantResult]
    left_out: int = Field(description="parts beyond --mutants, which were not removed")
    calls: int = Field(description="calls of this and earlier runs; in a dry run the planned calls")
    cost_usd: float | None = Field(description="cost of these calls; in a dry run the maximum")
    folder: str
    dry_run: bool = False

    def count(self, status: MutantStatus) -> int:
        """Return the number of mutants with a status."""
        return sum(mutant.status == status for mutant in self.mutants)

    @property
    def score(self) -> float | None:
        """The mutation score, killed ÷ (killed + survived). It is None if no mutant is decided."""
        decided = self.count("killed") + self.count("survived")
        return self.count("killed") / decided if decided else None


RESUME_ADVICE = "the same command resumes where this one stopped, and repeats no call"
_WHOLE_RUNS = ("whole", "control-1", "control-2", "control-3")
_MIN_REPLICATES = 2  # one output per case shows no variation
_MIN_CASES = 2


def mutate(request: MutationRequest, watch: Watch) -> MutationResult:
    """Test whether the cases notice removed parts of a prompt. A dry run makes no call and leaves mutants undecided."""
    inputs = _read_inputs(request)
    component = inputs.component
    candidates = mutants_of(component.prompt, read_text(component.files.prompts[0], RunError))
    longest = sorted(candidates, key=lambda mutant: -len(mutant.text))[: request.mutants]
    mutants = [mutant for mutant in candidates if mutant in longest]
    if not mutants:
        raise RunError(f"the prompt of '{component.name}' has no part that can be removed")
    runs = _runs(inputs, request.replicates, mutants)
    if request.dry_run:
        results = [MutantResult.view(mutant) for mutant in mutants]
        estimates = []
        for run in runs:
            sizes = input_sizes(run.component, [case for case in inputs.cases if case.id in run.manifest.cases])
            estimates.append(estimate(sizes, run.model, inputs.kinds[run.model.provider], run.manifest.replicates))
        calls, cost = sum(each.calls for each in estimates), total_or_none(each.cost_upper_usd for each in estimates)
    else:
        if inputs.models[0].provider == "replay":
            model_id = inputs.models[0].id
            raise RunError(f"'{model_id}' replays outputs and ignores the prompt; choose another model")
        try:
            records = {scored.record.run_id: scored.record for scored in call_and_score(runs, inputs, watch)}
        except KeyboardInterrupt:  # during the scoring
            print(RESUME_ADVICE, file=sys.stderr)
            raise
        calls = sum(len(answered_calls(run.folder)) for run in runs)
        results = _decide(mutants, records, inputs)
        cost = total_or_none(record.cost.cost_usd for record in records.values())
    first = runs[0]
    return MutationResult.view(
        first.manifest,
        n_cases=len(first.manifest.cases),
        alpha=inputs.settings.policy.alpha,
        mutants=results,
        left_out=len(candidates) - len(mutants),
        calls=calls,
        cost_usd=rounded(cost),
        folder=str(first.folder.parent),
        dry_run=request.dry_run,
    )


def _read_inputs(request: MutationRequest) -> Inputs:
    refuse_amounts({"--mutants": request.mutants}, None, None)
    if request.replicates < _MIN_REPLICATES:
        raise RunError(f"--replicates must be at least {_MIN_REPLICATES}: one output per case shows no variation")
    shared = ("skill", "replicates", "results", "components", "fixtures", "config")
    evaluation = EvaluationRequest(
        **{name: getattr(request, name) for name in (*shared, "concurrency", "max_cost", "max_calls")},
        models=() if request.model is None else (request.model,),
        draft=True,
        leaderboard=False,
    )
    inputs = read_inputs(evaluation)
    if inputs.component.program is not None:
        raise RunError(f"'{inputs.component.name}' is a program and has no prompt to mutate")
    if len(inputs.models) != 1:
        names = ", ".join(model.id for model in inputs.models)
        raise RunError(f"mutate runs one model: name it with --model ({names})")
    return replace(inputs, cases=tuple(case for case in inputs.cases if case.labelled), judge=None)


def _runs(inputs: Inputs, replicates: int, mutants: Sequence[Mutant]) -> list[ComponentRun]:
    """Plan the runs of the whole prompt, of the controls (edits that keep its meaning) and of the mutants."""
    component, seed = inputs.component, inputs.settings.seed
    size = RunSize(replicates=replicates, seed=seed, draft=True)
    (plain,) = new_runs(component, inputs.cases, inputs.models, inputs.results_dir, inputs.kinds, size)
    manifest = plain.manifest
    if len(manifest.cases) < _MIN_CASES:
        raise RunError(f"'{component.name}' has too few cases with ground truth: mutate requires {_MIN_CASES}")
    identity = [manifest.digests, component.digests["datasets"], manifest.cases, replicates, seed]
    folder = inputs.results_dir / f"mutants-{digest(canonical_json(identity))[-12:]}"
    prompts = dict(zip(_WHOLE_RUNS, (component.prompt, *controls_of(component.prompt)), strict=True))
    prompts |= {_run_id(mutant): mutant.prompt for mutant in mutants}
    runs = []
    for name, prompt in prompts.items():
        mutated = replace(component, prompt=prompt, digests={**component.digests, "prompt": prompt.digest})
        update = {
            "run_id": name,
            "digests": input_digests(mutated, plain.model),
            # equal seeds could repeat the outputs of the whole prompt
            "seed": seed + (_WHOLE_RUNS.index(name) if name in _WHOLE_RUNS else 0),
        }
        changed = manifest.model_copy(update=update)
        runs.append(replace(plain, manifest=changed, folder=folder / name, component=mutated))
    return runs


def _run_id(mutant: Mutant) -> str:
    return f"{mutant.id}-{mutant.prompt.digest[-8:]}"


def _decide(mutants: Sequence[Mutant], records: Mapping[str, Record], inputs: Inputs) -> list[MutantResult]:
    whole = [records[name] for name in _WHOLE_RUNS]
    rules = rules_for(inputs.settings, whole[0])
    results = []
    for mutant in mutants:
        record = records[_run_id(mutant)]
        partial = next((one for one in (record, *whole) if not one.complete), None)
        if partial is None:
            results.append(decide_mutant(mutant, whole, record, rules))
        else:
            share = f"only {partial.coverage:.0%} of the calls of {partial.run_id} succeeded"
            results.append(MutantResult.view(mutant, reason=partial.stopped or share))
    return results


def decide_mutant(mutant: Mutant, whole: Sequence[Record], record: Record, rules: VerdictRules) -> MutantResult:
    """Decide whether a mutant is killed, that is, whether removing this part of the prompt changes the scores.

    `whole` has the record of the unchanged prompt and then the records of its controls (edits that keep the meaning). A
    metric or field kills the mutant if its mean changes by more than its tolerance and the change is either significant
    (adjusted p-value at most α) or the loss of nearly all right outputs. Reproducibility metrics do not count.
    """
    candidate = record.model_copy(update={"beside": whole[0].run_id})
    pair = Pair(baseline=whole[0], candidate=candidate, baseline_again=tuple(whole[1:]))
    compared = measure_pair(pair)
    noticed = _changed_measures(compared, rules)
    reactions = [*noticed, *_changed_cases(compared, noticed, rules)]
    return MutantResult.view(mutant, status="killed" if noticed else "survived", reactions=reactions)


def _changed_measures(compared: Compared, rules: VerdictRules) -> list[Reaction]:
    measured = [measure for measure in compared.measured if measure.kind != "reproducibility"]
    if not measured:
        return []
    case_ids = sorted({case_id for measure in measured for case_id in measure.case_ids})
    versions = _cases_by_version(compared.pair)
    scores = np.array([[_means(measure, case_id, versions) for case_id in case_ids] for measure in measured])
    noticed = []
    for measure, q in zip(measured, adjusted_p_values(scores), strict=True):
        before, after = measure.before.mean, measure.after.mean
        is_beyond = abs(after - before) > rules.tolerance(measure) + ROUNDING
        if is_beyond and (q <= rules.alpha or has_collapsed(measure, models=1)):
            kind: Literal["field", "metric"] = "field" if measure.kind == "field" else "metric"
            noticed.append(_reaction(measure.name, kind, before, after, q))
    return sorted(noticed, key=lambda reaction: reaction.kind)


def _changed_cases(compared: Compared, noticed: Sequence[Reaction], rules: VerdictRules) -> Iterator[Reaction]:
    """Yield each case in which the mutant scores above or below all other versions on the primary metric.

    If all `noticed` reactions are decreases, yield only decreases. If all `noticed` reactions are increases, yield only
    increases.
    """
    primary = compared.primary(rules.primary_metric)
    if primary is None or not noticed:
        return
    q, fell = min(reaction.q for reaction in noticed), {reaction.after < reaction.before for reaction in noticed}
    versions = _cases_by_version(compared.pair)
    means = zip(primary.case_ids, primary.before.means.tolist(), strict=True)
    for case_id, before in means:
        *earlier, after = _means(primary, case_id, versions)
        if (after < before) in fell and not min(earlier) - ROUNDING <= after <= max(earlier) + ROUNDING:
            yield _reaction(case_id, "case", before, after, q)


def _reaction(name: str, kind: Literal["metric", "field", "case"], before: float, after: float, q: float) -> Reaction:
    return Reaction(name=name, kind=kind, before=round(before, 6), after=round(after, 6), q=round(q, 6))


def _cases_by_version(pair: Pair) -> list[dict[str, CaseRecord]]:
    """Return the case records of each version by case id. The baseline comes first, and the candidate last."""
    records = (*filter(None, (pair.baseline,)), *pair.baseline_again, pair.candidate)
    return [{case.case_id: case for case in record.per_case} for record in records]


def _means(measure: Measure, case_id: str, versions: Sequence[dict[str, CaseRecord]]) -> list[float]:
    """Return the mean score of a case in each version. The mean is NaN if the version has no score of the case."""
    scores_in = field_scores if measure.kind == "field" else strict_scores
    scores = [scores_in(cases[case_id], measure.name) if case_id in cases else () for cases in versions]
    return [sum(values) / len(values) if values else math.nan for values in scores]


_DRAWS = 4_000


def adjusted_p_values(scores: Floats) -> list[float]:
    """Test whether the last version differs from the other versions. Return one adjusted p-value per measure.

    `scores` has the axes measures, cases and versions. NaN stands for a missing score. The statistic of a measure is
    the standardised sum over the cases of the last version's deviation from the mean of the other versions. In a
    permutation, any version can take the place of the last version, independently in each case. The p-value of a
    measure is the share of permutations in which the largest statistic of all measures reaches the observed statistic
    of this measure (Westfall and Young 1993). Measures may be dependent.
    """
    versions = scores.shape[2]
    # deviations from the mean of the other versions
    deviations = (scores - scores.mean(axis=2, keepdims=True)) * (versions / (versions - 1))
    deviations = np.where(np.isnan(deviations) | (np.abs(deviations) < ROUNDING), 0.0, deviations)
    deviations = deviations[:, deviations.any(axis=(0, 2))]  # only cases with any deviation
    scale = np.sqrt((deviations**2).mean(axis=2).sum(axis=1))
    scale[scale == 0.0] = np.inf
    chosen = _permutations(deviations.shape[1], versions)
    sums = np.zeros((len(scores), len(chosen)))
    for case in range(deviations.shape[1]):
        sums += deviations[:, case, chosen[:, case]]
    largest = np.abs(sums / scale[:, None]).max(axis=0, initial=0.0)
    actual = np.abs(deviations[:, :, -1].sum(axis=1)) / scale
    return [float((largest >= value - ROUNDING).mean()) if value else 1.0 for value in actual]


def _permutations(cases: int, versions: int) -> NDArray[np.int_]:
    """Return one permutation per row: for each case, the index of the version in the place of the last version.

    If more than 4,000 permutations are possible, return the actual order and 4,000 random permutations.
    """
    if versions**cases <= _DRAWS:
        return np.array(list(product(range(versions), repeat=cases)), int).reshape(versions**cases, cases)
    draws = np.random.default_rng(0).integers(versions, size=(_DRAWS, cases))
    return np.vstack([np.full(cases, versions - 1), draws])
