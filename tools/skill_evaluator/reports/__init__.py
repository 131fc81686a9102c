"""Finished values → what people read. No statistics here."""
