"""API keys: read from the environment here only, and struck out of whatever a server says.

Everything that comes from outside passes `Redactor` before it reaches a journal, a record or a screen.
"""

import os
from collections.abc import Iterable

from skill_evaluator.errors import ConfigError

_MASK = "[redacted]"
_SHORTEST = 8  # a shorter «key» is a placeholder, and striking it out would damage honest text


def read_key(variables: Iterable[str]) -> str | None:
    """The first of the variables that is set and not blank; raises ConfigError for what no HTTP header can carry."""
    for variable in variables:
        value = os.environ.get(variable, "").strip()
        if value and not (value.isascii() and value.isprintable()):
            raise ConfigError(f"{variable} holds a line break or a character outside ASCII; set it to the key alone")
        if value:
            return value
    return None


class Redactor:
    """Replaces every known key in a text. Built once per run from the variables any provider may read."""

    def __init__(self, variables: Iterable[str]) -> None:
        values = {os.environ.get(variable, "").strip() for variable in variables}
        self._secrets = sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text with each key struck out."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, _MASK)
        return text
