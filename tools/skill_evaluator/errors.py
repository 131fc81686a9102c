"""The errors that users see, and the exit codes of every command."""

EXIT_OK = 0
EXIT_BUG = 1
EXIT_USER_ERROR = 2
EXIT_REGRESSED = 3
EXIT_INCOMPLETE = 4


class SkillEvaluatorError(Exception):
    """An error that the user can correct; printed as one line, exit code 2."""

    exit_code = EXIT_USER_ERROR
    label = "error: "  # printed before the message

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


def refuse(problem: SkillEvaluatorError) -> None:
    """Raise `problem`. A reader with this function as `on_problem` stops at the first invalid row."""
    raise problem


class InternalError(SkillEvaluatorError):
    """A bug of this program. Its traceback was already printed; exit code 1."""

    exit_code = EXIT_BUG


class ConfigError(SkillEvaluatorError):
    """The configuration, an option or the environment is invalid, or something that a command requires is missing."""


class ComponentError(SkillEvaluatorError):
    """A component's prompt, schema or datasets.json is missing or invalid."""


class FixtureError(SkillEvaluatorError):
    """The cases of a component, or a table of cases, are missing or invalid."""


class NotEvaluatedError(SkillEvaluatorError):
    """A component is skipped: it is excluded, has no reviewed cases, or is a program whose model cannot be switched."""


class RunError(SkillEvaluatorError):
    """A run cannot be started, resumed, scored or explained."""


class LeaderboardError(SkillEvaluatorError):
    """A leaderboard, record or imported file is invalid or of a newer version, or a run to compare is missing."""


class PlanError(SkillEvaluatorError):
    """A plan cannot be made, an artifact is missing, invalid or of another plan, or GitHub fails."""


class AuditError(SkillEvaluatorError):
    """An audit cannot be run, or its table of scores is incomplete or invalid."""


class JudgeError(SkillEvaluatorError):
    """A judge cannot be run or calibrated, or its items, labels or results are invalid."""


class GitError(SkillEvaluatorError):
    """A git command failed or was refused. `output` is its stdout. `code` is its exit code, or None if unknown."""

    def __init__(self, message: str, output: str = "", code: int | None = None) -> None:
        super().__init__(message)
        self.output = output
        self.code = code


class StorageError(SkillEvaluatorError):
    """A file or folder cannot be written (disk full, permissions, quota, lock) or must not be replaced."""
