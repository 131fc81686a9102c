"""Read the PDFs and images of cases without keeping their bytes; `pdf` reads PDFs in a limited process."""

import hashlib
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skill_evaluator.errors import FixtureError
from skill_evaluator.files import open_file
from skill_evaluator.library.config import SafetyLimits
from skill_evaluator.library.prompts import File, MediaType
from skill_evaluator.library.reading import ConfinedFolder
from skill_evaluator.processes import ProcessLimits, Program, run_process

PDF: MediaType = "application/pdf"
_IMAGES: Mapping[bytes, MediaType] = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_HEAD_BYTES = 1_000_000  # read to find the size of an image
_BLOCK_BYTES = 1 << 18
_MAX_PDF_S, _MAX_PDF_MEMORY = 20.0, 1_000_000_000  # memory in bytes
_STARTUP_S = 30.0
_read: dict[tuple[str, bool], Mapping[str, Any]] = {}  # results by PDF digest and whether the text was extracted


def media_type_of(head: bytes) -> MediaType | None:
    """Return the media type of a file by its first bytes, or None if it is neither a PDF nor a supported image.

    >>> media_type_of(b"%PDF-1.7"), media_type_of(b"GIF89a")
    ('application/pdf', None)
    """
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    image = next((media_type for begin, media_type in _IMAGES.items() if head.startswith(begin)), None)
    return image or (PDF if b"%PDF-" in head[:1024] else None)


def read_file(path: Path, limits: SafetyLimits) -> File:
    """Read the type, size and digest of a PDF or an image, and the extent of an image."""
    limit, content = limits.size_of("file_bytes"), hashlib.sha256()
    with open_file(path, FixtureError) as handle:
        size = os.fstat(handle.fileno()).st_size
        if size > limit.max_bytes:
            raise FixtureError(f"{path} has {size:,} bytes; {limit}")
        head = handle.read(_HEAD_BYTES)
        content.update(head)
        while part := handle.read(min(_BLOCK_BYTES, max(0, size - handle.tell()))):
            content.update(part)
    media_type = media_type_of(head)
    if media_type is None:
        raise FixtureError(f"{path} begins neither as a PDF nor as a PNG, JPEG or WebP image; save it as one of these")
    file = File(path=path, media_type=media_type, digest=f"sha256:{content.hexdigest()}", size=size)
    return file if media_type == PDF else _with_extent(file, head)


def _with_extent(image: File, head: bytes) -> File:
    import imagesize

    try:
        width, height = imagesize.get(io.BytesIO(head))
    except Exception:  # imagesize raises many types of errors on damaged files
        width = height = 0
    if min(width, height) < 1:
        raise FixtureError(f"{image.path} begins as {image.media_type} but cannot be read as an image; save it again")
    return replace(image, width=int(width), height=int(height))


def file_in(folder: Path, name: Any, root: ConfinedFolder, limits: SafetyLimits) -> File:
    """Read the file that an input names, which must be below `folder` and inside `root`."""
    if not isinstance(name, str) or not name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise FixtureError(f"{folder}: an input's file must be in this folder, but {str(name)[:100]!a} is not")
    if not (path := root.inside(folder / name)).exists():
        raise FixtureError(f"{folder}: inputs name the file {name!a}, which does not exist")
    return read_file(path, limits)


def read_pdfs(files: Iterable[File], limits: SafetyLimits, *, texts: bool = False) -> dict[Path, Mapping[str, Any]]:
    """Return the number of `pages` of each PDF and, with `texts`, its `text`, by path."""
    by_path = {file.path: file for file in files}
    new = [file for file in by_path.values() if (file.digest, texts) not in _read]
    if new:
        request = {"paths": [str(file.path.absolute()) for file in new], "max_pages": limits.file_pages}
        process_limits = ProcessLimits(
            seconds=_STARTUP_S + _MAX_PDF_S * len(new),
            output_bytes=1_000_000 + 2 * limits.document_bytes * len(new),
            memory_bytes=_MAX_PDF_MEMORY,
        )
        argv = [sys.executable, "-I", str(Path(__file__).with_name("pdf.py"))]
        process = run_process(
            Program(argv=argv, folder=Path.cwd(), limits=process_limits),
            json.dumps({**request, "seconds": _MAX_PDF_S, "texts": texts}).encode(),
        )
        lines = [json.loads(line) for line in process.stdout.splitlines(keepends=True) if line.endswith(b"\n")]
        for file, result in zip(new, [*lines, {"problem": process.problem}], strict=False):
            _read[file.digest, texts] = result
    for file in by_path.values():
        result = _read.get((file.digest, texts), {"problem": "it was not reached"})
        if "problem" in result:
            raise FixtureError(f"{file.path} cannot be read as a PDF: {result['problem']}")
        if len((result["text"] or "").encode("utf-8", "surrogatepass")) > limits.document_bytes:
            raise FixtureError(f"the text of {file.path} is too long; {limits.size_of('document_bytes')}")
    return {path: _read[file.digest, texts] for path, file in by_path.items()}
