"""`python tools/evaluate_skill.py <skill> ...` is `skill-evaluator evaluate <skill> ...`."""

import sys

from skill_evaluator.cli import main

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
