"""A loopback server that speaks chat completions: answers about 1 KB of JSON, 100 ms after it was asked.

Every third answer to a document has one wrong amount, so that replicates differ as in life. Run as
`python benchmarks/chat_server.py PORT [DELAY_S]`; it prints `ready` when it listens. `GET /asked` says how many calls
it was asked so far.
"""

import asyncio
import json
import sys

_asked = [0]


def answer(prompt: str, seed: int) -> str:
    """A record of about 1 KB that depends on the document and, in one line of ten, on the seed."""
    wrong = seed % 10 if seed % 3 == 0 else None
    lines = [
        {
            "code": f"L-{index:02d}",
            "text": f"Budget line number {index} of this notice",
            "amount": 100 * index + (index == wrong),
        }
        for index in range(10)
    ]
    return json.dumps({"title": f"Notice of {len(prompt)} characters", "date": "2026-03-01", "lines": lines})


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """One connection, kept alive."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [int(line[15:]) for line in head.split(b"\r\n") if line[:15].lower() == b"content-length:"]
            if head.startswith(b"GET /asked "):
                number = b"%d" % _asked[0]
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(number), number))
                continue
            if not lengths:  # who asks for a version, or for what a server measures
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                continue
            (length,) = lengths
            request = json.loads(await reader.readexactly(length))
            _asked[0] += 1
            await asyncio.sleep(delay_s)
            body = json.dumps(
                {
                    "id": "chatcmpl-1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": request["model"],
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": "stop",
                            "message": {
                                "role": "assistant",
                                "content": answer(request["messages"][1]["content"], request.get("seed", 0)),
                            },
                        }
                    ],
                    "usage": {"prompt_tokens": 500, "completion_tokens": 300, "total_tokens": 800},
                }
            ).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(port: int, delay_s: float) -> None:
    """Listen until killed."""
    server = await asyncio.start_server(lambda r, w: serve(r, w, delay_s), "127.0.0.1", port, backlog=1024)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.1))
