"""TLS of the gRPC ports and channels, with certificates of the tests' own authority."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from pydantic_settings import SettingsConfigDict

from services.chassis.channel import open_channel
from services.chassis.errors import Unavailable
from services.chassis.grpc_boundary import Context
from services.chassis.settings import SettingsError
from services.chassis.status import error_of_call
from services.chassis.tls import ClientTls, GrpcTlsSettings, ServerTls, client_tls, explain_failure
from tests.certificates import Authority, Pair
from tests.chassis.byte_service import call_unary, serving


class TierSettings(GrpcTlsSettings):
    model_config = SettingsConfigDict(env_prefix="TEST_TIER_")


async def echo(request: bytes, context: Context) -> bytes:
    """Gives back what it gets."""
    return request


METHODS: dict[str, Any] = {"Unary": grpc.unary_unary_rpc_method_handler(echo)}


def server_tls(pair: Pair, client_ca: Path | None = None) -> ServerTls:
    """What a tier makes of these settings."""
    tls = TierSettings(tls_cert=pair.certificate, tls_key=pair.key, tls_client_ca=client_ca).server_tls()
    assert tls is not None
    return tls


def trusting(authority: Authority, pair: Pair | None = None) -> ClientTls:
    """What a tier makes of the settings of a channel."""
    tls = client_tls(authority.ca, pair.certificate if pair else None, pair.key if pair else None)
    assert tls is not None
    return tls


async def refusal(target: str, tls: ClientTls | None) -> str:
    """The one line that a caller gets in whom something is wrong."""
    async with open_channel(target, tls) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call_unary(channel, b"x")
    error = error_of_call(caught.value)
    assert isinstance(error, Unavailable) and "\n" not in error.message
    return error.message


async def served(target: str, tls: ClientTls) -> bool:
    """Whether a caller is served."""
    async with open_channel(target, tls) as channel:
        return bool(await call_unary(channel, b"x") == b"x")


async def test_wrong_callers_are_told_what_to_do(tmp_path: Path) -> None:
    """A port with TLS serves who trusts its authority; another authority, another name and plain text are each refused
    with one line that says what to set, and the right caller is served after each."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    async with serving(METHODS, tls=server_tls(authority.issue("server"))) as port:
        target = f"127.0.0.1:{port}"
        assert await served(target, trusting(authority))
        assert "set …_TLS_CA to the PEM file of the authority" in await refusal(target, trusting(other))
        assert "set …_TLS_CA here" in await refusal(target, None)
        text = await refusal(f"localhost:{port}", trusting(authority))
        assert "its certificate does not name this address" in text
        assert await served(target, trusting(authority))


async def test_mutual_tls(tmp_path: Path) -> None:
    """A port that asks for certificates serves those of its authority alone; others learn which settings to look at."""
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    tls = server_tls(authority.issue("server"), client_ca=authority.ca)
    async with serving(METHODS, tls=tls) as port:
        target = f"127.0.0.1:{port}"
        assert await served(target, trusting(authority, authority.issue("tier")))
        for wrong in (trusting(authority), trusting(authority, other.issue("stranger"))):
            assert "client certificate" in await refusal(target, wrong)
        assert await served(target, trusting(authority, authority.issue("tier")))


async def test_tls_to_a_plain_port(tmp_path: Path) -> None:
    """A channel with TLS to a port without is told so."""
    async with serving(METHODS) as port:
        assert "it speaks no TLS there" in await refusal(f"127.0.0.1:{port}", trusting(Authority(tmp_path)))


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 64, b"\x16\x03\x01\xff"],
)
async def test_what_is_no_tls_is_sent_away(tmp_path: Path, sent: bytes) -> None:
    """Plain text and garbage on a TLS port: the connection is closed without an answer within a second (a handshake
    that begins and stops, within its own time), and the port goes on serving."""
    authority = Authority(tmp_path)
    async with serving(METHODS, tls=server_tls(authority.issue("server"))) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        if sent.startswith(b"\x16"):
            # A handshake's beginning: nothing is wrong yet, and the rest never comes.
            writer.write_eof()
        async with asyncio.timeout(1):
            answer = await reader.read()
        # At most an alert of TLS (RFC 8446, section 6), never a response.
        assert answer[:1] in (b"", b"\x15")
        writer.close()
        assert await served(f"127.0.0.1:{port}", trusting(authority))


def _pairs(directory: Path) -> dict[str, tuple[Path | None, Path | None, str]]:
    authority = Authority(directory)
    pair, other = authority.issue("one"), authority.issue("two")
    secret = authority.issue("secret", password=b"x")
    garbage = directory / "garbage.pem"
    garbage.write_text("no certificate")
    missing = directory / "missing.pem"
    return {
        "certificate alone": (pair.certificate, None, "belong together"),
        "key alone": (None, pair.key, "belong together"),
        "missing certificate": (missing, pair.key, "missing.pem cannot be read: No such file"),
        "directory": (pair.certificate, directory, "cannot be read: Is a directory"),
        "another's key": (pair.certificate, other.key, "cannot be used"),
        "no certificate": (garbage, pair.key, "cannot be used"),
        "no key": (pair.certificate, garbage, "cannot be used"),
        "encrypted key": (secret.certificate, secret.key, "is encrypted"),
    }


def test_wrong_files_end_the_start(tmp_path: Path) -> None:
    """Each wrong pair of certificate and key is one line, for ports and for channels alike."""
    authority = Authority(tmp_path)
    for case, (certificate, key, message) in _pairs(tmp_path).items():
        settings = TierSettings(tls_cert=certificate, tls_key=key)
        with pytest.raises(SettingsError, match=message) as of_port:
            settings.server_tls()
        with pytest.raises(SettingsError, match=message) as of_channel:
            client_tls(authority.ca, certificate, key)
        assert "\n" not in str(of_port.value) + str(of_channel.value), case


def test_wrong_authorities_end_the_start(tmp_path: Path) -> None:
    """An authority's file that is missing or none, and settings that would have no effect, are refused by name."""
    pair = Authority(tmp_path).issue("server")
    with pytest.raises(SettingsError, match=r"server\.key cannot be used"):
        client_tls(pair.key, None, None)
    with pytest.raises(SettingsError, match=r"none\.pem cannot be read"):
        TierSettings(tls_cert=pair.certificate, tls_key=pair.key, tls_client_ca=tmp_path / "none.pem").server_tls()
    with pytest.raises(SettingsError, match="_TLS_CLIENT_CA is of no use without"):
        TierSettings(tls_client_ca=pair.certificate).server_tls()
    with pytest.raises(SettingsError, match="of no use without …_TLS_CA"):
        client_tls(None, pair.certificate, pair.key)


def test_nothing_set_is_plain_text() -> None:
    """Without settings there is no TLS."""
    assert TierSettings().server_tls() is None
    assert client_tls(None, None, None) is None


def test_keys_are_not_shown(tmp_path: Path) -> None:
    """What is logged of these objects holds no private key."""
    authority = Authority(tmp_path)
    pair = authority.issue("server")
    assert "PRIVATE KEY" not in repr(server_tls(pair)) + repr(trusting(authority, pair))


def test_other_failures_keep_their_text() -> None:
    """A refused connection, and a call that was under way, are not taken for TLS's fault."""
    for text in ("failed to connect to all addresses; last error: Connection refused", "Socket closed", "m"):
        assert explain_failure(text) == text
