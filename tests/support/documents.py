"""PDFs and images, as small as can be."""

import io
import struct
import zlib
from collections.abc import Sequence


def a_png(width: int = 3, height: int = 2, *, padding: int = 0) -> bytes:
    """Return a white image, with so many bytes of a text in it that nobody sees."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress((b"\0" + b"\xff" * width) * height))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", b"x\0" + b"." * padding) + pixels + chunk(b"IEND", b"")


def a_pdf(texts: Sequence[str] = ("A 9",), *, password: str | None = None, kids: str | None = None) -> bytes:
    """Return a PDF with a page a text; `kids` are the pages that its page tree names instead."""
    numbers = [4 + 2 * place for place in range(len(texts))]
    of_pages = kids or " ".join(f"{number} 0 R" for number in numbers)
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{of_pages}] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in zip(numbers, texts, strict=True):
        shown = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {number + 1} 0 R >>",
            f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
        ]
    content, places = b"%PDF-1.4\n", []
    for number, value in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n{value}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer\n<< /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    plain = content + f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}{end}".encode()
    return plain if password is None else _encrypted(plain, password)


def _encrypted(plain: bytes, password: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer, written = PdfWriter(clone_from=PdfReader(io.BytesIO(plain))), io.BytesIO()
    writer.encrypt(password, algorithm="AES-256")
    writer.write(written)
    return written.getvalue()


def a_bomb(unpacked: int) -> bytes:
    """Return a PDF whose table of objects is so many bytes once it is unpacked."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1_000_000)) for _ in range(unpacked // 1_000_000)) + packer.flush()
    head = f"<< /Type /XRef /Size 9 /W [1 1 1] /Root 1 0 R /Filter /FlateDecode /Length {len(packed)} >>"
    return (
        b"%PDF-1.5\n1 0 obj\n" + head.encode() + b"\nstream\n" + packed + b"\nendstream\nendobj\nstartxref\n9\n%%EOF\n"
    )
