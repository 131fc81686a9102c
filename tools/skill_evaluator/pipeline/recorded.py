"""What the leaderboards in some commits say was measured: the branch itself, and where its records wait or are kept."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from skill_evaluator.errors import LeaderboardError
from skill_evaluator.leaderboard import Recorded, newest_recorded
from skill_evaluator.repository import Repository, within
from skill_evaluator.versions import Bump, Problem, bump

_FILE = "leaderboard.json"


def recorded_boards(
    repository: Repository, refs: Iterable[str], folder: str
) -> tuple[dict[str, dict[str, Recorded]], list[Problem]]:
    """By component and model, the newest version on the leaderboards of any of the commits; one not here is left out.

    A leaderboard that cannot be read is a problem.
    """
    commits = dict.fromkeys(filter(None, (repository.commit(ref) for ref in refs)))
    blobs = [
        (path, blob)
        for commit in commits
        for path, blob in repository.files(commit, folder).items()
        if path == within(folder, f"{PurePosixPath(path).parent.name}/{_FILE}")
    ]
    texts = repository.contents(blob for _, blob in blobs)
    boards: dict[str, dict[str, Recorded]] = {}
    problems: dict[tuple[str, str], Problem] = {}
    for path, blob in dict.fromkeys(blobs):
        try:
            newest = newest_recorded(texts[blob], path)
        except LeaderboardError as problem:
            problems[path, str(problem)] = Problem(file=path, line=1, message=str(problem))
            continue
        board = boards.setdefault(PurePosixPath(path).parent.name, {})
        for model_id, recorded in newest.items():
            known = board.get(model_id)
            if known is None or bump(recorded.version, known.version) is Bump.LOWERED:
                board[model_id] = recorded
    return boards, list(problems.values())
