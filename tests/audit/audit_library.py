"""A prompt library to audit: two benchmarks of different size, three scenarios, one case without a ground truth."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from skill_evaluator.audit.manifest import RUNS
from skill_evaluator.audit.request import AuditFolders

from tests.support.library import SCHEMA, SKILL, Ended, Library, journal

SECOND = "second"
BENCHMARKS = ("--benchmark", SKILL, "--benchmark", SECOND)
SCENARIOS = ("bare", "curt", "grand")
QUESTIONS = {SKILL: ("alpha", "beta", "gamma"), SECOND: ("delta", "eta")}
CELLS = [
    f"{benchmark}/{scenario}/{case}"
    for benchmark, cases in QUESTIONS.items()
    for case in cases
    for scenario in SCENARIOS
]
# templates of a family, by name
LEGAL = {
    "concise": "Answer concisely, in one sentence.",
    "reasoned": "Reason step by step about the clauses before you answer.",
    "json": "Return your answer as JSON.",
    "expert": "You are a senior attorney who reviews contracts.",
    "layman": "Explain to a client without legal training.",
    "cautious": "If the document does not settle the question, say so.",
    "formal": "Write in the formal register of a legal memorandum.",
    "verify": "Check your answer against the document before you give it.",
}
_PROMPT = "---\nname: {name}\nversion: 1.0.0\n---\nFind title and year.\n"


class AuditLibrary(Library):
    """`audit run` is called in this process, `audit` in any way a test wants."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.component_of(SECOND, QUESTIONS[SECOND])
        self.write(f"fixtures/{SECOND}/cases/zeta/document.md", "zeta has no ground truth.\n")
        for name in SCENARIOS:
            front = f"---\nname: {name}\nintent: {name}\n---\n"
            self.write(f".evaluator/scenarios/{name}.md", f"{front}Be {name}.\n\n{{{{ prompt }}}}\n")

    def stand_in(self, root: Path) -> None:
        super().stand_in(root)
        self.audits = root / "audits"

    @property
    def places(self) -> AuditFolders:
        """Its folders."""
        return AuditFolders(
            components=self.root / "components", fixtures=self.root / "fixtures", config=self.root / ".evaluator"
        )

    def component_of(self, name: str, cases: Sequence[str]) -> None:
        """Write a component with labelled cases."""
        self.write(f"components/{name}/prompt.md", _PROMPT.format(name=name))
        self.write(f"components/{name}/schema.json", SCHEMA)
        for case in cases:
            self.write(f"fixtures/{name}/cases/{case}/document.md", f"{case} is the title of a notice of 2024.\n")
            self.write(f"fixtures/{name}/cases/{case}/ground_truth.json", {"title": case, "year": 2024})

    def audit(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        """Do as `skill-evaluator audit run` on both benchmarks does, in this process."""
        return self.call("audit", "run", *BENCHMARKS, *arguments, env=env)

    def audit_folder(self) -> Path:
        """The folder of the one audit there is."""
        (folder,) = self.audits.iterdir()
        return folder

    def answered(self) -> list[tuple[str, int]]:
        """Every call that any run of any audit has in its journal, as (cell, replicate), in the order written."""
        folders = sorted(self.audits.glob(f"*/{RUNS}/*")) if self.audits.is_dir() else []
        return [(line["case_id"], line["replicate"]) for folder in folders for line in journal(folder)]
