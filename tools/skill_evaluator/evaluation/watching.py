"""`try --watch`: evaluate a component at each save of its files, under one ceiling for all tries."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from skill_evaluator.display.safe_text import visible
from skill_evaluator.errors import SkillEvaluatorError
from skill_evaluator.evaluation.request import EvaluationRequest
from skill_evaluator.evaluation.story import Evaluation
from skill_evaluator.library.components import places_of

MAX_CALLS = 200  # of all tries, if the request has no ceiling
_STEP_MS = 300  # an editor writes in steps
_IGNORED = re.compile(r"/evals/(results|records)/|/(README\.md|CHANGELOG\.md|leaderboard\.json|\.[^/]*|[^/]*~)$")


def tries(request: EvaluationRequest, evaluate: Callable[[EvaluationRequest], Evaluation]) -> Iterator[Evaluation]:
    """Yield the evaluation of a component now and after each save, until the ceiling is reached.

    Print an error on stderr and wait for the next save. Raise it if none of the component's files is found.
    """
    places = [request.components / request.skill, places_of(Path(), request.skill, request.fixtures, "cases")[0].parent]
    if request.max_calls is None and request.max_cost is None:
        request = replace(request, max_calls=MAX_CALLS)
    while True:
        saves = _watch(places)
        try:
            done = evaluate(request)
        except SkillEvaluatorError as problem:
            if not any(place.exists() for place in places):
                raise
            print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        else:
            yield done
            request, component = done.take_from(request), done.inputs.component
            stopped = [run.record.stopped or "" for run in done.finished]
            if request.max_calls == 0 or any(reason.startswith(("max_calls", "max_cost")) for reason in stopped):
                return
            files = (component.rows.path, *component.files)
            if outside := [file for file in files if not any(map(file.is_relative_to, places))]:
                places += outside
                saves = _watch(places)
        left = f"{request.max_calls} calls" if request.max_cost is None else f"${request.max_cost:.2f}"
        print(f"waiting for a save; {left} left, Ctrl-C ends", file=sys.stderr, flush=True)
        next(filter(None, saves))


def _watch(places: Sequence[Path]) -> Iterator[object]:
    """Begin to watch files, so that a save during a try counts; yield nothing or what was saved."""
    from watchfiles import watch

    def is_relevant(_: object, path: str) -> bool:
        return not _IGNORED.search(path) and not Path(path).is_dir()

    existing = [place for place in places if place.exists()]
    saves = watch(*existing, watch_filter=is_relevant, step=_STEP_MS, rust_timeout=_STEP_MS, yield_on_timeout=True)
    next(saves)
    return saves
