"""Lint of components and rubrics."""
