"""Records of versions and models → the cases that cannot be trusted to tell them apart, each with what to do.

A field that no good model gets right, though it does elsewhere, has a truth to be looked at: models seldom err alike.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from skill_evaluator.comparing.comparison import compare
from skill_evaluator.display.safe_text import shortened
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.library.cases import Case, parse_case_output
from skill_evaluator.library.components import Component
from skill_evaluator.metrics.diagnosis.per_field import label
from skill_evaluator.records.archive import Archive
from skill_evaluator.records.record import CaseRecord, Record, check_path
from skill_evaluator.runner.journal import outcomes
from skill_evaluator.stats import ROUNDING
from skill_evaluator.text import listed
from skill_evaluator.verdicts.decide.comparability import is_measured_alike, strict_scores

_VERSIONS = 3  # the newest ones that a case is judged by
_FEWEST_TAKERS = 4  # versions with a model; fewer say nothing of a case
_FEWEST_ANSWERS = 5  # of a model to one field
_GOOD = 0.5  # the share of other fields that a model which may contradict a truth gets right, and of this one elsewhere
_NEVER = 0.1  # the most that is right of a field whose truth may be wrong
_HALF = 0.5
_NAMED = 10
_SHOWN = 40  # characters of a value
Pair = tuple[str, str]
"""A case and one of its fields."""


def case_doubts(component: Component, cases: Sequence[Case], archive: Archive, tolerance: float) -> list[str]:
    """Return a line on each truth that good models contradict, then on cases that waver, and that told nothing."""
    runs = _runs(archive)
    if not runs:
        return []
    wavering, silent = _scored(runs, {case.id for case in cases}, tolerance)
    lines = list(_contradicted(component, {case.id: case for case in cases if case.labelled}, runs))
    if wavering:
        lines.append(
            f"flaky at every version, so they tell nothing: {wavering}; make plain what is right, or drop them"
        )
    if silent:
        lines.append(f"never told {len(runs)} versions and models apart: {silent}; harder ones would")
    return lines


def _runs(archive: Archive) -> list[Record]:
    """Return the newest whole run of each of the newest versions with each model, where the same rules scored it."""
    newest = {}
    for entry in sorted(archive.entries, key=lambda entry: entry.standing):
        if entry.complete and entry.scenario is None and not entry.edited:
            newest[entry.version, entry.model_id] = entry
    versions = list(dict.fromkeys(version for version, _ in reversed(newest)))[:_VERSIONS]
    records = [archive.record(entry) for (version, _), entry in newest.items() if version in versions]
    return [run for run in records if is_measured_alike(run, records[-1], "schema", "contract", "datasets")]


def _scored(runs: Sequence[Record], present: set[str], tolerance: float) -> tuple[str, str]:
    """Return the cases that are right now and wrong then in every run, and those that all runs scored alike."""
    scores: dict[str, list[Sequence[float]]] = defaultdict(list)
    for case_id, case, run in _unchanged(runs):
        if case_id in present and (own := strict_scores(case, run.primary_metric)):
            scores[case_id].append(own)
    wavering, silent = [], []
    for case_id, of_runs in scores.items():
        if len(of_runs) < _FEWEST_TAKERS:
            continue
        means = list(map(fmean, of_runs))
        if all(max(own) >= 1.0 - tolerance and min(own) <= _HALF for own in of_runs):
            wavering.append(case_id)
        elif max(means) - min(means) <= tolerance + ROUNDING:
            silent.append(case_id)
    return listed(wavering, _NAMED), listed(silent, _NAMED)


def _unchanged(runs: Sequence[Record]) -> Iterator[tuple[str, CaseRecord, Record]]:
    newest = {case.case_id: case for case in runs[-1].per_case}
    for run in runs:
        for case in run.per_case:
            if case.case_id in newest and newest[case.case_id].digest == case.digest:
                yield case.case_id, case, run


def _contradicted(component: Component, cases: Mapping[str, Case], runs: Sequence[Record]) -> Iterator[str]:
    """Yield a line on each case with fields that two good models or more, all there are, never get right."""
    for case_id, paths in doubted_fields(runs).items():
        if case_id not in cases:
            continue
        agreed = _agreed(component, cases[case_id], paths, runs)
        words = []
        for path in paths:
            truth, value = agreed.get(path, ("", None))
            if value is None:
                words.append(f"{path} (nobody is right here)")
            elif value not in ("", truth):
                words.append(f"{path} (models agree on {shortened(value, _SHOWN)}, not on {shortened(truth, _SHOWN)})")
        if words:
            yield f"case '{case_id}': good models contradict its truth: {listed(words, 3)}; look whether it is right"


def doubted_fields(runs: Sequence[Record]) -> dict[str, list[str]]:
    """Return by case the fields that every good model has wrong, though it has them right in other cases."""
    right: dict[str, Counter[Pair]] = defaultdict(Counter)
    asked: dict[str, Counter[Pair]] = defaultdict(Counter)
    for case_id, case, run in _unchanged(runs):
        for path, count in case.fields.items():
            if not path.startswith(check_path("")):
                right[run.model_id][case_id, path] += count.right
                asked[run.model_id][case_id, path] += count.n
    good = [model for model, own in asked.items() if right[model].total() >= _GOOD * max(1, own.total())]
    doubted: dict[str, list[str]] = defaultdict(list)
    for pair in dict.fromkeys(pair for model in good for pair in asked[model]):
        takers = [model for model in good if asked[model][pair] >= _FEWEST_ANSWERS]
        never = all(right[model][pair] <= _NEVER * asked[model][pair] for model in takers)
        if len(takers) > 1 and never and all(_is_able(right[model], asked[model], pair) for model in takers):
            doubted[pair[0]].append(pair[1])
    return doubted


def _is_able(right: Counter[Pair], asked: Counter[Pair], pair: Pair) -> bool:
    """Return whether a model mostly gets this field right in other cases."""
    others = [other for other in asked if other[1] == pair[1] and other[0] != pair[0]]
    n = sum(asked[other] for other in others)
    return n > 0 and sum(right[other] for other in others) >= _GOOD * n


def _agreed(
    component: Component, case: Case, paths: Sequence[str], runs: Sequence[Record]
) -> dict[str, tuple[str, str]]:
    """Return by field the truth and the value on which all models agree whose answers are here, empty for none."""
    values: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    truths: dict[str, str] = {}
    for run in runs:
        try:
            answers = outcomes(component.results_dir / run.run_id)
        except SkillEvaluatorError:
            continue
        for call, made in answers.items():
            if call.case_id != case.id or made.completion is None:
                continue
            parsed = parse_case_output(component, case, made.completion.text)
            for row in compare(case.truth, parsed.value, component.plan) if parsed.found is not None else ():
                if row.path in paths and "[]" not in row.path:
                    values[row.path][run.model_id][label(row.output)] += 1
                    truths[row.path] = label(row.truth)
    agreed = {}
    for path, of_models in values.items():
        if len(of_models) > 1:
            modes = {counts.most_common(1)[0][0] for counts in of_models.values()}
            agreed[path] = truths[path], modes.pop() if len(modes) == 1 else ""
    return agreed
