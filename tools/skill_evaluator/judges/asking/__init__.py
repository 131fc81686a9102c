"""What every mode of judging shares: prompts, questions with delimited texts, reading answers, a judging's folder."""
