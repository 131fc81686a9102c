"""One output against one truth: aligned leaves as rows, each with its outcome. All accuracy metrics read these.

Objects align by key; arrays by their declared rule. Null and absent are the same thing for a leaf.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

from skill_evaluator.comparing.assignment import equal_items, pair_items
from skill_evaluator.comparing.comparators import equal
from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan
from skill_evaluator.comparing.forms import Form
from skill_evaluator.comparing.leaves import Lexicon, pairs_by_best
from skill_evaluator.comparing.sides import PreparedValue
from skill_evaluator.text import keys_by_nfc_name, rename_keys

At = tuple[str | int, ...]
Pair = tuple[int | None, int | None]
Sides = tuple[PreparedValue, PreparedValue]
LeafOutcome = Literal["right", "wrong", "missing", "extra"]
# A value of these is equal to itself under any rule; it need not be normalised to know that.
_SCALARS = frozenset({str, int, float, bool})
_CONTAINERS = (dict, list)
_OBJECT = (dict, type(None))
_ARRAY = (list, type(None))


@dataclass(slots=True)  # not frozen: there is one per leaf, and making a frozen one takes five times as long
class ComparedLeaf:
    """One aligned leaf: its path in the plan, its rule, both values and what came of them. Not to be changed.

    `truth_at` and `output_at` say where the value stands: keys and array indexes; None where there is no value.
    """

    path: str
    rule: FieldRule
    truth: Any
    output: Any
    outcome: LeafOutcome
    truth_at: At | None
    output_at: At | None


class AlignedArray(NamedTuple):
    """Which items of two arrays met: pairs of indexes, and where the arrays stand."""

    field: Field
    truth: list[Any]
    output: list[Any]
    pairs: list[Pair]
    truth_at: At
    output_at: At


def compare(truth: Any, output: Any, plan: FieldPlan) -> list[ComparedLeaf]:
    """Align two JSON values and compare their leaves, in the order of the truth's keys, then the output's own."""
    lexicon = Lexicon(plan)
    return compare_sides(PreparedValue(truth, lexicon), PreparedValue(output, lexicon))


def compare_sides(truth: PreparedValue, output: PreparedValue) -> list[ComparedLeaf]:
    """Return the rows of two values that are prepared already."""
    return _Comparing((truth, output)).rows


def align_arrays(truth: Any, output: Any, plan: FieldPlan) -> list[AlignedArray]:
    """Align two JSON values as `compare` does, and return how each of their arrays was aligned, outermost first."""
    lexicon = Lexicon(plan)
    return _Comparing((PreparedValue(truth, lexicon), PreparedValue(output, lexicon))).arrays


class _Comparing:
    """One walk over truth and output: their aligned leaves and arrays."""

    def __init__(self, sides: Sides) -> None:
        self.rows: list[ComparedLeaf] = []
        self.arrays: list[AlignedArray] = []
        self._sides = sides
        truth, output = sides
        self.compare(truth.value, output.value, truth.lexicon.plan.field(""), (), ())

    def compare(self, truth: Any, output: Any, field: Field, truth_at: At, output_at: At) -> None:
        """Compare two values at a field; one frame per level of nesting, as values may be hundreds of levels deep."""
        if field.rule is None and (isinstance(truth, _CONTAINERS) or isinstance(output, _CONTAINERS)):
            if isinstance(truth, _OBJECT) and isinstance(output, _OBJECT):
                left, right = truth or {}, output or {}
                left_keys, right_keys = keys_by_nfc_name(left), keys_by_nfc_name(right)
                if left_keys or right_keys:
                    return self._compare_respelt(left, right, left_keys, right_keys, field, truth_at, output_at)
                children = field.children
                for key in left if left.keys() >= right.keys() else {**left, **right}:
                    below = children.get(key) or field.child(key)
                    self.compare(left.get(key), right.get(key), below, (*truth_at, key), (*output_at, key))
            elif isinstance(truth, _ARRAY) and isinstance(output, _ARRAY):
                lefts, rights = truth or [], output or []
                pairs = [*_align(lefts, rights, field, self._sides)]
                self.arrays.append(AlignedArray(field, lefts, rights, pairs, truth_at, output_at))
                for i, j in pairs:
                    item, in_truth = (None, truth_at) if i is None else (lefts[i], (*truth_at, i))
                    other, in_output = (None, output_at) if j is None else (rights[j], (*output_at, j))
                    self.compare(item, other, field.item, in_truth, in_output)
            else:  # of different kinds: the one is missing, the other extra
                self.compare(truth, None, field, truth_at, output_at)
                self.compare(None, output, field, truth_at, output_at)
        elif field.ignored:
            pass
        elif truth is not None and output is not None:
            rule = field.rule or field.leaf_rule(truth)
            same = truth == output and truth.__class__ is output.__class__ and truth.__class__ in _SCALARS
            outcome: LeafOutcome = "right" if same or equal(truth, output, rule) else "wrong"
            self.rows.append(ComparedLeaf(field.path, rule, truth, output, outcome, truth_at, output_at))
        elif truth is not None:
            self.rows.append(ComparedLeaf(field.path, field.leaf_rule(truth), truth, None, "missing", truth_at, None))
        elif output is not None:
            self.rows.append(ComparedLeaf(field.path, field.leaf_rule(output), None, output, "extra", None, output_at))
        return None

    def _compare_respelt(
        self,
        truth: dict[str, Any],
        output: dict[str, Any],
        truth_keys: Mapping[str, str],
        output_keys: Mapping[str, str],
        field: Field,
        truth_at: At,
        output_at: At,
    ) -> None:
        """Compare objects with keys that are not NFC: members meet by name, and stand at the key as it is spelt."""
        left, right = rename_keys(truth, truth_keys), rename_keys(output, output_keys)
        for name in {**left, **right}:
            in_truth = (*truth_at, truth_keys.get(name, name))
            in_output = (*output_at, output_keys.get(name, name))
            self.compare(left.get(name), right.get(name), field.child(name), in_truth, in_output)


def _align(truth: list[Any], output: list[Any], field: Field, sides: Sides) -> Iterable[Pair]:
    rule = field.array_rule(*truth, *output)
    lefts, rights = range(len(truth)), range(len(output))
    if not truth or not output or rule.align == "ordered":
        return zip_longest(lefts, rights)
    if pairs_by_best(rule, field):
        return _best(lefts, rights, truth, output, field, sides)
    groups: dict[Hashable, tuple[list[int], list[int]]] = {}
    for side, of_side, items in ((0, sides[0], truth), (1, sides[1], output)):
        for index, who in enumerate(of_side.identities(items, rule, field)):
            groups.setdefault(who, ([], []))[side].append(index)
    pairs: list[Pair] = []
    for left, right in groups.values():
        one_each = len(left) < 2 and len(right) < 2
        if one_each or rule.align == "set":
            pairs += zip_longest(left, right)
        else:  # more than one item of a key: which is which, their other fields decide
            pairs += _best(left, right, truth, output, field, sides)
    return pairs


def _best(
    lefts: Sequence[int],
    rights: Sequence[int],
    truth: list[Any],
    output: list[Any],
    field: Field,
    sides: Sides,
) -> Iterable[Pair]:
    """Return the assignment that maximises matched leaf weight, in the truth's order, then what is left of the output.

    Ties must not hang on the order in which items were given: they are resolved in the order of what the items say.
    """
    if not lefts or not rights or len(lefts) == len(rights) == 1:
        return zip_longest(lefts, rights)
    all_left, all_right = sides[0].leaves(truth, field), sides[1].leaves(output, field)
    left_leaves, right_leaves = [all_left[i] for i in lefts], [all_right[j] for j in rights]
    in_truth = _by_content(truth, lefts, field.item, sides[0])
    in_output = _by_content(output, rights, field.item, sides[1])
    partners: dict[int, int] = {}
    for equal_lefts, equal_rights in equal_items(left_leaves, right_leaves):
        one_each = len(equal_lefts) == len(equal_rights) == 1
        ordered = [] if one_each else [in_truth(equal_lefts), in_output(equal_rights)]
        partners |= dict(zip(*(ordered or (equal_lefts, equal_rights)), strict=False))
    taken = set(partners.values())
    left_over = in_truth([at for at in range(len(lefts)) if at not in partners])
    right_over = in_output([at for at in range(len(rights)) if at not in taken])
    pairs = pair_items([left_leaves[i] for i in left_over], [right_leaves[j] for j in right_over])
    partners |= {left_over[row]: right_over[column] for row, column in pairs.items()}
    taken = set(partners.values())
    return [
        *((i, rights[partners[at]] if at in partners else None) for at, i in enumerate(lefts)),
        *((None, j) for at, j in enumerate(rights) if at not in taken),
    ]


def _by_content(
    items: list[Any], indexes: Sequence[int], field: Field, side: PreparedValue
) -> Callable[[list[int]], list[int]]:
    """Return a function that puts places in a list of indexes in the order of what the items there say."""
    return lambda places: sorted(places, key=lambda place: side.text(items[indexes[place]], field))


def identity(item: Any, rule: FieldRule, path: str, plan: FieldPlan) -> Hashable:
    """Return what identifies an array item: its declared key fields, or its whole canonical value for a `set`."""
    (who,) = Lexicon(plan).identities([item], rule, plan.field(path))
    if isinstance(who, tuple):
        return tuple(None if form is None else form.canonical for form in who)
    return who.canonical if isinstance(who, Form) else None


def counted_weight(rows: Iterable[ComparedLeaf]) -> tuple[float, float, float]:
    """Sum weights (matched, of the truth's leaves, of the output's leaves) over the rows that count."""
    weights: dict[int, float] = {}  # by rule: its properties are looked up once
    matched = of_truth = of_output = 0.0
    for row in rows:
        rule, outcome = row.rule, row.outcome
        weight = weights.get(id(rule))
        if weight is None:
            weight = weights[id(rule)] = rule.weight if rule.counts else 0.0
        if outcome != "extra":
            of_truth += weight
        if outcome != "missing":
            of_output += weight
        if outcome == "right":
            matched += weight
    return matched, of_truth, of_output
