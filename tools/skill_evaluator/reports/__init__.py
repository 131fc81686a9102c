"""Finished values to text, Markdown, JSON and charts."""
