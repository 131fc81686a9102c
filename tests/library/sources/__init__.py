import re


def skipped_parts(line: str) -> tuple[str, int, str]:
    """Split a line about skipped parts of a source into their kind, number and reason."""
    [(kind, count, reason)] = re.findall(r"left out: (.+?)(?: \((\d+)\))?: (.*)", line)
    return kind, int(count or 1), reason
