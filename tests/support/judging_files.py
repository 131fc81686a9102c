"""Files of judgings: what is judged, what judges answered, what people said, all in order, for a test to spoil."""

import json
import shutil
from collections.abc import Callable, Iterator

from skill_evaluator.judges.calibration.corruption import corrupt
from skill_evaluator.judges.prompting.items import OutputItem

from tests.support.asked_judges import QUOTE, answer, compared, method, written
from tests.support.judged import answer as regression
from tests.support.library import CASES, Ended, Library
from tests.support.reviews import label_queue
from tests.support.rubrics import some_criterion

RUBRIC, PAIRS_RUBRIC = ".evaluator/rubrics/one.yaml", ".evaluator/rubrics/pairs.yaml"
JUDGE = ("--judge", "recorded")
SCORE = ("judge", "score", RUBRIC, "--items", "outputs.jsonl")
COMPARE = ("judge", "pairwise", PAIRS_RUBRIC, "--items", "pairs.jsonl")
REGRESSION = ("judge", "regression", "--items", "corrupted.jsonl", *JUDGE)
PINNED = ("judge", "regression", "--candidate", "NEWEST", *JUDGE)
BATCH = ("judge", "calibrate", "--batch", "regressions.json", "--labels", "found.jsonl")
SCORED = ("judge", "calibrate", "--labels", "scored.jsonl", "--verdicts", "scores.jsonl")
EXPORT = ("review", "export", "--labels", "new.jsonl")
Commands = tuple[tuple[str, ...], ...]
JUDGING_FILES: tuple[tuple[str, str, Commands], ...] = (
    ("rubric that is asked by", RUBRIC, ((*SCORE, *JUDGE), (*SCORE, *JUDGE, "--dry-run"))),
    (
        "levels that are asked by",
        ".evaluator/rubrics/levels.json",
        (("judge", "score", ".evaluator/rubrics/levels.json", *SCORE[3:], *JUDGE),),
    ),
    ("outputs to score", "outputs.jsonl", ((*SCORE, *JUDGE),)),
    ("pairs to compare", "pairs.jsonl", ((*COMPARE, *JUDGE), ("review", "add", "pairs.jsonl"))),
    ("corrupted pairs", "corrupted.jsonl", (REGRESSION, ("review", "add", "corrupted.jsonl"))),
    ("judging", "judgements/*/judging.json", ((*SCORE, *JUDGE, "--resume"),)),
    ("judging's manifest", "judgements/*/runs/*/manifest.json", ((*SCORE, *JUDGE, "--resume"),)),
    ("judging's journal", "judgements/*/runs/*/replicates.jsonl", ((*SCORE, *JUDGE, "--resume"),)),
    ("regressions found", "regressions.json", (BATCH,)),
    (
        "people's findings",
        "found.jsonl",
        (BATCH,),
    ),
    ("outputs that people scored", "scored.jsonl", (SCORED,)),
    ("judges' scores", "scores.jsonl", (SCORED,)),
    ("pinned outputs", "components/*/evals/pinned/*.json", (("lint",), PINNED)),
    ("review queue", ".evaluator/reviews/queue.jsonl", (EXPORT,)),
    ("review labels", ".evaluator/reviews/labels.jsonl", (EXPORT,)),
)
_OUTPUTS = [
    OutputItem(id=f"g{n}", input="Summarize.", output=f"- It opened in {1980 + n}.\n- Dogs are not allowed in it.\n")
    for n in range(4)
]
_CORRUPTED = corrupt(_OUTPUTS, 6, seed=0)
_SAME = json.dumps(regression(dict.fromkeys(("factuality", "completeness", "format_adherence"), "same")))


def judge_answers() -> Iterator[tuple[tuple[str, int], str]]:
    """Yield what the judge answers to everything that is asked of it here."""
    for n in range(2):
        yield (f"o{n}/direct", 0), answer(**{name: written(3) for name in ("totals", "levels")})
        for order, winner in ((1, "first"), (2, "second")):
            yield (f"p{n}/{order}", 0), answer(totals=compared(winner))
    for name in (*CASES, *(pair.id for pair in _CORRUPTED)):
        for order in (1, 2):
            yield (f"{name}/{order}", 0), _SAME


def people_write(library: Library) -> None:
    """Write what a person prepares: items, labels, the rubric of pairs."""
    library.write(PAIRS_RUBRIC, {"criteria": [some_criterion(method=method("pairwise_comparison"))]})
    texts = {"input": "Add 5 and 7.", "output_1": QUOTE, "output_2": "There is no sum here."}
    library.lines("outputs.jsonl", *({"id": f"o{n}", "input": f"Add {n}.", "output": QUOTE} for n in range(2)))
    library.lines("pairs.jsonl", *({"id": f"p{n}", **texts, "input": f"Add {n}."} for n in range(2)))
    library.lines("scored.jsonl", *({"id": f"o{n}", "scores": {"totals": n + 2}} for n in range(2)))
    library.lines(
        "scores.jsonl", *({"id": f"o{n}", "judge": "recorded", "criterion": "totals", "score": 3} for n in range(2))
    )
    library.lines("corrupted.jsonl", *(pair.model_dump(mode="json") for pair in _CORRUPTED))
    names = ("factuality", "completeness", "format_adherence")
    library.lines("found.jsonl", *({"id": _CORRUPTED[0].id, "dimension": name, "human": "same"} for name in names))


def judges_write(library: Library, done: Callable[..., Ended]) -> None:
    """Leave what the commands write: judgings, results, the queue with labels, pinned outputs."""
    found = json.loads(done(*REGRESSION, "--out", "other", "--format", "json").out)["folder"]
    shutil.copy(library.root / found / "evaluation_results.json", library.root / "regressions.json")
    shutil.rmtree(library.root / "other")
    done(*SCORE, *JUDGE)
    done("judge", "pin", max(path.name for path in library.results.iterdir()))
    done("review", "add", "pairs.jsonl")
    label_queue(library.root, note="hard", overall="1")
