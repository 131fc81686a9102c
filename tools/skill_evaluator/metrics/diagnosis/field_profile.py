"""Stability of a field over the answers to a case: always right, always wrong in the same way, or flaky.

A stable wrong field needs a better prompt, a flaky field a clearer schema or more samples. The counts of a field's
values are computed here for the profile, the stability and α.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Literal

from skill_evaluator.metrics.base import CaseAnswers
from skill_evaluator.metrics.diagnosis.per_field import FieldCounts

FieldValues = Mapping[str, Counter[Hashable]]


def field_values(answers: CaseAnswers) -> dict[str, Counter[Hashable]]:
    """Map leaf paths to the number of parsed outputs per canonical value; None means absent.

    An array path counts the multiset of its values as one value. The paths are those in the schema and in the outputs.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":1}', '{"a":1}', '{"b":2}'): answers.add(text, text)
    >>> [sorted(counts.values()) for counts in field_values(answers).values()]
    [[1, 2], [1, 2]]
    """
    paths = (path for path, rule in answers.plan.leaves.items() if rule.compare != "ignore")
    values: dict[str, Counter[Hashable]] = {path: Counter() for path in paths}
    parsed = answers.groups.total()
    for path, path_values in answers.tally().values.items():
        values.setdefault(path, Counter()).update(path_values)
    for counts in values.values():
        absent = parsed - counts.total()
        if absent:
            counts[None] = absent
    return values


Stability = Literal["stable_right", "stable_wrong", "stable", "flaky", "unscored"]


def field_profile(
    answers: CaseAnswers, values: FieldValues, fields: Mapping[str, FieldCounts] | None
) -> dict[str, Stability]:
    """Return the stability of each leaf path of one case, from its answers and their `field_values`.

    - `unscored`: fewer than two answers, none parsed, or free text that does not count (no `threshold`);
    - `stable_right`: every answer was parsed, and right by the field's rule (all leaves of an array path);
    - `stable_wrong`: every answer was parsed, all have the same canonical value, and none was right;
    - `flaky`: otherwise, for example if an answer could not be parsed.

    `fields` are the total counts of the parsed answers. If it is None (no ground truth), a field is `stable` if every
    answer was parsed and has the same canonical value. Absent is a value. An array path is compared by the multiset of
    its values; if items swap values between answers, the field is `flaky`.

    >>> answers = CaseAnswers()
    >>> for text in ('{"a":1,"b":1,"c":1}', '{"a":1,"b":1,"c":2}'): answers.add(text, text)
    >>> field_profile(answers, field_values(answers), {"b": FieldCounts(flawed=2), "c": FieldCounts(flawed=1)})
    {'a': 'stable_right', 'b': 'stable_wrong', 'c': 'flaky'}
    """
    parsed = answers.groups.total()
    standings: dict[str, Stability] = {}
    flawed = None if fields is None else {path: counts.flawed for path, counts in fields.items()}
    for path in dict.fromkeys((*values, *(fields or ()))):
        is_constant = len(values.get(path, ())) < 2  # a path only in the truth has no values
        if answers.n < 2 or not parsed or not answers.plan.leaf(path).counts:
            standings[path] = "unscored"
        elif parsed < answers.n:
            standings[path] = "flaky"
        elif flawed is None:
            standings[path] = "stable" if is_constant else "flaky"
        elif not flawed.get(path):
            standings[path] = "stable_right"
        else:
            standings[path] = "stable_wrong" if is_constant and flawed[path] == answers.n else "flaky"
    return standings
