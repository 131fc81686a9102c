"""`try --watch`: evaluate a component at each save of its files, under one ceiling for all tries."""

import re
import sys
from collections.abc import Callable, Iterator
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
    from watchfiles import watch

    cases = places_of(Path(), request.skill, request.fixtures, "cases")[0].parent
    places = [place for place in (request.components / request.skill, cases) if place.exists()]
    if request.max_calls is None and request.max_cost is None:
        request = replace(request, max_calls=MAX_CALLS)
    # It begins to watch before the first try, so that a save during a try counts.
    saves = watch(
        *places,
        watch_filter=lambda _, path: not _IGNORED.search(path) and not Path(path).is_dir(),
        step=_STEP_MS,
        rust_timeout=_STEP_MS,
        yield_on_timeout=True,
    )
    next(saves)
    while True:
        try:
            done = evaluate(request)
        except SkillEvaluatorError as problem:
            if not places:
                raise
            print(f"{problem.label}{visible(str(problem))}", file=sys.stderr)
        else:
            yield done
            request = done.take_from(request)
            stopped = [run.record.stopped or "" for run in done.finished]
            if request.max_calls == 0 or any(reason.startswith(("max_calls", "max_cost")) for reason in stopped):
                return
        left = f"{request.max_calls} calls" if request.max_cost is None else f"${request.max_cost:.2f}"
        print(f"waiting for a save; {left} left, Ctrl-C ends", file=sys.stderr, flush=True)
        next(filter(None, saves))
