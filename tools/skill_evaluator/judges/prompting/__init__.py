"""What all modes share: rubrics, questions with delimited texts, the reading of outputs, a judge run and its files."""
