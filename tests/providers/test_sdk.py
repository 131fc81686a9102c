"""What stands around the vendors' SDKs, beside the contract of all: connections, time, trust, proxies, environment."""

import asyncio
import datetime
import ipaddress
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from skill_evaluator.errors import ConfigError
from skill_evaluator.library.config import Settings
from skill_evaluator.providers.base import ProviderError, call_once

from tests.support.http_server import serve
from tests.support.vendor_dialects import PLAIN, Answer
from tests.support.vendor_server import Asked, Behaviour, Status, VendorServer
from tests.support.vendors import KEY, ask, ask_and_fail, entry, opened

OK = b"HTTP/1.1 200 OK\r\n"


def asked_in_turn(server: VendorServer, behaviour: Behaviour, pause_s: float = 0.0) -> int:
    """Ask three times, one after the other; return over how many connections."""
    server.enqueue(*[behaviour] * 3)
    before = server.opened

    async def run() -> None:
        async with opened(entry("openai-compatible", server.url)) as provider:
            for _ in range(3):
                assert (await provider.complete(PLAIN)).text == "fine"
                await asyncio.sleep(pause_s)

    asyncio.run(run())
    assert len(server.received) % 3 == 0
    return server.opened - before


def answer_and(end: Callable[[Asked], object]) -> Behaviour:
    """An answer, and what the server does unasked right after it."""

    def behave(asked: Asked) -> None:
        asked.answer(Answer())
        end(asked)

    return behave


def test_connection_is_reused(server: VendorServer) -> None:
    assert asked_in_turn(server, Answer()) == 1


def test_closed_connection_is_not_reused(server: VendorServer) -> None:
    assert asked_in_turn(server, answer_and(lambda asked: asked.received.drop()), 0.05) == 3


def test_large_body_extends_the_time_limit(server: VendorServer) -> None:
    """The results of a batch, and a file of requests, are many; a server that says little for long is given up."""

    def long(asked: Asked) -> None:
        answer = b'{"choices": [{"message": {"content": "fine"}}]}'
        asked.received.send(OK, b"connection: close\r\ncontent-length: %d\r\n\r\n" % (300_000 + len(answer)))
        for _ in range(6):
            time.sleep(0.2)
            asked.received.send(b" " * 50_000)
        asked.received.send(answer)

    server.enqueue(long, lambda asked: asked.received.drip(OK, 0.2))

    async def run() -> None:
        async with opened(entry("openai-compatible", server.url), 1.0) as provider:
            assert (await call_once(provider, PLAIN, Settings(timeout_s=1.0))).text == "fine"
            with pytest.raises(ProviderError, match=r"no response within 1 s"):
                await call_once(provider, PLAIN, Settings(timeout_s=1.0))

    asyncio.run(run())


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


def test_key_is_sent_only_to_a_server_with_trusted_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPATIBLE_KEY", KEY)
    with serve(VendorServer(), tls=certified(tmp_path)) as server:
        model = entry("openai-compatible", server.url)
        error = ask_and_fail(model)
        assert (error.reason, error.fatal, server.received) == ("unreachable", True, [])
        assert ": its certificate is not trusted: self" in str(error)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert (ask(model).text, len(server.received)) == ("fine", 1)


def test_a_proxy_of_the_environment_is_used(server: VendorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    assert ask(entry("openai-compatible", "http://models.example")).text == "fine"
    assert server.received[0].headers["host"] == "models.example"


def test_password_in_an_address_is_sent_as_basic_authentication(server: VendorServer) -> None:
    ask(entry("openai-compatible", server.url.replace("//", "//me:p%40ss@")))
    assert server.received[0].headers["authorization"] == "Basic bWU6cEBzcw=="


def test_proxy_that_cannot_be_read_is_refused_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:s3cret-word@host:port")
    error = ask_and_fail(entry("openai-compatible", "http://models.example"))
    assert (error.reason, error.fatal, error.perhaps_billed) == ("unreachable", True, False)
    assert "http_proxy" in str(error)
    assert "s3cret" not in str(error)


def test_key_is_not_sent_to_a_socks_proxy(server: VendorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("all_proxy", server.url.replace("http:", "socks5:"))
    error = ask_and_fail(entry("openai-compatible", "http://models.example"))
    assert (error.reason, error.fatal, server.received) == ("unreachable", True, [])
    assert "all_proxy is a socks5 proxy" in str(error)


def raw(*parts: bytes) -> Behaviour:
    """What is sent as it is, before the server hangs up."""
    return lambda asked: asked.received.send(*parts)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (lambda asked: asked.received.drop(), "the server closed the connection without a response"),
        (lambda asked: asked.received.reset(), "Connection reset by peer"),
        (raw(OK, b"content-length: 9\r\n\r\n{}"), "the response was cut off"),
        (raw(b"SSH-2.0-OpenSSH\r\n\r\n"), "invalid HTTP: Bad status line"),
        (raw(OK, b"content-encoding: gzip\r\n\r\n{}"), "the response cannot be decompressed"),
    ],
)
def test_lost_connection_has_a_plain_message(server: VendorServer, behaviour: Behaviour, words: str) -> None:
    server.enqueue(behaviour)
    error = ask_and_fail(entry("openai-compatible", server.url))
    port = server.url.rpartition(":")[2]
    assert str(error).startswith(f"127.0.0.1 port {port}: {words}")
    assert error.reason == "connection_lost"
    assert "Error" not in str(error)


AGENTS = {"openai": "AsyncOpenAI/", "anthropic": "AsyncAnthropic/", "google": "google-genai-sdk/"}


@pytest.mark.parametrize("vendor", AGENTS)
def test_request_is_sent_by_the_sdk_of_the_vendor(vendor: str, server: VendorServer) -> None:
    ask(entry(vendor, server.url))
    assert server.received[0].headers["user-agent"].startswith(AGENTS[vendor])


@pytest.mark.parametrize("vendor", AGENTS)
def test_environment_of_an_sdk_changes_no_request(
    vendor: str, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = entry(vendor, server.url)
    ask(model)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    ask(model)
    before, after = server.received
    assert (after.path, after.body) == (before.path, before.body)
    assert after.headers == before.headers


ENVIRONMENT = {
    "OPENAI_ORG_ID": "org-1",
    "OPENAI_PROJECT_ID": "project-1",
    "OPENAI_BASE_URL": "http://127.0.0.1:1",
    "OPENAI_CUSTOM_HEADERS": "X-Odd: 1",
    "ANTHROPIC_AUTH_TOKEN": "another",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Odd: 1\nx-api-key: another",
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_API_VERSION": "v9",
    "GOOGLE_CLOUD_PROJECT": "project-1",
    "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1",
}


def test_environment_header_that_replaces_the_key_is_refused(
    server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer another")
    with pytest.raises(ConfigError, match="ANTHROPIC_CUSTOM_HEADERS sets the header authorization"):
        ask(entry("anthropic", server.url))


def test_sdk_does_not_retry(server: VendorServer) -> None:
    for vendor in AGENTS:
        server.enqueue(Status(500))
        assert ask_and_fail(entry(vendor, server.url)).reason == "server_error"
    assert len(server.received) == len(AGENTS)
