"""The parts that all judge modes share: criteria, questions, the reading of outputs, a judge run and its files."""
