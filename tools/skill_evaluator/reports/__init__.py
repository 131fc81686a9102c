"""Reports of results as text, Markdown, JSON and charts."""
