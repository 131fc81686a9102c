"""`python -m skill_evaluator` is the console script."""

from skill_evaluator.cli import main

if __name__ == "__main__":
    main()
