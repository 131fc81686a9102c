"""What calls without an SDK do beside the contract of all: connections, latency, trust, proxies, passwords."""

import asyncio
import datetime
import ipaddress
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from skill_evaluator.library.config import Model
from skill_evaluator.providers.base import ProviderError

from tests.support.vendor_dialects import DIALECTS, PLAIN, Answer
from tests.support.vendor_server import VendorServer
from tests.support.vendors import ask, entry, opened

BODY = json.dumps(DIALECTS["openai"].answer(Answer())[0]).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Counting:
    """A server that answers every request alike: how many came, over how many connections."""

    def __init__(self, *after: bytes, hang_up: bool = False) -> None:
        self.url = ""
        self.connections = self.requests = 0
        self._sent = b"".join((ANSWER, *after))
        self._hang_up = hang_up

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: "))
                await reader.readexactly(int(length[16:]))
                self.requests += 1
                writer.write(self._sent)
                await writer.drain()
                if self._hang_up:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def serving(server: Counting, context: ssl.SSLContext | None = None) -> AsyncIterator[Model]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    async with listening:
        scheme = "http" if context is None else "https"
        port = listening.sockets[0].getsockname()[1]
        yield Model(id="m", provider="openai", base_url=f"{scheme}://127.0.0.1:{port}/v1")


def asked_in_turn(server: Counting, pause_s: float = 0.0) -> tuple[int, int]:
    """Ask three times, one after the other; return how many requests came over how many connections."""

    async def run() -> None:
        async with serving(server) as model, opened(model) as provider:
            for _ in range(3):
                assert (await provider.complete(PLAIN)).text == "fine"
                await asyncio.sleep(pause_s)

    asyncio.run(run())
    return server.requests, server.connections


def test_a_connection_is_kept_for_the_next_call() -> None:
    assert asked_in_turn(Counting()) == (3, 1)


def test_a_connection_that_the_server_ended_or_spoke_on_unasked_is_not_used_again() -> None:
    assert asked_in_turn(Counting(hang_up=True), 0.05) == (3, 3)
    assert asked_in_turn(Counting(ANSWER), 0.05) == (3, 3)


def test_latency_is_the_networks_and_not_the_wait_for_a_busy_loop() -> None:
    """Every turn of the loop takes long, as when other answers are being scored: the bytes come a turn before."""

    async def run() -> tuple[float, float]:
        async with serving(Counting()) as model, opened(model) as provider:
            await provider.complete(PLAIN)
            loop = asyncio.get_running_loop()

            def busy() -> None:
                nonlocal turn
                time.sleep(0.05)
                turn = loop.call_soon(busy)

            turn = loop.call_soon(busy)
            begun = time.perf_counter()
            completion = await provider.complete(PLAIN)
            around = time.perf_counter() - begun
            turn.cancel()
            return completion.latency_s or 0.0, around

    latency, around = asyncio.run(run())
    assert 0 < latency <= around - 0.045


def certified(folder: Path) -> ssl.SSLContext:
    """A server's context for 127.0.0.1, whose certificate is in the folder, too."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def test_a_key_is_sent_only_to_a_server_that_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, server = certified(tmp_path), Counting()

    async def run() -> str:
        async with serving(server, context) as model, opened(model) as provider:
            return (await provider.complete(PLAIN)).text

    with pytest.raises(ProviderError) as caught:
        asyncio.run(run())
    assert (caught.value.reason, server.requests) == ("unreachable", 0)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    assert (asyncio.run(run()), server.requests) == ("fine", 1)


def test_a_proxy_of_the_environment_is_used(server: VendorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    assert ask(entry("openai-compatible", "http://models.example")).text == "fine"
    assert server.received[0].headers["host"] == "models.example"


def test_user_and_password_of_an_address_are_sent_as_such(server: VendorServer) -> None:
    ask(entry("openai-compatible", server.url.replace("//", "//me:p%40ss@")))
    assert server.received[0].headers["authorization"] == "Basic bWU6cEBzcw=="
