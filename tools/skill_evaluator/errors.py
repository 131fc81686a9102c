"""The exceptions a user can meet, and the exit codes of every command.

An error says in one line what is wrong, where, and what to do; any other exception that escapes is a bug (exit 1).
"""

EXIT_OK = 0
EXIT_BUG = 1
EXIT_USER_ERROR = 2
EXIT_REGRESSED = 3
EXIT_INCOMPLETE = 4


class SkillEvaluatorError(Exception):
    """Something the user can put right; shown as one line, exit code 2."""

    exit_code = EXIT_USER_ERROR
    label = "error: "  # before the line

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


def refuse(problem: SkillEvaluatorError) -> None:
    """Raise the problem of a table row: the default `on_problem` callback, which skips no invalid row."""
    raise problem


class InternalError(SkillEvaluatorError):
    """A bug, whose traceback has been printed: exit code 1."""

    exit_code = EXIT_BUG


class ConfigError(SkillEvaluatorError):
    """A file under the configuration folder is missing, unreadable or wrong."""


class ComponentError(SkillEvaluatorError):
    """A component's prompt, schema or metric declaration is missing or wrong."""


class FixtureError(SkillEvaluatorError):
    """A case lacks its document, or its ground truth is unusable."""


class NotEvaluatedError(SkillEvaluatorError):
    """A component, or a case of it, is in order and not to be evaluated: it lacks documents, or is excluded."""


class RunError(SkillEvaluatorError):
    """A run folder cannot be resumed or scored as asked."""


class LeaderboardError(SkillEvaluatorError):
    """A leaderboard or record cannot be read, or was written by a newer version."""


class PlanError(SkillEvaluatorError):
    """A plan of evaluations cannot be made, or an artifact does not belong to it."""


class AuditError(SkillEvaluatorError):
    """A stability audit cannot be run as asked, or its table of scores has holes or errors."""


class JudgeError(SkillEvaluatorError):
    """A judge cannot be asked or measured as demanded; or its pairs, verdicts or questions are wrong or changed."""


class GitError(SkillEvaluatorError):
    """git is missing, refuses, or does not know a commit; `output` and `code` are those of a failed command."""

    def __init__(self, message: str, output: str = "", code: int | None = None) -> None:
        super().__init__(message)
        self.output = output
        self.code = code


class StorageError(SkillEvaluatorError):
    """The operating system refused to write (disk full, permissions, quota)."""
