"""A git repository, read and written by git's plumbing, which leaves the user's work tree and index alone."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
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
_NO_WORK_TREE = "must be run in a work tree"  # in git's own words
_NO_REPOSITORY, _NO_COMMIT = "not a git repository", "does not have any commits yet"
_ENVIRONMENT = {"GIT_TERMINAL_PROMPT": "0", "GIT_DISCOVERY_ACROSS_FILESYSTEM": "1", "LANGUAGE": "C", "LC_ALL": "C"}
_warn = cache(lambda words: sys.stderr.write(f"warning: git failed: {words}\n"))  # once each
_STATUS = ("--porcelain", "--ignore-submodules=all")  # git would run what a submodule's configuration names
_NO = 1  # git's exit code for the answer no; it has other codes for questions that it cannot answer


class Repository:
    """The repository that a path is in; the paths of its files are relative to its `root`, with `/` between."""

    def __init__(self, path: Path) -> None:
        """Open the repository; raise GitError if it is missing, or git refuses it."""
        try:
            self.root = Path(_text(_folder_of(path), "rev-parse", "--show-toplevel").removesuffix("\n"))
        except GitError as problem:
            if _NO_WORK_TREE in str(problem):
                raise GitError(f"{path} is a bare repository; run this in a clone of it") from None
            if problem.code is None or _NO_REPOSITORY not in str(problem):
                raise
            raise GitError(f"{path} is not in a git repository; run this in a clone") from None

    def commit(self, ref: str) -> str | None:
        """Return the commit of a name; None when the name is empty, all zeros or not here (a force push lost it).

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

    def main_branch(self) -> str | None:
        """Return the branch that others start from: the remote's default, else `main` or `master` if any."""
        if default := self.resolve_symbolic("refs/remotes/origin/HEAD"):
            return default.removeprefix("origin/")
        names = (name for name in ("main", "master") if self.commit(name) or self.commit(f"origin/{name}"))
        return next(names, None)

    def resolve_symbolic(self, name: str) -> str | None:
        """Return the branch that a name points to, such as HEAD, if any."""
        try:
            return self._text("symbolic-ref", "--quiet", "--short", name).strip()
        except GitError:
            return None

    def address(self, remote: str) -> str | None:
        """Return where a remote is, without credentials; None when there is no such remote."""
        try:
            return _CREDENTIALS.sub("", self._text("remote", "get-url", remote).strip())
        except GitError:
            return None

    @property
    def is_clean(self) -> bool:
        """Whether the work tree is as its commit says, files that git ignores aside."""
        return not self._text("status", *_STATUS, env=_harmless(self.root))

    def ignores(self, path: Path) -> bool:
        """Return whether git leaves out a file of that path, which need not exist."""
        try:
            return bool(self._run("check-ignore", "--", str(path.absolute())))
        except GitError:
            return False

    def place(self, path: Path) -> str:
        """Return a path as git names it; raise GitError when it is outside of the repository."""
        try:
            return path.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            raise GitError(f"{path} is outside of the repository {self.root}") from None

    def place_without_links(self, path: Path) -> str:
        """Return a path as git names it at every commit; raise GitError when it is, or lies behind, a link in here."""
        place, part = self.place(path), Path(os.path.abspath(path))  # noqa: PTH100 (a link is not to be followed)
        while part.resolve() != self.root.resolve():
            if part.is_symlink() or part == part.parent:
                raise GitError(f"{part} is a link, which another commit may not have; make it a folder")
            part = part.parent
        return place

    @lru_cache(maxsize=2)  # noqa: B019 - a plan asks for a large library at two commits, several times each
    def empty_submodules(self) -> list[str]:
        """Return the folders of submodules that hold no file, since nobody checked them out."""
        if not (self.root / ".gitmodules").exists():
            return []
        text = self._text("config", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
        paths = [line.partition(" ")[2] for line in text.splitlines()]
        return [path for path in paths if not any((self.root / path).glob("*"))]

    def files(self, commit: str, folder: str) -> Mapping[str, str]:
        """List every file below a folder at a commit, by its digest, as a name moves: path → blob."""
        below = [] if folder in ("", ".") else ["--", f"{folder}/"]
        listed = self._text("ls-tree", "-r", "-z", "--full-tree", commit, *below)
        entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
        return {path: mode[12:] for mode, _, path in entries if mode[7:11] == "blob"}  # after six digits of the mode

    def work_files(self) -> dict[str, str | None]:
        """List the files of the work tree that git does not ignore: path → blob, None for a new or changed file."""
        entries = (entry.partition("\t") for entry in self._text("ls-files", "-s", "-z", "--full-name").split("\0"))
        modes = ((mode.split(), path) for mode, _, path in entries if path)
        files: dict[str, str | None] = {path: blob for (mode, blob, _), path in modes if mode != "160000"}  # submodules
        changed = self._text("ls-files", "-m", "-o", "-z", "--full-name", "--exclude-standard").split("\0")
        return files | dict.fromkeys(filter(None, changed))

    def changed_since(self, commit: str) -> set[str]:
        """List the paths of the work tree that are not as at a commit; files that git ignores are left out."""
        how = ("--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=dirty", "-z")
        changed = self._text("diff", *how, commit, "--", env=_harmless(self.root))
        new = self._text("ls-files", "-o", "-z", "--full-name", "--exclude-standard")
        return set(filter(None, (changed + new).split("\0")))

    def commits_of(self, path: str) -> list[str]:
        """List the commits of HEAD's history that touched a path, newest first; none before the first commit."""
        if self.commit("HEAD") is None:
            return []
        return self._text("log", "--format=%H", "HEAD", "--", f":(top,literal){path}").split()

    @property
    def is_shallow(self) -> bool:
        """Whether older commits were left out of this clone."""
        return self._text("rev-parse", "--is-shallow-repository").strip() == "true"

    def contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Read what each blob holds."""
        wanted = list(dict.fromkeys(blobs))
        if not wanted:
            return {}
        stream: bytes = self._run("cat-file", "--batch", given="".join(f"{blob}\n" for blob in wanted).encode())
        contents, at = {}, 0
        for blob in wanted:
            end = stream.index(b"\n", at)
            size = int(stream[at:end].split()[2])
            contents[blob] = stream[end + 1 : end + 1 + size]
            at = end + size + 2
        return contents

    def fetch(self, remote: str, branch: str) -> str | None:
        """Fetch a remote's branch and return its commit; None when the remote has no such branch."""
        self._refuse_names(remote, branch)
        here = f"refs/remotes/{remote}/{branch}"
        how = ("--quiet", "--no-tags", "--no-auto-maintenance", "--force")
        try:
            self._run("fetch", *how, remote, f"refs/heads/{branch}:{here}")
        except GitError as problem:
            if "couldn't find remote ref" not in str(problem):
                raise
            return None
        return self.commit(here)

    def fetch_commit(self, address: str, ref: str, env: Mapping[str, str]) -> str:
        """Fetch the one commit that a branch, tag or commit names at an address, and return it; raise GitError."""
        here = f"{_FETCHED}/{ref}"
        how = ("--quiet", "--no-tags", "--no-auto-maintenance", "--force", "--depth=1")
        self._run("fetch", *how, "--", address, f"{ref}:{here}", env=env)
        return self._text("rev-parse", "--verify", f"{here}^{{commit}}").strip()

    def fetched_commit(self, ref: str) -> str | None:
        """Return what `fetch_commit` last returned for a ref, if it ever did."""
        return self.commit(f"{_FETCHED}/{ref}")

    def check_out(self, commit: str, folder: Path) -> None:
        """Lay out a commit in a folder of its own, or leave that as it is where it is there; raise GitError.

        The folder appears when it is whole, so a killed process leaves none that lacks files.
        """
        if folder.exists():
            return
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        self._run("worktree", "prune")
        self._run("worktree", "add", "--quiet", "--force", "--detach", str(part), commit)
        self._run("worktree", "move", str(part), str(folder))

    def _refuse_names(self, remote: str, branch: str) -> None:
        """Raise GitError for what git would take for an option, or does not take for the name of a branch."""
        for kind, name in (("remote", remote), ("branch", branch)):
            if not name or name.startswith("-") or not name.isprintable():
                raise GitError(f"{name!a} cannot be the name of a {kind}")
        try:
            self._run("check-ref-format", f"refs/heads/{branch}")
        except GitError:
            raise GitError(f"{branch!a} cannot be the name of a branch") from None

    def merge_base(self, commit: str) -> str:
        """Return the last commit in the history of HEAD and of a commit, or that commit where none is here."""
        try:
            return self._text("merge-base", "HEAD", commit).strip()
        except GitError:
            return commit

    def is_ancestor(self, commit: str, other: str) -> bool:
        """Return whether `commit` is `other` or in its history."""
        try:
            self._run("merge-base", "--is-ancestor", commit, other)
        except GitError as problem:
            if problem.code != _NO:
                raise
            return False
        return True

    def add(self, parents: Sequence[str], files: Mapping[str, bytes | None], message: str) -> str | None:
        """Write a commit: the tree of its last parent, or an empty one, with files added, replaced or (None) removed.

        Return None, and write none, when nothing changes. Raise GitError for a path that leaves the repository, which
        git itself would pass over in silence.
        """
        for path in files:
            if "\0" in path or any(part.lower() in ("", ".", "..", ".git") for part in path.split("/")):
                raise GitError(f"{path!a} cannot be the path of a file in a repository")
        base = parents[-1] if parents else None
        with tempfile.TemporaryDirectory(prefix="skill-evaluator-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            if base is not None:
                self._run("read-tree", base, env=index)
            added = {path: content for path, content in files.items() if content is not None}
            names = [str(Path(folder, f"{number}")) for number in range(len(added))]
            for name, content in zip(names, added.values(), strict=True):  # of which one command makes blobs
                Path(name).write_bytes(content)
            blobs = self._run("hash-object", "-w", "--no-filters", "--stdin-paths", given="\n".join(names).encode())
            named = zip(added, blobs.decode().split(), strict=True)
            lines = [f"100644 {blob}\t{path}\0" for path, blob in named]
            lines += [f"0 {'0' * len(base or '')}\t{path}\0" for path in files.keys() - added.keys() if base]
            self._run(
                "update-index", "-z", "--index-info", given="".join(lines).encode("utf-8", "surrogateescape"), env=index
            )
            tree = self._text("write-tree", env=index).strip()
        if base is not None and tree == self._text("rev-parse", f"{base}^{{tree}}").strip():
            return None
        onto = [word for parent in parents for word in ("-p", parent)]
        return self._text("commit-tree", tree, *onto, "-m", message, env=_IDENTITY).strip()

    def push(self, remote: str, commit: str, branch: str) -> bool:
        """Move a remote's branch forward to a commit; return False when somebody else moved it after the fetch.

        Raises GitError when the remote refuses for any other reason (no permission, a protected branch).
        """
        self._refuse_names(remote, branch)
        try:
            self._run("push", "--porcelain", remote, f"{commit}:refs/heads/{branch}")
        except GitError as problem:
            reason = _REJECTED.search(problem.output)
            if reason is None or not _MOVED.search(reason[1]):
                raise GitError(
                    f"cannot push to {branch} of {remote}: {reason[1] if reason else problem}; see docs/ci.md on "
                    "permissions and protected branches"
                ) from None
            return False
        return True

    def _text(self, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        return _text(self.root, *arguments, env=env)

    def _run(self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        return _run(self.root, *arguments, given=given, env=env)


def _text(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    return _run(folder, *arguments, env=env).decode("utf-8", "surrogateescape")


def _run(folder: Path, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
    """Run one git command in a folder and return what it printed; raise GitError."""
    if any("\0" in argument for argument in arguments):
        raise GitError(f"git {arguments[0]} cannot be given a NUL character")
    if shutil.which("git") is None:
        raise GitError("git is not installed, or not in PATH")
    from git import Git  # late: it takes a tenth of a second, and cannot be imported where git is missing

    hidden = dict.fromkeys(os.environ.keys() - child_environment().keys(), "")  # keys of models
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        how: dict[str, Any] = {"with_extended_output": True, "with_exceptions": False, "stdout_as_string": False}
        environment = {**hidden, **_ENVIRONMENT, **(env or {})}
        code, output, complaint = Git(folder).execute(
            ["git", *arguments], istream=stdin, env=environment, strip_newline_in_stdout=False, **how
        )
    if code:
        words = _CREDENTIALS.sub("", complaint)
        raise GitError(f"git {arguments[0]} failed: {words}", output=output.decode("utf-8", "replace"), code=code)
    return bytes(output)


def _folder_of(path: Path) -> Path:
    path = path.resolve()
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def open_store(folder: Path) -> Repository:
    """Open the repository in a folder of the cache, or make it; raise GitError."""
    if not (folder / ".git").exists():
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        _run(folder, "init", "--quiet")
    return Repository(folder)


def within(folder: str, name: str) -> str:
    """Join a folder and a name, as git names paths.

    >>> within("components", "a"), within(".", "a")
    ('components/a', 'a')
    """
    return name if folder in ("", ".") else f"{folder}/{name}"


@contextmanager
def tolerating_git() -> Iterator[None]:
    """Warn once of a git command that fails inside, such as in a repository of another user; raise GitError in CI.

    A missing git, repository or commit is no failure, and leaves the block without a word.
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
    """Return the last commit that touched one of the paths of a folder, with `-dirty` when one was changed since.

    Return None if it was never committed, outside git, and with a warning if git fails; that raises GitError in CI.
    """
    folder, places = _folder_of(paths[0]), [f":(literal){path.resolve()}" for path in paths]
    with tolerating_git():
        commit = _text(folder, "log", "-1", "--format=%H", "--", *places).strip()
        dirty = commit and _run(folder, "status", *_STATUS, "--", *places, env=_harmless(folder))
        return f"{commit}-dirty" if dirty else commit or None
    return None


def _harmless(folder: Path) -> dict[str, str]:
    """Return an environment in which `git status` runs no program that the repository's own configuration names."""
    try:
        listed = _text(folder, "config", "--show-scope", "--name-only", "--get-regexp", r"^filter\.")
    except GitError:  # there is none
        listed = ""
    own = (line.partition("\t")[2] for line in listed.splitlines() if line.startswith(("local\t", "worktree\t")))
    keys = {"core.fsmonitor": "false"}
    for name in {key.rpartition(".")[0] for key in own}:
        keys |= {f"{name}.clean": "", f"{name}.process": "", f"{name}.required": "false"}
    named = {f"GIT_CONFIG_KEY_{at}": key for at, key in enumerate(keys)}
    return {"GIT_CONFIG_COUNT": str(len(keys)), **named} | {
        f"GIT_CONFIG_VALUE_{at}": value for at, value in enumerate(keys.values())
    }


def author_at(path: Path) -> str | None:
    """Return who git would name as the author of a commit made in a folder, as `Name <email>`; None if nobody is set.

    A name that git would guess from the machine's account does not count.
    """
    try:
        ident = _text(_folder_of(path), "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
    except GitError:  # git is not installed, or neither name nor e-mail address is configured
        return None
    return ident.strip().rsplit(" ", 2)[0]
