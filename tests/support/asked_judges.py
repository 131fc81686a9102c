"""A library whose recorded model is a judge: a rubric, items, and the judge's answers, written shortly."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skill_evaluator.library.rubrics import Rubric

from tests.support.library import REPLAY, Ended, Library, journal, read
from tests.support.rubrics import some_criterion
from tests.support.vendors import KEY, entry

JUDGE = "recorded"
RUBRIC = "rubric.yaml"
ITEMS = "items.jsonl"
QUOTE = "The sum is 12."


def rubric_of(*criteria: Mapping[str, Any]) -> Rubric:
    return Rubric.model_validate({"criteria": [some_criterion(**criterion) for criterion in criteria or ({},)]})


def method(primary: str = "direct_scoring", *mitigations: str) -> dict[str, Any]:
    return {"primary": primary, "bias_mitigations": list(mitigations), "confidence_threshold": 0.8}


def written(score: Any = 4, /, **changed: Any) -> dict[str, Any]:
    """What a judge writes on a criterion that is scored, in the order that is demanded."""
    usual = {"evidence": [QUOTE], "justification": "It adds up.", "score": score, "suggestion": "", "confidence": 0.9}
    return {key: value for key, value in {**usual, **changed}.items() if value != "absent"}


def compared(winner: Any = "first", /, **changed: Any) -> dict[str, Any]:
    """What a judge writes on a criterion by which two outputs are compared."""
    usual = {
        "evidence_first": [QUOTE],
        "evidence_second": ["no sum"],
        "justification": "It adds up.",
        "winner": winner,
        "confidence": 0.9,
    }
    return {key: value for key, value in {**usual, **changed}.items() if value != "absent"}


def answer(**criteria: Any) -> str:
    return json.dumps({"criteria": criteria})


class JudgingLibrary(Library):
    """`judge …` is called in this process on `rubric.yaml` and `items.jsonl`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.rubric()
        self.models(REPLAY)

    def stand_in(self, root: Path) -> None:
        super().stand_in(root)
        self.judgements = root / "judgements"

    def rubric(self, *criteria: Mapping[str, Any]) -> None:
        self.write(RUBRIC, {"criteria": [some_criterion(**criterion) for criterion in criteria or ({},)]})

    def items(self, *items: Mapping[str, Any]) -> None:
        self.lines(ITEMS, *items)

    def judge(self, command: str, *arguments: str, **options: Any) -> Ended:
        return self.call("judge", command, RUBRIC, "--items", ITEMS, *arguments, **options)

    def outcome(self, command: str, *arguments: str, **options: Any) -> Any:
        """Do the same, which must end well; return its results."""
        done = self.judge(command, *arguments, "--format", "json", **options)
        assert done.code == 0, done.err
        return done.json

    def answered_by(self, *judges: str) -> None:
        """Have replayed judges, each of which answers from a file of its own name."""
        self.models(*({**REPLAY, "id": judge, "params": {"file": f"{judge}.jsonl"}} for judge in judges))

    def asks(self, vendor: str, url: str) -> Mapping[str, str]:
        """Have `model-1` of a vendor as the judge; return the environment with its key."""
        fields = entry(vendor, url).model_dump(mode="json", exclude_defaults=True)
        self.models({"base_url": f"{url}/v1", **fields, "api_key_env": "COMPATIBLE_KEY"})
        return {"COMPATIBLE_KEY": KEY}

    def judging(self) -> Path:
        (folder,) = self.judgements.iterdir()
        return folder

    def judged(self) -> Any:
        return read(self.judging() / "evaluation_results.json")

    def queued(self) -> dict[str, Any]:
        path = self.root / ".evaluator" / "reviews" / "queue.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return {line["item"]: line for line in lines}

    def reasons(self) -> dict[str, list[str]]:
        return {name: line["reasons"] for name, line in self.queued().items()}

    def asked(self) -> list[dict[str, Any]]:
        """The journals of all judges; none before there is a judging."""
        folders: Sequence[Path] = sorted(self.judgements.glob("*/runs/*")) if self.judgements.exists() else []
        return [line for folder in folders for line in journal(folder)]
