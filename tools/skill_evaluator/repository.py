"""A git repository, accessed by git commands that leave the user's work tree and index unchanged."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from skill_evaluator.errors import GitError
from skill_evaluator.files import storing
from skill_evaluator.processes import child_environment

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
_FETCHED = "refs/fetched"
_FETCH_OPTIONS = ("--quiet", "--no-tags", "--no-auto-maintenance", "--force")
_NO_WORK_TREE = "must be run in a work tree"  # git's own words
_NO_REPOSITORY, _NO_COMMIT = "not a git repository", "does not have any commits yet"
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1", "LANGUAGE": "C", "LC_ALL": "C"}
_warn = cache(lambda message: sys.stderr.write(f"warning: git failed: {message}\n"))  # each warning once
# git would otherwise run programs named in a submodule's configuration
_STATUS = ("--porcelain", "--ignore-submodules=all")
_NO = 1  # git's exit code for "no"; errors have other codes


class Repository:
    """The git repository that contains a path; file paths are relative to its `root`, with `/`."""

    def __init__(self, path: Path) -> None:
        """Open the repository that contains `path`. Raise GitError if there is none, if it is bare or if git fails."""
        try:
            self.root = Path(_text(_folder_of(path), "rev-parse", "--show-toplevel").removesuffix("\n"))
        except GitError as problem:
            if _NO_WORK_TREE in str(problem):
                raise GitError(f"{path} is a bare repository; run this in a clone of it") from None
            if problem.code is None or _NO_REPOSITORY not in str(problem):
                raise
            raise GitError(f"{path} is not in a git repository; run this in a clone") from None
        self._text, self._run = partial(_text, self.root), partial(_run, self.root)

    def commit(self, ref: str) -> str | None:
        """Return the commit id of a ref. Return None if the ref is empty, invalid, all zeros or not in this clone."""
        if not ref.strip("0") or ref.startswith("-"):
            return None
        return self._answer("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")

    def main_branch(self) -> str | None:
        """Return the default branch of the remote `origin`, else `main` or `master` if one exists, else None."""
        if default := self.resolve_symbolic("refs/remotes/origin/HEAD"):
            return default.removeprefix("origin/")
        names = (name for name in ("main", "master") if self.commit(name) or self.commit(f"origin/{name}"))
        return next(names, None)

    def resolve_symbolic(self, name: str) -> str | None:
        """Return the short name of the branch that a ref such as HEAD points to. Return None if it is not symbolic."""
        return self._line_or_none("symbolic-ref", "--quiet", "--short", name)

    def address(self, remote: str) -> str | None:
        """Return the URL of a remote without its credentials. Return None if there is no such remote."""
        url = self._line_or_none("remote", "get-url", remote)
        return None if url is None else _CREDENTIALS.sub("", url)

    @property
    def is_clean(self) -> bool:
        """Whether the work tree has no changed and no new files. Ignored files and submodules do not count."""
        return not self._text("status", *_STATUS, env=_harmless(self.root))

    def ignores(self, path: Path) -> bool:
        """Return whether git ignores a path, even if no such file exists."""
        return self._line_or_none("check-ignore", "--", str(path.absolute())) is not None

    def relative_path(self, path: Path) -> str:
        """Return a path relative to the root, with links resolved. Raise GitError if it is outside the repository."""
        try:
            return path.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise GitError(f"{path} is outside the repository {self.root}") from None

    def relative_path_without_links(self, path: Path) -> str:
        """Return a path relative to the root. Raise GitError if it is outside, or has a link below the root."""
        relative, ancestor = self.relative_path(path), Path(os.path.abspath(path))  # noqa: PTH100 (links must not be resolved)
        while ancestor.resolve() != self.root.resolve():
            if ancestor.is_symlink() or ancestor == ancestor.parent:
                raise GitError(
                    f"{ancestor} is a symbolic link, behind which git stores no files; replace it by a folder"
                )
            ancestor = ancestor.parent
        return relative

    @cached_property
    def empty_submodules(self) -> list[str]:
        """The folders of submodules that are not checked out."""
        if not (self.root / ".gitmodules").exists():
            return []
        text = self._text("config", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
        paths = [line.partition(" ")[2] for line in text.splitlines()]
        return [path for path in paths if not any((self.root / path).glob("*"))]

    def files(self, commit: str, folder: str) -> Mapping[str, str]:
        """Return the blob id of every file below a folder at a commit, by path."""
        pathspec = [] if folder in ("", ".") else ["--", f"{folder}/"]
        listing = self._text("ls-tree", "-r", "-z", "--full-tree", commit, *pathspec)
        entries = (entry.partition("\t") for entry in listing.split("\0") if entry)
        # an entry begins with mode, type and id: "100644 blob 3af3d45f…"
        return {path: start[12:] for start, _, path in entries if start[7:11] == "blob"}

    def work_files(self) -> dict[str, str | None]:
        """Return the blob id of each file by path, or None if it is new, changed or deleted. Skip ignored files."""
        entries = (entry.partition("\t") for entry in self._text("ls-files", "-s", "-z", "--full-name").split("\0"))
        modes = ((mode.split(), path) for mode, _, path in entries if path)
        files: dict[str, str | None] = {path: blob for (mode, blob, _), path in modes if mode != "160000"}  # submodules
        changed = self._text("ls-files", "-m", "-o", "-z", "--full-name", "--exclude-standard").split("\0")
        return files | dict.fromkeys(filter(None, changed))

    def changed_since(self, commit: str) -> set[str]:
        """Return the paths of the files that were changed, added or deleted since a commit, except ignored files."""
        options = ("--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "-z")
        changed = self._text("diff", *options, commit, "--", env=_harmless(self.root))
        new = self._text("ls-files", "-o", "-z", "--full-name", "--exclude-standard")
        return set(filter(None, (changed + new).split("\0")))

    def commits_of(self, path: str) -> list[str]:
        """Return the ids of the commits up to HEAD that changed a path, newest first. Return [] before any commit."""
        if self.commit("HEAD") is None:
            return []
        return self._text("log", "--format=%H", "HEAD", "--", f":(top,literal){path}").split()

    @property
    def is_shallow(self) -> bool:
        """Whether the clone lacks the older part of the history."""
        return self._text("rev-parse", "--is-shallow-repository").strip() == "true"

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return the content of each blob, by blob id. Raise GitError if this clone lacks a blob."""
        ids = list(dict.fromkeys(blobs))
        if not ids:
            return {}
        stream = self._run("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in ids).encode())
        contents, offset = {}, 0
        for blob in ids:
            end = stream.index(b"\n", offset)
            header = stream[offset:end].split()
            if header[1] == b"missing":
                raise GitError(f"this clone lacks the object {blob} of its history; run git fetch")
            size = int(header[2])
            contents[blob] = stream[end + 1 : end + 1 + size]
            offset = end + size + 2
        return contents

    def fetch(self, branch: str) -> str | None:
        """Fetch a branch of `origin` and return its commit id. Return None if `origin` has no such branch."""
        self._refuse_name(branch)
        local_ref = f"refs/remotes/origin/{branch}"
        try:
            self._run("fetch", *_FETCH_OPTIONS, "origin", f"refs/heads/{branch}:{local_ref}")
        except GitError as problem:
            if "couldn't find remote ref" not in str(problem):
                raise
            return None
        return self.commit(local_ref)

    def fetch_commit(self, address: str, ref: str, env: Mapping[str, str]) -> str:
        """Fetch a branch, tag or commit id (`ref`) from a URL; return the commit id. Raise GitError if that fails."""
        local_ref = f"{_FETCHED}/{ref}"
        self._run("fetch", *_FETCH_OPTIONS, "--depth=1", "--", address, f"{ref}:{local_ref}", env=env)
        return self._text("rev-parse", "--verify", f"{local_ref}^{{commit}}").strip()

    def fetched_commit(self, ref: str) -> str | None:
        """Return the id of the commit that `fetch_commit` last fetched for `ref`, or None if it never fetched `ref`."""
        return self.commit(f"{_FETCHED}/{ref}")

    def check_out(self, commit: str, folder: Path) -> None:
        """Check out a commit in a separate folder. Do nothing if the folder exists. Raise GitError if git fails."""
        if folder.exists():
            return
        part = folder.with_name(f"{folder.name}.part")  # renamed when it is complete
        shutil.rmtree(part, ignore_errors=True)
        self._run("worktree", "prune")
        self._run("worktree", "add", "--quiet", "--force", "--detach", str(part), commit)
        self._run("worktree", "move", str(part), str(folder))

    def _refuse_name(self, branch: str) -> None:
        is_valid = branch.isprintable() and not branch.startswith("-")
        if not is_valid or self._line_or_none("check-ref-format", f"refs/heads/{branch}") is None:
            raise GitError(f"{branch!a} cannot be the name of a branch")

    def merge_base(self, commit: str) -> str:
        """Return the merge base of HEAD and `commit`. Return `commit` if they have no merge base."""
        return self._line_or_none("merge-base", "HEAD", commit) or commit

    def is_ancestor(self, commit: str, descendant: str) -> bool:
        """Return whether `commit` is `descendant` or in its history."""
        return self._answer("merge-base", "--is-ancestor", commit, descendant) is not None

    def add(self, parents: Sequence[str], files: Mapping[str, bytes], message: str) -> str | None:
        """Commit `files` (content by path) onto the last parent's tree. Return its id, or None if nothing changes."""
        for path in files:
            if "\0" in path or any(part.lower() in ("", ".", "..", ".git") for part in path.split("/")):
                raise GitError(f"{path!a} cannot be the path of a file in a repository")
        base = parents[-1] if parents else None
        with tempfile.TemporaryDirectory(prefix="skill-evaluator-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            if base is not None:
                self._run("read-tree", base, env=index)
            names = [str(Path(folder, f"{number}")) for number in range(len(files))]
            for name, content in zip(names, files.values(), strict=True):  # one command hashes all of these files
                Path(name).write_bytes(content)
            blobs = self._run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin="\n".join(names).encode())
            ids = zip(files, blobs.decode().split(), strict=True)
            lines = "".join(f"100644 {blob}\t{path}\0" for path, blob in ids).encode("utf-8", "surrogateescape")
            self._run("update-index", "-z", "--index-info", stdin=lines, env=index)
            tree = self._text("write-tree", env=index).strip()
        if base is not None and tree == self._text("rev-parse", f"{base}^{{tree}}").strip():
            return None
        onto = [word for parent in parents for word in ("-p", parent)]
        return self._text("commit-tree", tree, *onto, "-m", message, env=_IDENTITY).strip()

    def push(self, commit: str, branch: str) -> bool:
        """Push a commit to a branch of `origin`. Return False if the branch has moved. Raise GitError if git fails."""
        self._refuse_name(branch)
        try:
            self._run("push", "--porcelain", "origin", f"{commit}:refs/heads/{branch}")
        except GitError as problem:
            reason = _REJECTED.search(problem.output)
            if reason is None or not _MOVED.search(reason[1]):
                raise GitError(
                    f"cannot push to {branch} of origin: {reason[1] if reason else problem}; see docs/ci.md on "
                    "permissions and protected branches"
                ) from None
            return False
        return True

    def _answer(self, *arguments: str) -> str | None:
        """Return the stripped output of a git command. Return None if git exits with 1, its code for "no"."""
        try:
            return self._text(*arguments).strip()
        except GitError as problem:
            if problem.code != _NO:
                raise
            return None

    def _line_or_none(self, *arguments: str) -> str | None:
        try:
            return self._text(*arguments).strip()
        except GitError:
            return None


def _text(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    return _run(folder, *arguments, env=env).decode("utf-8", "surrogateescape")


def _run(folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    if any("\0" in argument for argument in arguments):
        raise GitError(f"a name passed to git {arguments[0]} has a NUL character")
    if shutil.which("git") is None:
        raise GitError("git is not installed, or not in PATH")
    from git import Git  # imported late: it takes 0.1 s and fails if git is not installed

    hidden = dict.fromkeys(os.environ.keys() - child_environment().keys(), "")  # hides API keys
    with tempfile.TemporaryFile() as stream:
        stream.write(stdin)
        stream.seek(0)
        options: dict[str, Any] = {"with_extended_output": True, "with_exceptions": False, "stdout_as_string": False}
        environment = {**hidden, **_ENVIRONMENT, **(env or {})}
        code, output, error_text = Git(folder).execute(
            ["git", *arguments], istream=stream, env=environment, strip_newline_in_stdout=False, **options
        )
    if code:
        message = _CREDENTIALS.sub("", error_text)
        raise GitError(f"git {arguments[0]} failed: {message}", output=output.decode("utf-8", "replace"), code=code)
    return bytes(output)


def _folder_of(path: Path) -> Path:
    path = path.resolve()
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def open_store(folder: Path) -> Repository:
    """Open the git repository in a folder. If there is none, create it. Raise GitError or StorageError on failure."""
    if not (folder / ".git").exists():
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        _run(folder, "init", "--quiet")
    return Repository(folder)


def within(folder: str, name: str) -> str:
    """Return `folder/name`, or `name` if the folder is the root."""
    return name if folder in ("", ".") else f"{folder}/{name}"


@contextmanager
def tolerating_git() -> Iterator[None]:
    """Print a GitError in the block as a warning; in CI, raise it.

    Ignore it if git is not installed, if there is no repository, or if the repository has no commit.
    """
    try:
        yield
    except GitError as problem:
        if problem.code is None or any(words in str(problem) for words in (_NO_REPOSITORY, _NO_COMMIT)):
            return
        if os.environ.get("CI", "").lower() in ("true", "1"):
            raise
        _warn(str(problem).partition(" failed: ")[2])


def commit_of(*paths: Path) -> str | None:
    """Return the id of the commit that last changed these paths. Append `-dirty` if they have uncommitted changes.

    Return None if no commit changed them, or if `tolerating_git` suppresses an error of git.
    """
    folder, pathspecs = _folder_of(paths[0]), [f":(literal){path.resolve()}" for path in paths]
    with tolerating_git():
        commit = _text(folder, "log", "-1", "--format=%H", "--", *pathspecs).strip()
        dirty = commit and _run(folder, "status", *_STATUS, "--", *pathspecs, env=_harmless(folder))
        return f"{commit}-dirty" if dirty else commit or None
    return None


def _harmless(folder: Path) -> dict[str, str]:
    """Return environment variables that keep git from running programs named in the repository's configuration."""
    try:
        listing = _text(folder, "config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
    except GitError:  # there are no filters
        listing = ""
    filter_keys = (row.partition("\t")[2] for row in listing.splitlines() if row.startswith(("local\t", "worktree\t")))
    keys = {"core.fsmonitor": "false"}
    for name in {key.rpartition(".")[0] for key in filter_keys}:
        keys |= {f"{name}.clean": "", f"{name}.process": "", f"{name}.required": "false"}
    names = {f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(keys)}
    return {"GIT_CONFIG_COUNT": str(len(keys)), **names} | {
        f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(keys.values())
    }


def author_at(path: Path) -> str | None:
    """Return the configured author of commits as `Name <email>`. Return None if name or e-mail is not configured."""
    try:
        ident = _text(_folder_of(path), "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
    except GitError:
        return None
    return ident.strip().rsplit(" ", 2)[0]
