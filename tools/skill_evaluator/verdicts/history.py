"""The history of a component: each recorded version compared with the one before.

Pairs of records and the rules come in, frozen models go out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from skill_evaluator.verdicts.comparability import Pair
from skill_evaluator.verdicts.history_results import History, ModelHistory, Point, Step, Steps
from skill_evaluator.verdicts.rules import VerdictRules

Draw = Callable[[Sequence[Pair]], Steps]


def history_of(
    skill: str,
    by_model: Mapping[str, Sequence[Pair]],
    rules: VerdictRules,
    steps_of: Callable[[Sequence[Pair], Draw], Steps] = lambda pairs, draw: draw(pairs),
) -> History:
    """Return the history of a component.

    Each version of a model is the candidate of a pair, lowest first, and the baseline is the version that it is judged
    against: None for the lowest. `steps_of` may return steps that were drawn before.
    """
    from skill_evaluator.verdicts.comparison import compare_records

    families: dict[str, list[Pair]] = {}  # the models of a version are one family, as they are in `compare`
    for pair in chain.from_iterable(by_model.values()):
        if pair.baseline is not None:
            families.setdefault(pair.candidate.skill_version, []).append(pair)

    def drawn(pairs: Sequence[Pair]) -> Steps:
        models = compare_records(skill, pairs, rules).models
        return Steps(by_run={model.candidate.run_id: Step.of(model, rules.primary_metric) for model in models})

    steps: dict[str, Step] = {}
    for pairs in families.values():
        steps |= steps_of(pairs, drawn).by_run
    models = [
        ModelHistory(
            model_id=model_id,
            points=[Point.of(pair, steps.get(pair.candidate.run_id), rules.primary_metric) for pair in versions],
            remarks=list(_remarks(versions)),
        )
        for model_id, versions in by_model.items()
    ]
    return History(
        skill=skill,
        metric=rules.primary_metric,
        gate=rules.policy.gate,
        alpha=rules.alpha,
        models=models,
        aa_runs=sum(len(pair.candidate_again) for pair in chain.from_iterable(by_model.values())),
    )


def _remarks(versions: Sequence[Pair]) -> Iterator[str]:
    """Yield what to know of the versions of a model: which were stopped early, and which records were passed over."""
    stopped = [pair.candidate.skill_version for pair in versions if pair.candidate.saved_calls]
    if stopped:
        yield f"stopped early by --adaptive, at a mean too high or too low: {', '.join(stopped)}"
    yield from dict.fromkeys(words for pair in versions for words in pair.passed_over)
