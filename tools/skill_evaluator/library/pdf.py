"""The process that reads PDFs, so that a PDF cannot exhaust the evaluator's time or memory.

The input is a JSON object with `paths`, `max_pages`, `seconds` per file and `texts` (whether to extract text). The
output is one line of JSON per path in order: `pages` and `text`, or the `problem`.
"""

import json
import signal
import sys
from typing import Any, BinaryIO

from pypdf import PdfReader


def read_pdf(handle: BinaryIO, *, max_pages: int, texts: bool) -> dict[str, Any]:
    """Return the number of `pages`, and `text` (None unless `texts`). Raise ValueError if the PDF is not accepted."""
    reader = PdfReader(handle)
    if reader.is_encrypted:
        raise ValueError("it is encrypted; save it without a password")
    pages = len(reader.pages)
    if not pages:
        raise ValueError("it has no page")
    if pages > max_pages:
        raise ValueError(f"it has more than {max_pages:,} pages (limits.file_pages in settings.yaml)")
    text = "\n\n".join(page.extract_text() for page in reader.pages) if texts else None
    text = text and text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # replaces lone surrogates
    return {"pages": pages, "text": text}


def _out_of_time(*_: object) -> None:
    raise TimeoutError("it takes too long to read")


def _main() -> None:
    request = json.load(sys.stdin)
    signal.signal(signal.SIGALRM, _out_of_time)
    for path in request["paths"]:
        # repeats in case the PDF library catches the first exception
        signal.setitimer(signal.ITIMER_REAL, request["seconds"], 0.1)
        try:
            with open(path, "rb") as handle:  # noqa: PTH123 - avoids importing pathlib
                result = read_pdf(handle, max_pages=request["max_pages"], texts=request["texts"])
        except Exception as problem:  # the PDF library raises many types of errors
            message = " ".join(str(problem).split())[:200] or type(problem).__name__
            result = {"problem": message if message.startswith("it ") else f"it is broken ({message})"}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    _main()
