"""Where CI runs: what a command tells the platform beside its own output. One line a platform."""

from collections.abc import Mapping

from skill_evaluator.ci.platforms.base import Platform
from skill_evaluator.ci.platforms.github import GitHub

PLATFORMS: Mapping[str, Platform] = {"github": GitHub()}

__all__ = ["PLATFORMS", "Platform"]
