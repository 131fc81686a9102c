"""Which commit a file or folder is of. The only importer of git, late: only a finished run asks."""

from pathlib import Path


def commit_of(path: Path) -> str | None:
    """The last commit that touched a path, `-dirty` when it was changed since; None outside git or never committed."""
    import git

    try:
        repository = git.Repo(path if path.is_dir() else path.parent, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        return None
    with repository:
        place = str(path.resolve())
        commit = repository.git.log("-1", "--format=%H", "--", place) if repository.head.is_valid() else ""
        if not commit:
            return None
        return f"{commit}-dirty" if repository.git.status("--porcelain", "--", place) else commit
