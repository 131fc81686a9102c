"""A git repository, read and written by its plumbing: no work tree and no index of anybody's is touched.

The only importer of git, late: most commands never ask it anything.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skill_evaluator.errors import GitError

if TYPE_CHECKING:
    from git import Repo

_BOT = "github-actions[bot]"
_BOT_EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"
_IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", _BOT), ("EMAIL", _BOT_EMAIL))
}
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_REJECTED = re.compile(r"^!\t.*\[(?:remote )?rejected\] \((.*)\)", re.MULTILINE)
_MOVED = re.compile(r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to update ref|incorrect old value")
_NO = 1  # how git ends that was asked a question; when it cannot or will not answer, it ends otherwise


class Repository:
    """The repository that a path is in. Paths of files in it are relative to its `root`, with `/` between."""

    def __init__(self, path: Path) -> None:
        """Open it; raises GitError where there is none, or git refuses it."""
        git = _git()
        if not git.GIT_OK:
            raise GitError("git is not installed, or not in PATH")
        try:
            self._repo: Repo = git.Repo(path.resolve(), search_parent_directories=True)
        except (git.InvalidGitRepositoryError, git.NoSuchPathError):
            raise GitError(f"{path} is not in a git repository; run this in a clone") from None
        if self._repo.working_tree_dir is None:
            raise GitError(f"{path} is a bare repository; run this in a clone of it")
        self.root = Path(self._repo.working_tree_dir)

    def commit(self, ref: str) -> str | None:
        """The commit a name stands for; None for one that is empty, all zeros or not here (a force push lost it).

        Raises GitError when git refuses the repository (it belongs to another user).
        """
        if not ref.strip("0") or ref.startswith("-"):
            return None
        try:
            return self._text("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").strip()
        except GitError as problem:
            if problem.code != _NO:
                raise
            return None

    def main_branch(self) -> str:
        """The branch that others start from: as the remote calls it, else `main` if there is one, else the current."""
        named = self._symbolic("refs/remotes/origin/HEAD")
        if named is not None:
            return named.removeprefix("origin/")
        if self._text("for-each-ref", "refs/heads/main", "refs/remotes/origin/main"):
            return "main"
        return self._symbolic("HEAD") or "main"

    def _symbolic(self, name: str) -> str | None:
        """The branch that a name points to; None where it points to none."""
        try:
            return self._text("symbolic-ref", "--quiet", "--short", name).strip()
        except GitError:
            return None

    def place(self, path: Path) -> str:
        """A path as git names it; raises GitError for one outside of the repository."""
        try:
            return path.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise GitError(f"{path} is outside of the repository {self.root}") from None

    def files(self, commit: str, folder: str) -> dict[str, str]:
        """Every file below a folder at a commit: path → blob."""
        below = [] if folder in ("", ".") else ["--", f"{folder}/"]
        listed = self._text("ls-tree", "-r", "-z", "--full-tree", commit, *below)
        entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
        return {path: mode.split()[2] for mode, _, path in entries if mode.split()[1] == "blob"}

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """What is in each blob."""
        wanted = list(dict.fromkeys(blobs))
        if not wanted:
            return {}
        stream: bytes = self._run("cat-file", "--batch", given="".join(f"{blob}\n" for blob in wanted).encode())
        found, at = {}, 0
        for blob in wanted:
            end = stream.index(b"\n", at)
            size = int(stream[at:end].split()[2])
            found[blob] = stream[end + 1 : end + 1 + size]
            at = end + size + 2
        return found

    def fetch(self, remote: str, branch: str) -> str | None:
        """The commit a remote's branch is at now, brought here; None when it has no such branch."""
        here = f"refs/remotes/{remote}/{branch}"
        how = ("--quiet", "--no-tags", "--no-auto-maintenance", "--force")
        try:
            self._run("fetch", *how, remote, f"refs/heads/{branch}:{here}")
        except GitError as problem:
            if "couldn't find remote ref" not in str(problem):
                raise
            return None
        return self.commit(here)

    def is_ancestor(self, commit: str, other: str) -> bool:
        """Whether `other` has `commit` in its history (or is it)."""
        try:
            self._run("merge-base", "--is-ancestor", commit, other)
        except GitError as problem:
            if problem.code != _NO:
                raise
            return False
        return True

    def add(self, parents: Sequence[str], files: Mapping[str, bytes], message: str) -> str | None:
        """A commit: the tree of its last parent (none: a first commit) with files added or replaced.

        None when that changes nothing of that parent.
        """
        base = parents[-1] if parents else None
        with tempfile.TemporaryDirectory(prefix="skill-evaluator-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            if base is not None:
                self._run("read-tree", base, env=index)
            blobs = self._stored(files.values(), Path(folder))
            lines = [f"100644 {blob}\t{path}\0" for path, blob in zip(files, blobs, strict=True)]
            self._run("update-index", "-z", "--index-info", given="".join(lines).encode(), env=index)
            tree = self._text("write-tree", env=index).strip()
        if base is not None and tree == self._text("rev-parse", f"{base}^{{tree}}").strip():
            return None
        onto = [word for parent in parents for word in ("-p", parent)]
        return self._text("commit-tree", tree, *onto, "-m", message, env=_IDENTITY).strip()

    def _stored(self, contents: Iterable[bytes], folder: Path) -> list[str]:
        """The blobs of some contents, by one command however many they are; `folder` takes them meanwhile."""
        names = []
        for number, content in enumerate(contents):
            names.append(str(folder / f"{number}"))
            Path(names[-1]).write_bytes(content)
        written = self._run("hash-object", "-w", "--no-filters", "--stdin-paths", given="\n".join(names).encode())
        return written.decode().split()

    def push(self, remote: str, commit: str, branch: str) -> bool:
        """Move a remote's branch forward to a commit; False when somebody else moved it since it was fetched.

        Raises GitError when the remote refuses for another reason (no permission, a protected branch).
        """
        try:
            self._run("push", "--porcelain", remote, f"{commit}:refs/heads/{branch}")
        except GitError as problem:
            reason = _REJECTED.search(problem.output)
            if reason is None or not _MOVED.search(reason[1]):
                raise GitError(
                    f"cannot push to {branch} of {remote}: {reason[1] if reason else problem}; see docs/github.md on "
                    "permissions and protected branches"
                ) from None
            return False
        return True

    def _text(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        return self._run(*arguments, env=env).decode("utf-8", "surrogateescape")

    def _run(self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """What one git command printed; raises GitError."""
        with tempfile.TemporaryFile() as stdin:
            stdin.write(given)
            stdin.seek(0)
            options: dict[str, Any] = {"with_extended_output": True, "with_exceptions": False}
            code, printed, said = self._repo.git.execute(
                ["git", *arguments],
                istream=stdin,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env={"GIT_TERMINAL_PROMPT": "0", **(env or {})},
                **options,
            )
        if code:
            complaint = _CREDENTIALS.sub("", said if isinstance(said, str) else said.decode("utf-8", "replace"))
            output = printed.decode("utf-8", "replace")
            raise GitError(f"git {arguments[0]} failed: {complaint}", output=output, code=code)
        return bytes(printed)


def within(folder: str, name: str) -> str:
    """The path of what is in a folder, as git names it.

    >>> within("components", "a"), within(".", "a")
    ('components/a', 'a')
    """
    return name if folder in ("", ".") else f"{folder}/{name}"


def commit_of(path: Path) -> str | None:
    """The last commit that touched a path, `-dirty` when it was changed since; None outside git or never committed.

    None also where git is not installed or refuses the repository (it belongs to another user): a paid run must not
    be lost over it.
    """
    git = _git()
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


def _git() -> Any:
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")  # else the import fails where git is not installed
    import git

    return git
