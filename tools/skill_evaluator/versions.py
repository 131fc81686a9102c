"""Which commit a file or folder is of. The only importer of git, late: only a finished run asks."""

import os
from pathlib import Path


def commit_of(path: Path) -> str | None:
    """The last commit that touched a path, `-dirty` when it was changed since; None outside git or never committed.

    None also where git is not installed or refuses the repository (it belongs to another user): a paid run must not
    be lost over it.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # else the import fails where git is not installed
    import git

    path = path.resolve()
    try:
        repository = git.Repo(path if path.is_dir() else path.parent, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        return None
    with repository:
        place = f":(literal){path}"
        try:
            commit = repository.git.log("-1", "--format=%H", "--", place) if repository.head.is_valid() else ""
            dirty = commit and repository.git.status("--porcelain", "--", place)
        except git.CommandError:
            return None
        return f"{commit}-dirty" if dirty else commit or None
