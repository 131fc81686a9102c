"""`evaluate`, `try`, `mutate` and `switch`: plan runs, call models, score the outputs, record and compare."""
