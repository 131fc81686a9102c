"""Draws `docs/run.svg`, the README's picture: `python docs/picture.py <run-folder>` on a run of a shipped component."""

import os
import sys
from pathlib import Path

from rich.console import Console
from skill_evaluator.library.components import load_component
from skill_evaluator.records.record import read_record
from skill_evaluator.reports.evaluation import Finished, print_text
from skill_evaluator.runner.journal import RECORD


def main(folder: Path) -> None:
    """Render the tables of one run as the terminal shows them."""
    record = read_record(folder / RECORD)
    component = load_component(Path("components"), record.skill)
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=112, file=nowhere, force_terminal=True, highlight=False)
        finished = Finished(
            record=record,
            record_path=component.records_dir / f"{record.run_id}.json",
            folder=component.results_dir / record.run_id,
        )
        print_text(console, finished, component)
    title = f"python tools/evaluate_skill.py {record.skill} --model {record.model_id} --replicates {record.replicates}"
    console.save_svg("docs/run.svg", title=title)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
