"""Which values the answers to one document gave to each field, and how often: what stability, α and profile count."""

from collections import Counter
from collections.abc import Hashable, Mapping

from skill_evaluator.metrics.answers import CaseAnswers

FieldValues = Mapping[str, Counter[Hashable]]


def field_values(answers: CaseAnswers) -> dict[str, Counter[Hashable]]:
    """Per leaf path, how often each canonical value was given by the parsed answers; None stands for absent.

    An array path counts the multiset of its values as one value. The paths are those of the schema and those seen.

    >>> from skill_evaluator.metrics.fieldplan import FieldPlan
    >>> answers = CaseAnswers(FieldPlan())
    >>> for text in ('{"a":1}', '{"a":1}', '{"b":2}'): answers.add(text, text)
    >>> [sorted(counts.values()) for counts in field_values(answers).values()]
    [[1, 2], [1, 2]]
    """
    paths = (path for path, rule in answers.plan.leaves.items() if rule.compare != "ignore")
    found: dict[str, Counter[Hashable]] = {path: Counter() for path in paths}
    parsed = answers.groups.total()
    tally = answers.tally()
    for path, given in tally.forms.items():
        counts = found.setdefault(path, Counter())
        for forms, count in given.items():
            counts[tally.lexicon.canonical(forms)] += count
    for counts in found.values():
        absent = parsed - counts.total()
        if absent:
            counts[None] = absent
    return found
