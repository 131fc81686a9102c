"""`try --watch`: a component is asked again at each save of its files, under one ceiling for all tries."""

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from skill_evaluator.display import number
from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.evaluation.story import Evaluation
from skill_evaluator.library.cases import Case
from skill_evaluator.library.components import places_of
from skill_evaluator.records.record import Record
from skill_evaluator.text import listed

MOST_CALLS = 200  # of all tries, where nobody says how many
_POLL_S = 0.3  # how often files are looked at, and how long nothing is saved before they are read
_ASKED_OF_NOBODY = ("README.md", "CHANGELOG.md", "leaderboard.json")
_RESULTS = re.compile("/evals/(results|records)/")
_ENDS = ("max_calls", "max_cost")

Order = Callable[[Case], int]


def tries(request: EvaluationRequest, ask: Callable[[EvaluationRequest, Order], Evaluation]) -> Iterator[Evaluation]:
    """Yield what comes of a try now and after each save, until the ceiling is reached; tell errors in a line.

    `ask` gets an order of the cases: those that changed since the last try, those that failed in it, the others.
    """
    last: list[Record] = []
    fixtures = places_of(Path(), request.skill, request.fixtures, "cases")[0].parent
    places = [request.components / request.skill, fixtures]
    if request.max_calls is None and request.max_cost is None:
        request = replace(request, max_calls=MOST_CALLS)
    while True:
        seen = _saved(places)
        try:
            done = ask(request, _order_after(last))
        except SkillEvaluatorError as problem:
            print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        else:
            yield done
            before, last = last, [run.record for run in done.finished]
            _print_changes(before, last)
            component = done.inputs.component
            request, places = done.take_from(request), [*places[:2], component.rows.path, *component.files]
            seen = {**_saved(places[2:]), **seen}
            if request.max_calls == 0 or any((record.stopped or "").startswith(_ENDS) for record in last):
                return
        left = f"{request.max_calls} calls" if request.max_cost is None else f"${request.max_cost:.2f}"
        print(f"waiting for a save; {left} left, Ctrl-C ends", file=sys.stderr, flush=True)
        _wait(places, seen)


def _order_after(last: Sequence[Record]) -> Order:
    digests = {case.case_id: case.digest for record in last for case in record.per_case}
    failed = {case.case_id for one in last for case in one.per_case if not all(case.passed(one.primary_metric))}
    return lambda case: 0 if digests.get(case.id) != case.digest else 1 if case.id in failed else 2


def _print_changes(before: Sequence[Record], after: Sequence[Record]) -> None:
    """Print on stderr, model by model, which cases score otherwise than in the last try."""
    scores = {record.model_id: _scores(record) for record in before}
    for record in (record for record in after if record.model_id in scores):
        was, now = scores[record.model_id], _scores(record)
        moved = [f"{name} {number(was.get(name))} → {number(now[name])}" for name in now if was.get(name) != now[name]]
        print(f"{record.model_id}, since the last try: {listed(moved) or 'no score changed'}", file=sys.stderr)


def _scores(record: Record) -> dict[str, float | None]:
    metrics = {case.case_id: case.accuracy.get(record.primary_metric) for case in record.per_case}
    return {name: metric.strict_mean if metric else None for name, metric in metrics.items()}


def _saved(places: Sequence[Path]) -> dict[Path, int]:
    """Return when each file was saved that shapes a try: none of an editor's own, and no results."""
    saved = {}
    for place in places:
        with suppress(OSError):  # an editor takes its own files away meanwhile
            for path in filter(Path.is_file, (place, *place.rglob("*"))):
                passing = path.name in _ASKED_OF_NOBODY or path.name.startswith(".") or path.name.endswith("~")
                if not passing and not _RESULTS.search(path.as_posix()):
                    saved[path] = path.stat().st_mtime_ns
    return saved


def _wait(places: Sequence[Path], seen: dict[Path, int]) -> None:
    """Return once something was saved and nothing more is: an editor writes in steps."""
    before, now = seen, seen
    while now == seen or now != before:
        time.sleep(_POLL_S)
        before, now = now, _saved(places)
