"""The text of an answer to a JSON value, a choice or a text."""
