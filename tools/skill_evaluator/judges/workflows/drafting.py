"""Have a model draft a text; `judge rubric` drafts a rubric from a sentence and marks it as unreviewed."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from skill_evaluator.errors import EXIT_INCOMPLETE, JudgeError
from skill_evaluator.files import first_problem, replace_text
from skill_evaluator.identifiers import is_component_name
from skill_evaluator.judges.prompting import questions
from skill_evaluator.judges.prompting.judging import JudgeMode, JudgeTask
from skill_evaluator.judges.prompting.questions import TEXT, TEXTS, Form, form_of, list_of, one_of
from skill_evaluator.judges.prompting.reading import Unscored, last_valid_verdict, text_of
from skill_evaluator.judges.prompting.session import JudgeRunSize, JudgeSession
from skill_evaluator.judges.workflows.requests import JudgeRequest, RubricDraftRequest
from skill_evaluator.library.reading import yaml_text
from skill_evaluator.library.rubrics import USUAL_METHOD, Rubric, RubricLevels
from skill_evaluator.library.scenarios import SLOT
from skill_evaluator.runner.schedule import Call
from skill_evaluator.runner.session import Watch
from skill_evaluator.text import digest

DraftT = TypeVar("DraftT")
HEADER = "# Drafted by a model and not reviewed. Read it, change it, then remove `unreviewed`.\n"
_SCORE: Form = ({"type": "integer", "enum": [1, 2, 3, 4, 5]}, 1)
_LEVEL = form_of({"score": _SCORE, "label": TEXT, "description": TEXT, "characteristics": TEXTS})
_RUBRIC = form_of(
    {
        "name": TEXT,
        "type": one_of(("objective", "subjective"), " or "),
        "description": (TEXT[0], "Whether …"),
        "levels": list_of(_LEVEL),
        "edgeCases": list_of(form_of({"situation": TEXT, "guidance": TEXT})),
        "scoringGuidelines": TEXTS,
    }
)


class NoAnswerError(JudgeError):
    """The model that drafts gave no output (exit code 4)."""

    exit_code = EXIT_INCOMPLETE
    label = ""


def draft_rubric(request: RubricDraftRequest, watch: Watch | None = None) -> JudgeRunSize | None:
    """Have a model draft a rubric and write it; return the size for a dry run.

    Raise JudgeError if the file exists or the output contains no rubric.
    """
    out = request.out
    if out.exists():
        raise JudgeError(f"{out} exists already; name a new file")
    if not request.draft.strip():
        raise JudgeError("--draft is empty: describe what should be judged")
    if out.suffix not in (".yaml", ".yml") or not is_component_name(out.stem):
        raise JudgeError(f"--out {out}: expected a .yaml file named like an id: letters, digits, `.`, `_` and `-`")
    task = draft_task("rubric", out.stem, _RUBRIC, {"wish": request.draft}, request.seed)
    judge_request = JudgeRequest(
        judges=(request.judge,),
        seed=request.seed,
        max_cost=request.max_cost,
        dry_run=request.dry_run,
        config=request.config,
    )
    rubric = draft(judge_request, task, lambda value: _rubric_of(value, out.stem), watch)
    if isinstance(rubric, JudgeRunSize):
        return rubric
    text = yaml_text(rubric.model_dump(mode="json", exclude_defaults=True))
    replace_text(out, f"# yaml-language-server: $schema=../schemas/rubric.json\n{HEADER}{text}")
    return None


def _rubric_of(value: Any, name: str) -> Rubric:
    drafted = RubricLevels.model_validate(value)
    if sorted(level.score for level in drafted.levels) != [1, 2, 3, 4, 5] or not drafted.edgeCases:
        raise ValueError("expected the levels 1 to 5, each once, and at least one edge case")
    primary = USUAL_METHOD[drafted.type or "objective"]
    further = ["position_swap", "ties_allowed"] if primary == "pairwise_comparison" else ["evidence_required"]
    method = {"primary": primary, "bias_mitigations": ["require_justification_first", *further]}
    drafted = RubricLevels.model_validate({**drafted.model_dump(), "scale": "1-5", "method": method})
    return drafted.rubric(name).model_copy(update={"unreviewed": True})


def draft_task(mode: JudgeMode, name: str, form: Form, texts: Mapping[str, str], seed: int) -> JudgeTask:
    """Build the question to a model that drafts a value of this form; `texts` describe the value."""
    prompt, wish = questions.load_prompt(mode), digest("".join(texts.values()))
    mark = questions.mark_of(seed, wish)
    question = questions.make_question("draft", prompt, {"slot": SLOT}, texts, form, mark)
    items = {"draft": wish}
    return JudgeTask(mode=mode, rubric=wish, criteria=[name], prompts=[prompt], items=items, questions=[question])


def draft(
    request: JudgeRequest, task: JudgeTask, read: Callable[[Any], DraftT], watch: Watch | None
) -> DraftT | JudgeRunSize:
    """Call a model and read its draft; return the size for a dry run. `read` raises ValueError for an invalid draft.

    Raise NoAnswerError if the call failed, and JudgeError if the output contains no valid draft.
    """
    session = JudgeSession.of(request, watch)
    if request.dry_run:
        return session.size(task)
    (part,) = session.ask(task).runs

    def check(value: Any) -> DraftT | Unscored:
        try:
            return read(value)
        except ValueError as problem:
            detail = first_problem(problem) if isinstance(problem, ValidationError) else str(problem)
            return Unscored(reason="wrong_format", detail=detail)

    text = text_of(part.answers.get(Call("draft", 0)))
    drafted = last_valid_verdict(text, check) if isinstance(text, str) else text
    if not isinstance(drafted, Unscored):
        return drafted
    if drafted.reason == "not_answered":
        reason = str(part.stopped) if part.stopped else drafted.detail
        raise NoAnswerError(f"{request.judges[0]} gave no answer: {reason}")
    noun = "rubric" if task.mode == "rubric" else "family of scenarios"
    raise JudgeError(f"the answer contains no {noun}: {drafted.reason}: {drafted.detail}")
