"""A judge behind a server that says of each sentence what a test says is true of the output."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.chat_server import Asked, Reply

Truth = Callable[[str, str, int], bool]
"""Of an output and a sentence, and how often that is asked by now, whether a judge says yes."""


def sentences_of(user: str) -> tuple[str, dict[str, str]]:
    """The output that a question shows, and its sentences by number."""
    inside = {name: user.partition(f"<judged_{name} ")[2].partition(f"\n</judged_{name} ")[0] for name in PARTS}
    output, sentences = (text.partition("\n")[2] for text in inside.values())
    return output, dict(line.split(". ", 1) for line in sentences.splitlines())


PARTS = ("output", "sentences")


def verdicts(numbered: Mapping[str, bool]) -> str:
    """A judge's whole answer."""
    return json.dumps(
        {
            "sentences": {
                key: {"evidence": "as it says", "holds": "yes" if one else "no"} for key, one in numbered.items()
            }
        }
    )


def is_question(body: Mapping[str, Any]) -> bool:
    """Whether a request is put to the judge of sentences."""
    return "<judged_sentences " in body["messages"][-1]["content"]


def judging(truth: Truth) -> Callable[[Asked], Reply]:
    """What a server replies as that judge."""
    times: dict[tuple[str, str], int] = {}

    def reply(asked: Asked) -> Reply:
        output, sentences = sentences_of(asked.body["messages"][-1]["content"])
        for sentence in sentences.values():
            times[output, sentence] = times.get((output, sentence), 0) + 1
        said = {key: truth(output, one, times[output, one]) for key, one in sentences.items()}
        return Reply(text=verdicts(said))

    return reply
