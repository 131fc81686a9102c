"""How often each letter is the key of a component's questions, and whether one of them is so suspiciously often.

Cases in, counts out. A model that always answers with one letter must not look able because the key has that habit.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skill_evaluator.fixtures import Case
from skill_evaluator.text import letters_of

_ALPHA = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyBalance:
    """Of all questions the fewest and the most options; of those with an answer, how often each letter is the key.

    `expected` is how often it would be if every option were as likely.
    """

    fewest_options: int
    most_options: int
    keys: Mapping[str, int]
    expected: Mapping[str, float]

    @property
    def warnings(self) -> list[str]:
        """One line for each letter that is the key much more often than its share."""
        answered = sum(self.keys.values())
        return [
            f"{letter} is the key of {count} of {answered} questions, where {self.expected[letter]:.1f} are its share; "
            "shuffle the options, or a model that always says it looks able"
            for letter, count in self.keys.items()
            if count > self.expected[letter] and _chance_of_more(count, answered, self.expected[letter]) < _ALPHA
        ]


def key_balance(cases: Sequence[Case]) -> KeyBalance | None:
    """The balance of the questions' keys; None without questions."""
    sizes = [len(case.options) for case in cases]
    if not sizes:
        return None
    answered = [case for case in cases if case.labelled]
    keys = Counter(str(case.truth) for case in answered)
    letters = letters_of(("",) * max(sizes))
    return KeyBalance(
        fewest_options=min(sizes),
        most_options=max(sizes),
        keys={letter: keys[letter] for letter in letters},
        expected={letter: sum(_share(letter, case) for case in answered) for letter in letters},
    )


def _share(letter: str, case: Case) -> float:
    return 1 / len(case.options) if letter in letters_of(case.options) else 0.0


def _chance_of_more(count: int, n: int, expected: float) -> float:
    """The probability of so many or more, by the binomial distribution of that mean."""
    from scipy.special import bdtrc

    return float(bdtrc(count - 1, n, expected / n))
