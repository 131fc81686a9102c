"""Diagnosis of wrong answers: by field, by schema error, and by key name."""
