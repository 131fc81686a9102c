"""Compare an output with a ground truth: align array items, and give each leaf an outcome. Null equals absent."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import permutations, zip_longest
from math import fsum, perm
from operator import getitem, itemgetter
from typing import Any, Literal, NamedTuple, TypeVar

from skill_evaluator.comparing.declarations import FieldRule
from skill_evaluator.comparing.field_plan import Field, FieldPlan, canonical, equal
from skill_evaluator.text import canonical_json, frozen, key_path, keys_by_nfc_name, rename_keys, with_nfc_keys

Steps = tuple[Hashable, ...]
Leaf = tuple[Steps, Hashable, float]
T = TypeVar("T")
ValuePath = tuple[str | int, ...]
Pair = tuple[int | None, int | None]
LeafOutcome = Literal["right", "wrong", "missing", "extra", "unscored"]
# Identical values of these types are equal under any rule, without normalisation.
_SCALARS = frozenset({str, int, float, bool})
_CONTAINERS = (dict, list)
_OBJECT = (dict, type(None))
_ARRAY = (list, type(None))
_MAX_ENUMERATED_ASSIGNMENTS = 60  # assignments


class ItemLeaves(NamedTuple):
    """The leaves of one array item, each as (path inside the item, canonical value, weight).

    An item is `plain` if no leaf has a tolerance or threshold, and if all arrays inside the item are aligned by
    position. Two plain items are compared by their common leaves alone.
    """

    leaves: frozenset[Leaf]
    plain: bool


class MemoizedValue:
    """One side of a comparison (truth or output). It caches results that are needed several times."""

    def __init__(self, value: Any, plan: FieldPlan) -> None:
        self.value = plan.with_numbers(value)
        self.plan = plan
        self._kept: dict[tuple[Callable[..., Any], int, str], Any] = {}

    def once(self, work: Callable[..., T], part: Any, field: Field, *arguments: Any) -> T:
        """Return `work(part, field, *arguments)`, cached. `part` is an item or an array inside this value."""
        key = (work, id(part), field.path)
        cached: T | None = self._kept.get(key)
        if cached is None:
            cached = self._kept[key] = work(part, field, *arguments)
        return cached

    @cached_property
    def canonical_text(self) -> str:
        """The canonical JSON, the same for all equal values."""
        return canonical_json(self.value)

    @cached_property
    def item_counts(self) -> Mapping[str, Counter[Hashable]]:
        """The number of array items with each identity (see `identities`), by array path such as `orders[].lines`.

        The arrays at one path, here the lines of all orders, are counted together. An item without any key field is
        identified by its canonical value.
        """
        counts: dict[str, Counter[Hashable]] = {}
        for field, items in arrays_in(self.value, self.plan):
            rule = field.array_rule(*items)
            item_identities = self.once(identities, items, field, rule)
            if rule.align == "key":
                no_key = (None,) * len(rule.key)
                item_identities = [  # a frozenset never equals a tuple of keys
                    frozenset(_canonicals([item], field.item)) if identity == no_key else identity
                    for identity, item in zip(item_identities, items, strict=True)
                ]
            counts.setdefault(field.path, Counter()).update(item_identities)
        return counts


def pairs_by_best(rule: FieldRule, field: Field) -> bool:
    """Return whether the items of an array are paired by similarity instead of by identity or position."""
    return rule.align == "best" or (
        rule.align == "set" and field.item.rule is not None and not field.item.rule.exact_equality
    )


def identities(items: list[Any], field: Field, rule: FieldRule) -> list[Hashable]:
    """Return the identity of each array item: its canonical keys with `align: key`, else its canonical value."""
    if rule.align != "key":
        return _canonicals(items, field.item)
    keys = [
        _canonicals([key_value(item, key) for item in items], field.item.descendant(key.split("."))) for key in rule.key
    ]
    return list(zip(*keys, strict=True))


def key_value(item: Any, key: str) -> Any:
    """Return the value of an item's key field, which may be a dotted path. Return None if it is absent."""
    if isinstance(item, dict) and item.get(key) is not None:
        return item[key]
    for part in key.split("."):
        item = item.get(part) if isinstance(item, dict) else None
    return item


def arrays_in(value: Any, plan: FieldPlan) -> Iterator[tuple[Field, list[Any]]]:
    """Yield the field and the items of every array inside a value, except arrays that are compared as a whole."""
    return ((field, part) for field, part in plan.walk(value) if field.rule is None and isinstance(part, list))


def values_by_path(value: Any, plan: FieldPlan) -> tuple[dict[str, Hashable], dict[str, int]]:
    """Return the canonical value by leaf path (a multiset if there are several), and the length by array path."""
    forms: defaultdict[str, list[Hashable]] = defaultdict(list)
    lengths: dict[str, int] = {}
    _gather_values(value, plan.field(""), (), forms, lengths)
    values = {path: group[0] if len(group) == 1 else frozenset(Counter(group).items()) for path, group in forms.items()}
    return values, lengths


def _gather_values(
    value: Any, field: Field, star_keys: Steps, forms: Mapping[str, list[Hashable]], lengths: dict[str, int]
) -> None:
    """Add the canonical values in `value` to `forms`, and the array lengths to `lengths`, by field path.

    `star_keys` has the actual key at each `*` of the field path. The keys are stored with the canonical value.
    """
    if field.rule is None and isinstance(value, dict):
        for key, child in with_nfc_keys(value).items():
            if child is not None:
                below = field.children.get(key) or field.child(key)
                _gather_values(child, below, (*star_keys, key) if below.is_star else star_keys, forms, lengths)
    elif field.rule is None and isinstance(value, list):
        lengths[field.path] = lengths.get(field.path, 0) + len(value)
        for item in value:
            _gather_values(item, field.item, star_keys, forms, lengths)
    elif value is not None and not field.ignored:
        form = canonical(value, field.leaf_rule(value))
        forms[field.path].append((star_keys, form) if star_keys else form)


def _canonicals(values: Iterable[Any], field: Field) -> list[Hashable]:
    return [None if value is None else canonical(value, field.rule or field.leaf_rule(value)) for value in values]


def item_leaves(items: list[Any], field: Field) -> list[ItemLeaves]:
    """Return the leaves of each item of the array at a field."""
    leaves_by_item: list[list[Leaf]] = [[] for _ in items]
    plain = [_gather_leaves(item, field.item, (), leaves) for item, leaves in zip(items, leaves_by_item, strict=True)]
    return [ItemLeaves(frozenset(leaves), each) for leaves, each in zip(leaves_by_item, plain, strict=True)]


def _gather_leaves(value: Any, field: Field, steps: Steps, collected: list[Leaf]) -> bool:
    """Append the leaves below `value` to `collected`. Return whether `value` is plain, as defined in `ItemLeaves`."""
    plain = True
    if value is None or field.ignored:
        pass
    elif field.rule is None and isinstance(value, dict):
        for key, child in with_nfc_keys(value).items():
            below = field.children.get(key) or field.child(key)
            plain &= _gather_leaves(child, below, (*steps, key), collected)
    elif field.rule is None and isinstance(value, list):
        rule = field.array_rule(*value)
        if rule.align == "ordered":
            for index, item in enumerate(value):
                plain &= _gather_leaves(item, field.item, (*steps, index), collected)
        elif items := Counter(item.leaves for item in item_leaves(value, field) if item.leaves):
            plain = False
            collected.append((steps, frozenset(items.items()), 0.0))
    elif field.by_closeness:
        plain = False
        collected.append((steps, object(), 0.0))
    else:
        rule = field.leaf_rule(value)
        collected.append((steps, canonical(value, rule), rule.weight if rule.counts else 0.0))
    return plain


def text_of(value: Any, field: Field) -> str:
    """Return a text that is equal for equal values, in any order of keys and of the items of unordered arrays."""
    parts = []
    if field.rule is None and isinstance(value, dict):
        for key, child in sorted(with_nfc_keys(value).items(), key=itemgetter(0)):
            if child is not None:
                parts.append(f"{key!r}: {text_of(child, field.child(key))}")
        return f"{{{', '.join(parts)}}}"
    if field.rule is None and isinstance(value, list):
        for item in value:
            parts.append(text_of(item, field.item))
        return f"[{', '.join(parts if field.array_rule(*value).align == 'ordered' else sorted(parts))}]"
    return repr(frozen(value))


@dataclass(slots=True)  # mutable for speed: there is one per leaf
class ComparedLeaf:
    """A pair of aligned leaves, one of the ground truth and one of the output. Treat it as immutable.

    `path` is the path of the field, such as `lines[].amount`. `truth_at` and `output_at` are the paths of the leaves as
    keys and array indexes. If a leaf is missing, its value and its path are None. If the ground truth has null there,
    its value is None and its path is set. The outcome is `unscored` only for cases without a ground truth.
    """

    path: str
    rule: FieldRule
    truth: Any
    output: Any
    outcome: LeafOutcome
    truth_at: ValuePath | None
    output_at: ValuePath | None

    @property
    def location(self) -> str:
        """The path in the ground truth, with array indexes. An extra value has its path in the output (`[→2]`)."""
        if self.truth_at is not None:
            return key_path(self.truth_at)
        return key_path(self.output_at or ()).replace("[", "[→")


def compare(truth: Any, output: Any, plan: FieldPlan) -> list[ComparedLeaf]:
    """Align two JSON values and return their compared leaves, as `compare_values` does."""
    return compare_values(MemoizedValue(truth, plan), MemoizedValue(output, plan))


def compare_values(truth: MemoizedValue, output: MemoizedValue) -> list[ComparedLeaf]:
    """Align a ground truth and an output that have the same `FieldPlan`. Return their compared leaves."""
    walk = _Comparison(truth, output)
    walk.compare(truth.value, output.value, truth.plan.field(""), (), ())
    return walk.rows


def _has_null(value: Any, path: ValuePath) -> bool:
    """Return whether a JSON value has null at a path. An absent path has none."""
    with suppress(LookupError, TypeError):  # an index, a key or a container is missing
        return reduce(getitem, path, value) is None
    return False


class _Comparison:
    def __init__(self, truth: MemoizedValue, output: MemoizedValue) -> None:
        self.rows: list[ComparedLeaf] = []
        self._truth = truth
        self._output = output

    def compare(self, truth: Any, output: Any, field: Field, truth_at: ValuePath, output_at: ValuePath) -> None:
        """Append the compared leaves of a field to `rows`, with one stack frame per level of nesting."""
        if field.rule is None and (isinstance(truth, _CONTAINERS) or isinstance(output, _CONTAINERS)):
            if isinstance(truth, _OBJECT) and isinstance(output, _OBJECT):
                truths, outputs = truth or {}, output or {}
                if keys_by_nfc_name(truths) or keys_by_nfc_name(outputs):
                    return self._compare_respelt(truths, outputs, field, truth_at, output_at)
                children = field.children
                for key in truths if truths.keys() >= outputs.keys() else {**truths, **outputs}:
                    below = children.get(key) or field.child(key)
                    self.compare(truths.get(key), outputs.get(key), below, (*truth_at, key), (*output_at, key))
            elif isinstance(truth, _ARRAY) and isinstance(output, _ARRAY):
                truth_items, output_items = truth or [], output or []
                for i, j in self._align(truth_items, output_items, field):
                    truth_item, item_truth_at = (None, truth_at) if i is None else (truth_items[i], (*truth_at, i))
                    output_item, item_output_at = (None, output_at) if j is None else (output_items[j], (*output_at, j))
                    self.compare(truth_item, output_item, field.item, item_truth_at, item_output_at)
            else:  # different kinds: the truth is missing, the output is extra
                self.compare(truth, None, field, truth_at, output_at)
                self.compare(None, output, field, truth_at, output_at)
        elif field.ignored:
            pass
        elif truth is not None and output is not None:
            rule = field.rule or field.leaf_rule(truth)
            is_identical = truth == output and truth.__class__ is output.__class__ and truth.__class__ in _SCALARS
            outcome: LeafOutcome = "right" if is_identical or equal(truth, output, rule) else "wrong"
            self.rows.append(ComparedLeaf(field.path, rule, truth, output, outcome, truth_at, output_at))
        elif truth is not None:
            self.rows.append(ComparedLeaf(field.path, field.leaf_rule(truth), truth, None, "missing", truth_at, None))
        elif output is not None:
            is_null = len(truth_at) == len(output_at) and _has_null(self._truth.value, truth_at)  # not an extra item
            null_at, rule = truth_at if is_null else None, field.leaf_rule(output)
            self.rows.append(ComparedLeaf(field.path, rule, None, output, "extra", null_at, output_at))
        return None

    def _compare_respelt(
        self, truth: dict[str, Any], output: dict[str, Any], field: Field, truth_at: ValuePath, output_at: ValuePath
    ) -> None:
        truth_keys, output_keys = keys_by_nfc_name(truth), keys_by_nfc_name(output)
        truths, outputs = rename_keys(truth, truth_keys), rename_keys(output, output_keys)
        for name in {**truths, **outputs}:
            key_in_truth = (*truth_at, truth_keys.get(name, name))
            key_in_output = (*output_at, output_keys.get(name, name))
            self.compare(truths.get(name), outputs.get(name), field.child(name), key_in_truth, key_in_output)

    def _align(self, truth: list[Any], output: list[Any], field: Field) -> Iterable[Pair]:
        rule = field.array_rule(*truth, *output)
        truth_indices, output_indices = range(len(truth)), range(len(output))
        if not truth or not output or rule.align == "ordered":
            return zip_longest(truth_indices, output_indices)
        if pairs_by_best(rule, field):
            return self._assign(truth_indices, output_indices, truth, output, field)
        truth_ids = self._truth.once(identities, truth, field, rule)
        output_ids = self._output.once(identities, output, field, rule)
        pairs: list[Pair] = []
        for truth_group, output_group in _equal_groups(enumerate(truth_ids), enumerate(output_ids)):
            one_each = len(truth_group) < 2 and len(output_group) < 2
            if one_each or rule.align == "set":
                pairs += zip_longest(truth_group, output_group)
            else:  # several items with one key are paired by their other fields
                pairs += self._assign(truth_group, output_group, truth, output, field)
        return pairs

    def _assign(
        self, rows: Sequence[int], columns: Sequence[int], truth: list[Any], output: list[Any], field: Field
    ) -> Iterable[Pair]:
        """Pair equal items, and then the most similar items. Return pairs of indexes, with None for a missing item."""
        if not rows or not columns or len(rows) == len(columns) == 1:
            return zip_longest(rows, columns)
        truth_leaves = self._truth.once(item_leaves, truth, field)
        output_leaves = self._output.once(item_leaves, output, field)
        equal_items = _equal_groups(
            ((index, truth_leaves[index].leaves) for index in rows),
            ((index, output_leaves[index].leaves) for index in columns),
        )

        def truth_text(index: int) -> str:
            return self._truth.once(text_of, truth[index], field.item)

        def output_text(index: int) -> str:
            return self._output.once(text_of, output[index], field.item)

        partners: dict[int, int] = {}
        for truth_group, output_group in equal_items:
            if truth_group and output_group:
                if len(truth_group) > 1 or len(output_group) > 1:
                    truth_group.sort(key=truth_text)
                    output_group.sort(key=output_text)
                partners.update(zip(truth_group, output_group, strict=False))
        paired = set(partners.values())
        truth_rest = sorted((index for index in rows if index not in partners), key=truth_text)
        output_rest = sorted((index for index in columns if index not in paired), key=output_text)
        if truth_rest and output_rest:
            weights = [
                [self._matched(truth_leaves[i], output_leaves[j], truth[i], output[j], field.item) for j in output_rest]
                for i in truth_rest
            ]
            partners |= {truth_rest[row]: output_rest[column] for row, column in heaviest(weights).items()}
            paired = set(partners.values())
        return [*((i, partners.get(i)) for i in rows), *((None, j) for j in columns if j not in paired)]

    def _matched(self, a: ItemLeaves, b: ItemLeaves, truth: Any, output: Any, field: Field) -> float:
        if a.plain and b.plain:
            return fsum([weight for _, _, weight in a.leaves & b.leaves])
        walk = _Comparison(self._truth, self._output)
        walk.compare(truth, output, field, (), ())
        return counted_weight(walk.rows)[0]


def _equal_groups(
    truth: Iterable[tuple[int, Hashable]], output: Iterable[tuple[int, Hashable]]
) -> Iterable[tuple[list[int], list[int]]]:
    """Group items by identity. Return the pair (indexes in truth, indexes in output) of each identity."""
    groups: dict[Hashable, tuple[list[int], list[int]]] = {}
    for index, identity in truth:
        groups.setdefault(identity, ([], []))[0].append(index)
    for index, identity in output:
        groups.setdefault(identity, ([], []))[1].append(index)
    return groups.values()


def heaviest(weights: list[list[float]]) -> dict[int, int]:
    """Assign columns to rows with maximum total weight. Return the column by row.

    If there are more rows than columns, some rows are absent. Ties prefer the diagonal.
    """
    if len(weights) > len(weights[0]):
        transposed = heaviest([list(column) for column in zip(*weights, strict=True)])
        return {row: column for column, row in transposed.items()}
    chosen: dict[int, int] = {}  # each row's heaviest column; optimal if all differ
    for row, line in enumerate(weights):
        max_weight = max(line)
        if max_weight > 0:
            chosen[row] = row if line[row] == max_weight else line.index(max_weight)
    columns_used, width = set(chosen.values()), len(weights[0])
    if len(columns_used) == len(chosen):
        free = (column for column in range(width) if column not in columns_used)
        return chosen | {row: next(free) for row in range(len(weights)) if row not in chosen}
    if perm(width, len(weights)) <= _MAX_ENUMERATED_ASSIGNMENTS:  # then all are tried, which spares the import of scipy

        def rank(columns: tuple[int, ...]) -> tuple[float, int]:
            return fsum(map(getitem, weights, columns)), -sum([abs(row - column) for row, column in enumerate(columns)])

        best: tuple[int, ...] = max(permutations(range(width), len(weights)), key=rank)
        return dict(enumerate(best))
    from scipy.optimize import linear_sum_assignment

    tie_break = 1e-6 / (len(weights) * width**2)
    near_diagonal = [
        [weight - tie_break * abs(row - column) for column, weight in enumerate(line)]
        for row, line in enumerate(weights)
    ]
    rows, columns = linear_sum_assignment(near_diagonal, maximize=True)
    return dict(zip(rows.tolist(), columns.tolist(), strict=True))


def counted_weight(rows: Iterable[ComparedLeaf]) -> tuple[float, float, float]:
    """Return the weights for field_level_f1: (right leaves, leaves of the truth, leaves of the output)."""
    weights: dict[int, float] = {}  # key: id of the rule, whose properties are slow
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
