"""Arbitrary JSON values for property tests, and the number of their examples."""

import random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

thorough = settings(suppress_health_check=[HealthCheck.too_slow])  # as many examples as the profile says
quick = settings(thorough, max_examples=max(10, thorough.max_examples // 3))

# Text as JSON may carry it: lone surrogates, combining marks and control characters included.
_TEXT = st.text(st.characters(exclude_categories=()), max_size=6)
_NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, 1, 1.0, -0.0, 2**53 + 1, 1e308, 10**400])
)
scalars = st.none() | st.booleans() | _NUMBERS | _TEXT | st.sampled_from(["a", "b", "1", "e\u0301", "é"])
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc") | _TEXT, inner, max_size=3),
    max_leaves=8,
)


def with_keys_reordered(value: Any, seed: int) -> Any:
    """Return the same value with the keys of its objects in another order."""
    dice = random.Random(seed)

    def reordered(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: reordered(part[key]) for key in dice.sample(list(part), len(part))}
        return [reordered(item) for item in part] if isinstance(part, list) else part

    return reordered(value)
