"""A library that holds a file of every format there is, each made by the commands themselves or as people write it.

For tests that spoil one file after another: `FILES` says where each is, and which commands read it.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.audits import BENCHMARKS, CELLS, QUESTIONS, SECOND, AuditLibrary
from tests.support.chat_server import notice
from tests.support.git import IDENTITY, bare_copy, git
from tests.support.judging_files import JUDGING_FILES, judge_answers, judges_write, people_write
from tests.support.library import CASES, REPLAY, ROOT, SKILL, Ended
from tests.support.rubrics import some_criterion, some_levels

COMPONENT, CASE, QUIZ = f"components/{SKILL}", f"fixtures/{SKILL}/cases/beta", "quiz"
LISTED = "components/listed"
QUESTIONS_FILE = f"fixtures/{QUIZ}/questions.jsonl"
EVALUATE = ("evaluate", SKILL, "--no-leaderboard")
EXPLAIN = ("explain", "RUN", "--case", "beta")
COLLECT = ("ci", "collect", "artifacts")
PLAN = ("ci", "plan", "--base", "HEAD~1")
SHOWN = (("ci", "report", "collected"), ("ci", "publish", "collected"))
CALIBRATE = ("judge", "calibrate", "--labels", "items.jsonl", "--verdicts", "verdicts.jsonl")
AUDIT = ("audit", "report", "--format", "json")
IMPORT = ("cases", "import", "cases.csv", "--skill", SKILL, "--input", "text", "--truth", "title", "--truth", "year")
MEASURED = ("--skill", SKILL, "--version", "9.0.0", "--model", "elsewhere")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideFile:
    """A file that somebody else may have written; `pattern` finds it, `commands` read it."""

    kind: str
    name: str
    pattern: str
    commands: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one command made of one spoilt file."""

    words: tuple[str, ...]
    content: bytes
    seconds: float
    processor_s: float
    ended: Ended

    @property
    def held(self) -> bool:
        """Whether it ended as a user may expect: in 10 s of work, done or with an error that says what is wrong.

        On the clock it may take longer, since others use the machine, too.
        """
        ended = self.ended
        errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
        in_time = self.processor_s < 10 and self.seconds < 60
        return ended.code in (0, 2, 3, 4) and "Traceback" not in ended.err and len(errors) <= 1 and in_time


FILES = tuple(
    OutsideFile(kind=kind, name=name, pattern=pattern, commands=commands)
    for kind, files in {
        "components": (
            ("prompt", f"{COMPONENT}/prompt.md", (("lint",), EVALUATE, PLAN)),
            ("schema", f"{COMPONENT}/schema.json", (("lint",), EVALUATE, EXPLAIN)),
            ("datasets", f"{COMPONENT}/evals/datasets.json", (("lint",), EVALUATE)),
        ),
        "configuration": (
            (
                "models",
                ".evaluator/models.yaml",
                (
                    (
                        "ci",
                        "plan",
                    ),
                    EVALUATE,
                    ("lint",),
                ),
            ),
            (
                "settings",
                ".evaluator/settings.yaml",
                (
                    (
                        "ci",
                        "plan",
                    ),
                    EVALUATE,
                    ("compare", SKILL),
                ),
            ),
            (
                "scenario",
                ".evaluator/scenarios/curt.md",
                (("evaluate", SKILL, "--scenario", "curt"), ("audit", "run", "--dry-run", *BENCHMARKS)),
            ),
            ("rubric", ".evaluator/rubrics/one.yaml", (("judge", "lint"),)),
            ("rubric of levels", ".evaluator/rubrics/levels.json", (("judge", "lint"),)),
        ),
        "cases": (
            ("document", f"{CASE}/document.md", (("lint",), EVALUATE)),
            ("truth", f"{CASE}/ground_truth.json", (("lint",), EVALUATE, EXPLAIN)),
            ("case's JSON", f"{CASE}/meta.json", (("lint",), EVALUATE)),
            ("case's YAML", f"fixtures/{SKILL}/cases/gamma/metadata.yaml", (("lint",), EVALUATE)),
            ("questions", QUESTIONS_FILE, (("lint",), ("evaluate", QUIZ, "--no-leaderboard"))),
            ("table of cases", "cases.csv", (IMPORT,)),
            ("cases in one file", f"{LISTED}/evals/cases.jsonl", (("lint",), ("evaluate", "listed", "--dry-run"))),
        ),
        "answers": (
            ("recorded answers", "answers.jsonl", (EVALUATE, ("evaluate", SKILL, "--dry-run"))),
            ("manifest", f"{COMPONENT}/evals/results/*/manifest.json", (("score", "RUN"), EXPLAIN)),
            ("journal", f"{COMPONENT}/evals/results/*/replicates.jsonl", (("score", "RUN"), EXPLAIN)),
        ),
        "records": (
            ("leaderboard", f"{COMPONENT}/leaderboard.json", (("lint",), ("history", SKILL), PLAN)),
            ("record", f"{COMPONENT}/evals/records/*.json", (("lint",), ("compare", SKILL), ("history", SKILL))),
            ("results of promptfoo", "promptfoo.json", (("records", "import", "promptfoo.json", *MEASURED),)),
            ("results of inspect", "inspect.json", (("records", "import", "inspect.json", *MEASURED),)),
            ("accepted", f"{COMPONENT}/evals/accepted.json", (("lint",), ("compare", SKILL), ("history", SKILL))),
        ),
        "plans and artifacts": (
            ("artifact's manifest", "artifacts/*/*/manifest.json", (COLLECT,)),
            ("artifact's journal", "artifacts/*/*/replicates.jsonl", (COLLECT,)),
            ("plan", "plan.json", (COLLECT,)),
            ("outcome", "collected/outcome.json", SHOWN),
            (
                "collected record",
                "collected/records/*/*.json",
                (("ci", "report", "collected"), ("ci", "publish", "collected")),
            ),
        ),
        "audits": (
            ("audit's manifest", "audits/*/audit.json", (AUDIT, ("audit", "run", "--resume"))),
            ("audit's journal", "audits/*/runs/*/replicates.jsonl", (AUDIT, ("audit", "run", "--resume"))),
            ("table of scores", "table.csv", (("audit", "report", "--cube", "table.csv"),)),
        ),
        "judging": (
            ("judged items", "items.jsonl", (CALIBRATE,)),
            ("judges' verdicts", "verdicts.jsonl", (CALIBRATE,)),
            *JUDGING_FILES,
        ),
    }.items()
    for name, pattern, commands in files
)


class EveryFile(AuditLibrary):
    """The library, as it was made again after each `commands_on`."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.models(REPLAY, {**REPLAY, "id": "vendor/other"})
        self._people_write()
        git(self.root, "init", "-q", "-b", "main")
        self._measure()
        self._made = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in self._files()}
        self._published = git(self.root, "rev-parse", "origin/main")

    def _people_write(self) -> None:
        fields = {"title": {"compare": "string", "casefold": True}, "year": {"compare": "number", "tolerance": 0.5}}
        self.write(
            f"{COMPONENT}/evals/datasets.json",
            {"datasets": [{"id": SKILL, "metrics": ["exact_match", "field_level_f1"], "fields": fields}]},
        )
        self.write(f"{CASE}/meta.json", {"reason": "two years in it", "tags": ["years"], "difficulty": "hard"})
        self.write(f"fixtures/{SKILL}/cases/gamma/metadata.yaml", "reason: no title\ntags: [short]\n")
        self.write(f"components/{QUIZ}/prompt.md", f"---\nname: {QUIZ}\nversion: 1.0.0\noutput: choice\n---\nAnswer.\n")
        quiz = ({"id": name, "question": f"{name}?", "options": ["a", "b"], "answer": "A"} for name in ("p", "q"))
        self.write(f"{LISTED}/prompt.md", "---\nversion: 1.0.0\n---\nAnswer.\n")
        rows = ({"id": name, "document": name, "expected": {"a": [1]}, "checks": [{"contains": "a"}]} for name in "pq")
        self.lines(f"{LISTED}/evals/cases.jsonl", *rows)
        self.write(QUESTIONS_FILE, "".join(json.dumps(question) + "\n" for question in quiz))
        self.write(".evaluator/rubrics/one.yaml", {"criteria": [some_criterion()]})
        self.write(".evaluator/rubrics/levels.json", some_levels())
        judging = ROOT / "tests" / "data" / "judging"
        for name in ("items", "verdicts"):
            lines = (judging / f"{name}.jsonl").read_text().splitlines(keepends=True)
            self.write(f"{name}.jsonl", "".join(line for line in lines if "natural-00" in line))
        data = ROOT / "tests" / "data"
        shutil.copy(data / "creditaudit_table2.csv", self.root / "table.csv")
        for name, copied in (
            ("promptfoo_a.json", "promptfoo.json"),
            ("inspect_a.json", "inspect.json"),
        ):
            shutil.copy(data / "elsewhere" / name, self.root / copied)
        self.write("cases.csv", "text,title,year\nA notice of 2024,a,2024\nAnother,b,2025\n")
        people_write(self)
        cells = {(cell, index): notice(cell.rpartition("/")[2]) for cell in CELLS for index in range(2)}
        plain = {(case, index): notice(case) for case in (*CASES, *QUESTIONS[SECOND]) for index in range(2)}
        choices = {(name, index): "Answer: A" for name in ("p", "q") for index in range(2)}
        self.record_answers({**plain, **cells, **choices, **dict(judge_answers())})
        self.write(".gitignore", "components/*/evals/results/\nartifacts\ncollected\naudits\njudgements\n/*.json\n")

    def _measure(self) -> None:
        for version in ("1.0.0", "1.1.0"):
            self.write(
                f"{COMPONENT}/prompt.md", f"---\nname: {SKILL}\nversion: {version}\n---\nExtract as {version}.\n"
            )
            self._commit()
            self.done("evaluate", SKILL)
            self._commit()
        self.done("accept", SKILL, "--why", "good", "--by", "A")
        self._commit()
        bare_copy(self.root, self.root / ".git" / "origin.git")
        self.done("ci", "plan", SKILL)
        plan = json.loads((self.root / "plan.json").read_text())
        for entry in plan["runs"]:
            words = ("--plan=plan.json", f"--planned={entry['id']}", f"--results=artifacts/{entry['id']}")
            self.done("evaluate", *words)
        self.done(*COLLECT)
        self.done("audit", "run", *BENCHMARKS)
        self.done("audit", "report")
        judges_write(self, self.done)

    def _commit(self) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "-m", "change")

    def commands_on(
        self, file: OutsideFile, spoil: Callable[[bytes], bytes], choose: Callable[[int], int]
    ) -> Iterator[Ran]:
        """Spoil one file of a kind (`choose` gets how many there are), and do the commands that read it."""
        places = [path for path in sorted(self._made) if path.relative_to(self.root).match(file.pattern)]
        place = places[choose(len(places))]
        content = spoil(self._made[place][0])
        runs = sorted(self.results.glob("*-*"))
        for words in file.commands:
            place.write_bytes(content)
            run = place.parent if place.parent in runs else runs[0]
            named = {"RUN": str(run), "NEWEST": str(runs[-1])}
            begun, begun_work = time.perf_counter(), time.process_time()
            done = self.call(*(named.get(word, word) for word in words), env=IDENTITY)
            took, work = time.perf_counter() - begun, time.process_time() - begun_work
            self._restore(words)
            yield Ran(words=words, content=content, seconds=took, processor_s=work, ended=done)

    def _files(self) -> list[Path]:
        return [path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts]

    def _restore(self, words: tuple[str, ...]) -> None:
        """Undo whatever a command wrote or removed."""
        for path in set(self._files()) - self._made.keys():
            path.unlink()
            for folder in path.parents:  # a run's folder that stays would be the newest run, and has no manifest
                if any(folder.iterdir()):
                    break
                folder.rmdir()
        for path, (content, written) in self._made.items():
            if not path.exists() or path.stat().st_mtime_ns != written:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                os.utime(path, ns=(written, written))
        if "publish" in words:
            git(self.root, "--git-dir=.git/origin.git", "update-ref", "refs/heads/main", self._published)
            git(self.root, "update-ref", "refs/remotes/origin/main", self._published)

    def done(self, *words: str) -> Ended:
        """Do a command that must succeed."""
        ended = self.call(*words, env=IDENTITY)
        assert ended.code == 0, (words, ended)
        return ended
