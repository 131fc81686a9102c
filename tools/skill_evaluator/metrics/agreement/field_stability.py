"""How steady is each field over the answers to one document?"""

from collections import Counter
from collections.abc import Hashable

from skill_evaluator.metrics.base import CaseAnswers


def field_stability_by_path(answers: CaseAnswers) -> dict[str, float]:
    """Return the share of the modal value by leaf path: how often the commonest value was given ÷ number of answers.

    Values are compared by canonical form (an array path by its multiset of values; tolerances do not apply), absent
    is a value too, an unparseable answer shares no value. Range 1/N (0 if nothing was parsed) to 1, 1 is best; empty
    for fewer than two answers.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ('{"a":1}', '{"a":1}', '{"a":2}'): answers.add(text, text)
    >>> round(field_stability_by_path(answers)["a"], 3)
    0.667
    """
    if answers.n < 2:
        return {}
    paths = (path for path, rule in answers.plan.leaves.items() if rule.compare != "ignore")
    tallied = {path: Counter[Hashable]() for path in paths} | answers.tally().values
    parsed = answers.groups.total()
    # the commonest value is the one given most often, or absence
    modal = {path: max(parsed - counts.total(), max(counts.values(), default=0)) for path, counts in tallied.items()}
    return {path: times / answers.n for path, times in modal.items()}


def field_stability(answers: CaseAnswers) -> float | None:
    """Return the mean of `field_stability_by_path` over the fields.

    Range 0 to 1, 1 is best; undefined for fewer than two answers or without fields.

    >>> from skill_evaluator.comparing.field_plan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ('{"a":1,"b":1}', '{"a":1,"b":2}'): answers.add(text, text)
    >>> field_stability(answers)
    0.75
    """
    shares = field_stability_by_path(answers)
    return sum(shares.values()) / len(shares) if shares else None
