"""`python tools/evaluate_skill.py <skill> ...` is `skill-evaluator evaluate <skill> ...`."""

import sys
from pathlib import Path

try:
    from skill_evaluator.cli import main
except ModuleNotFoundError as missing:
    pip = ".venv/bin/pip install -q"
    if Path(__file__).with_name("skill_evaluator").is_dir():  # the evaluator's own repository
        install = f"{pip} -c constraints.txt -e '.[local]'"
    else:
        install = f"{pip} --require-hashes -r .evaluator/requirements-lock.txt"
        install += f" && {pip} --no-deps --no-build-isolation -r .evaluator/requirements.txt"
    install = f"python3 -m venv .venv && {install}"
    print(f"error: {missing.name} is not installed; run: {install} (then use .venv/bin/python)", file=sys.stderr)
    sys.exit(2)

if __name__ == "__main__":
    main(["evaluate", *sys.argv[1:]])
