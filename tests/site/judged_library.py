"""A library with a judge run of each kind, so that every part of the judges' page has content.

Both judges are one server on the loopback with predictable answers: a candidate that lost words is worse, the output
with the quotation or sometimes the first output wins, and scores depend on the text.
"""

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.judges.review.queue import ReviewQueue

from tests.judges.review.reviews import label
from tests.support.asked_judges import ITEMS, QUOTE, RUBRIC, JudgingLibrary, compared, method, written
from tests.support.asked_judges import answer as said
from tests.support.chat_server import Asked, Reply, chat_server
from tests.support.judged import answer
from tests.support.library import REPLAY, SKILL, read

HALLS = [
    {
        "id": f"hall-{place}",
        "stratum": "short" if place % 2 else "long",
        "human": 1 + place % 2,
        "input": "Describe the hall in bullet points.",
        f"output_{1 + place % 2}": f"- It opened in {1950 + place}.\n- It is {30 + place} metres long.\n- {QUOTE}",
        f"output_{2 - place % 2}": f"- It is hall {place}.\n- Dogs are not allowed in it.",
    }
    for place in range(10)
]
CASES = tuple(f"notice-{place}" for place in range(4))
DIMENSIONS = ("factuality", "completeness", "format_adherence")
TEXT = re.compile(r"<judged_(\w+) \w+>\n(.*?)\n</judged_\1 ", re.DOTALL)


class JudgedSite(JudgingLibrary):
    """A library with two runs of a component, a judge run of each mode, and labels of two reviewers."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        for case_id in CASES:
            self.case(case_id)
        self.rubric({"method": method("pairwise_comparison"), "type": "subjective"})
        self.write("pairs.yaml", read(self.root / RUBRIC))
        self.rubric()

    def judge_all(
        self, names: Sequence[str] = ("judge", "vendor/second"), dimensions: Sequence[str] = DIMENSIONS
    ) -> None:
        """Make a judge run of each mode; `dimensions` are those of the regression run."""
        judges = [word for name in names for word in ("--judge", name)]
        with chat_server() as server:
            server.reply = lambda asked: Reply(text=reply(asked, dimensions))
            served = {"provider": "openai", "base_url": server.url, "judge": "strong"}
            self.models(REPLAY, *({"id": name, **served} for name in names))
            before, after = self._run("--model", "recorded"), self._run("--draft", "--model", "recorded", lost=3)
            self.items(*HALLS)
            probes = ("--corrupt", "8", "--probe", "authority")
            self._ask("calibrate", "--labels", ITEMS, "--rubric", "pairs.yaml", *probes, *judges)
            runs = ("--baseline", before, "--candidate", after, "--dimensions", ",".join(dimensions))
            self._ask("regression", *runs, "--review", *judges)
            self._ask("pairwise", "pairs.yaml", "--items", ITEMS, *judges)
            self._ask("score", RUBRIC, "--run", str(self.results / before), *judges)
        self._label()

    def results_of(self, mode: str) -> Any:
        """Return the results of the only judge run of a mode."""
        every = [read(path) for path in self.judgements.glob("*/evaluation_results.json")]
        (results,) = (one for one in every if one["judging"]["mode"] == mode)
        return results

    def _ask(self, *arguments: str) -> None:
        done = self.call("judge", *arguments)
        assert done.code in (0, 3, 4), done.err

    def _run(self, *arguments: str, lost: int = 0) -> str:
        """Evaluate the component and return the run id. The outputs of the first `lost` cases have no year."""
        there = set(self.results.iterdir()) if self.results.is_dir() else set()
        every = [path.name for path in (self.root / "fixtures" / SKILL / "cases").iterdir()]
        texts = {
            case: json.dumps({"title": case, "year": None if case in CASES[:lost] else 2024}, indent=1)
            for case in every
        }
        self.record_answers({(case, index): text for case, text in texts.items() for index in range(2)})
        self.evaluate_here(*arguments)
        (folder,) = (path for path in self.results.iterdir() if path not in there and path.is_dir())
        return folder.name

    def _label(self) -> None:
        """Label three items of the queue as two reviewers, who disagree about the first item."""
        queue = ReviewQueue(folder=self.root / ".evaluator" / "reviews")
        for number, item in enumerate(list(queue.items().values())[:3]):
            for reviewer in ("ada", "ben"):
                answer = "candidate_worse low" if number == 0 and reviewer == "ben" else "same"
                answers = {question.name: answer for question in item.questions}
                queue.label(label(item, reviewer, note="private note", **answers))


def reply(asked: Asked, dimensions: Sequence[str]) -> str:
    """Answer a question of a judge in the form of its mode."""
    texts = dict(TEXT.findall(asked.body["messages"][1]["content"]))
    luck = zlib.crc32("".join(sorted(texts.values())).encode())
    if "candidate" in texts:
        return _regression(texts, luck, dimensions)
    if "first_output" in texts:
        right = QUOTE in texts["first_output"]
        return said(totals=compared("first" if right or luck % 4 == 0 else "second", confidence=0.6 + luck % 4 / 10))
    return said(totals=written(1 + luck % 5, confidence=0.6 + luck % 4 / 10))


def _regression(texts: Mapping[str, str], luck: int, dimensions: Sequence[str]) -> str:
    """Answer `worse` in the second dimension if words or a value are lost, and sometimes if nothing is lost."""
    lost = len(texts["candidate"].split()) < len(texts["baseline"].split()) or "null" in texts["candidate"]
    lost = lost and "null" not in texts["baseline"]
    asked = dimensions if "notice" in texts["candidate"] else DIMENSIONS
    quoted = ("worse", "high" if lost else "low", texts["baseline"], "Late fees rise to 0.40 a day")
    worse = {asked[1]: quoted} if lost or luck % 9 == 0 else {}
    return json.dumps(answer({**dict.fromkeys(asked, "same"), **worse}))
