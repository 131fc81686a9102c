"""Multiple-choice questions, one on each line of `questions.jsonl`: a path in, questions and the wrong lines out.

Its own module because no other kind of output keeps its cases in one file.
"""

from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from skill_evaluator.errors import FixtureError
from skill_evaluator.files import SizeLimit, first_problem, read_lines
from skill_evaluator.identifiers import ModelPatterns
from skill_evaluator.text import canonical_json, digest, letters_of, normalise

QUESTIONS = "questions.jsonl"
_NO_META = ("id", "question", "options", "answer", "not_applicable")


class Question(BaseModel):
    """One line: a question, its options in the order of their letters, and the letter of the right option."""

    model_config = ConfigDict(frozen=True, extra="allow", str_strip_whitespace=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="the case's id, a slug such as capital-of-france")
    question: str = Field(min_length=1)
    options: tuple[str, ...] = Field(min_length=2, max_length=len(ascii_uppercase))
    answer: str | None = Field(default=None, description="the letter of the right option")
    topic: str | None = None
    why: str | None = Field(default=None, description="why the answer is right, or why the question is asked")
    not_applicable: ModelPatterns = ()

    @field_validator("options")
    @classmethod
    def _refuse_equal_options(cls, options: tuple[str, ...]) -> tuple[str, ...]:
        seen: dict[str, str] = {}
        for letter, option in zip(ascii_uppercase, options, strict=False):
            if not option:
                raise ValueError(f"option {letter} is empty")
            first = seen.setdefault(normalise(option).casefold(), letter)
            if first != letter:
                raise ValueError(f"options {first} and {letter} are the same but for case and white space")
        return options

    @model_validator(mode="after")
    def _refuse_an_answer_that_is_no_option(self) -> "Question":
        if self.answer is not None and self.answer not in tuple(self.letters):
            raise ValueError(f"answer '{self.answer}' is none of the options A to {self.letters[-1]}")
        return self

    @property
    def letters(self) -> str:
        """The letters of the options."""
        return letters_of(self.options)

    @property
    def document(self) -> str:
        """The question, a blank line, and a line an option."""
        lines = (f"{letter}. {option}" for letter, option in zip(self.letters, self.options, strict=True))
        return f"{self.question}\n\n" + "\n".join(lines)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The line's other values, such as topic and why."""
        values = self.model_dump(exclude=set(_NO_META))
        return {name: value for name, value in values.items() if value is not None}

    @property
    def digest(self) -> str:
        """The digest of question, options and answer."""
        return digest(canonical_json([self.question, list(self.options), self.answer]))


def read_questions(path: Path, limit: SizeLimit) -> tuple[list[Question], list[str]]:
    """Read the questions of a file in its order, and say of every other line where it is and what is wrong."""
    questions: list[Question] = []
    problems: list[str] = []
    lines: dict[str, int] = {}
    try:
        for number, value in read_lines(path, FixtureError, limit=limit):
            try:
                question = Question.model_validate(value)
                question.document.encode()
            except ValidationError as problem:
                problems.append(f"{path}:{number}: {first_problem(problem)}")
                continue
            except UnicodeEncodeError:
                problems.append(f"{path}:{number}: half a surrogate pair, which is no text")
                continue
            first = lines.setdefault(question.id, number)
            if first == number:
                questions.append(question)
            else:
                problems.append(f"{path}:{number}: id '{question.id}' is that of line {first}")
    except FixtureError as problem:
        problems.append(str(problem))
    if not questions and not problems:
        problems.append(f'{path} holds no question; add lines of {{"id", "question", "options", "answer"}}')
    return questions, problems
