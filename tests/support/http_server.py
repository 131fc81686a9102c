"""HTTP servers on the loopback that run in a thread beside a test, and end with it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any


class QuietServer(ThreadingHTTPServer):
    """A server whose clients may be killed in mid-call, of which it says nothing."""

    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


class JoiningServer(QuietServer):
    """A quiet server that waits for its handlers when it is closed."""

    daemon_threads = False


@contextmanager
def serving(http: ThreadingHTTPServer, stopping: Callable[[], object] = lambda: None) -> Iterator[str]:
    """Serve until the end of the block, and yield the address; `stopping` lets handlers go that wait for something."""
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        stopping()
        http.shutdown()
        http.server_close()
        thread.join()
