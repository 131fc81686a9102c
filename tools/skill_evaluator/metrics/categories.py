"""How well are the labels of a category told apart, the rare ones as much as the common?"""

from collections.abc import Mapping


def macro_f1(confusion: Mapping[tuple[str | None, str | None], int]) -> float | None:
    """Mean over labels of 2·TP ÷ (2·TP + FP + FN), from counts of (truth, output); None stands for no label.

    The labels are those that occur in truth or output. «No label» is not one of them: a label missed is a false
    negative of that label, one invented a false positive. Range 0 to 1, 1 is best; undefined without labels.
    Opitz and Burst 2019, https://arxiv.org/abs/1911.03347 (the mean of F1 scores).

    >>> round(macro_f1({("sale", "sale"): 3, ("sale", "refund"): 1, ("refund", None): 1}), 3)
    0.429
    """
    labels = {label for pair in confusion for label in pair if label is not None}
    return sum(_f1(label, confusion) for label in labels) / len(labels) if labels else None


def _f1(label: str, confusion: Mapping[tuple[str | None, str | None], int]) -> float:
    given = sum(count for (truth, output), count in confusion.items() for one in (truth, output) if one == label)
    return 2 * confusion.get((label, label), 0) / given
