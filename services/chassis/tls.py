"""TLS: certificates from files, and what a failed handshake means."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from services.chassis.settings import ServiceSettings, SettingsError

# How gRPC and OpenSSL spell what went wrong, and what to do about it.
_ADVICE = (
    (
        "CERTIFICATE_VERIFY_FAILED",
        "its certificate is not one of the authority trusted here; set …_TLS_CA to the PEM file of the authority"
        " that signed it",
    ),
    (
        "Hostname Verification Check failed",
        "its certificate does not name this address; reach it by a name in its certificate, or issue one that"
        " names the address",
    ),
    ("WRONG_VERSION_NUMBER", "it speaks no TLS there; unset …_TLS_CA here, or give it …_TLS_CERT and …_TLS_KEY"),
    (
        "Socket closed",
        "it closed the connection; if it asks for TLS, set …_TLS_CA here, and if it asks for a client certificate,"
        " …_TLS_CERT and …_TLS_KEY of an authority that it trusts",
    ),
)


class GrpcTlsSettings(ServiceSettings):
    """The settings of a tier whose gRPC port can speak TLS. Without `tls_cert` it speaks plain text."""

    tls_cert: Path | None = None
    """PEM file of the gRPC port's certificate, with its chain."""
    tls_key: Path | None = None
    """PEM file of that certificate's key, not encrypted."""
    tls_client_ca: Path | None = None
    """PEM file of the authority whose certificates callers must show (mutual TLS)."""

    def server_tls(self) -> ServerTls | None:
        """Read the files; None where no certificate is set.

        Raises:
            SettingsError: a file is missing, wrong or does not go with the others.
        """
        client_ca = None if self.tls_client_ca is None else _read_authority(self.tls_client_ca)
        if self.tls_cert is None and self.tls_key is None:
            if client_ca is not None:
                raise SettingsError("…_TLS_CLIENT_CA is of no use without …_TLS_CERT and …_TLS_KEY; set those too")
            return None
        server_context(self.tls_cert, self.tls_key)
        assert self.tls_cert is not None and self.tls_key is not None
        return ServerTls(_read(self.tls_cert), _read(self.tls_key), client_ca)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """What a gRPC server shows its callers, as PEM.

    Args:
        certificate: its certificate, with its chain.
        key: that certificate's key.
        client_ca: authority whose certificates callers must show; None asks for none.
    """

    certificate: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None = None

    def credentials(self) -> grpc.ServerCredentials:
        """The same for gRPC."""
        pairs = [(self.key, self.certificate)]
        return grpc.ssl_server_credentials(pairs, self.client_ca, self.client_ca is not None)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """What a gRPC channel trusts and shows, as PEM.

    Args:
        ca: authority that must have signed the server's certificate.
        certificate: the own one, where the server asks for one.
        key: that certificate's key.
    """

    ca: bytes
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)

    def credentials(self) -> grpc.ChannelCredentials:
        """The same for gRPC."""
        return grpc.ssl_channel_credentials(self.ca, self.key, self.certificate)


def client_tls(ca: Path | None, certificate: Path | None, key: Path | None) -> ClientTls | None:
    """Read a channel's files; None where no authority is set: plain text then.

    Raises:
        SettingsError: a file is missing, wrong or does not go with the others.
    """
    if ca is None:
        if certificate is not None or key is not None:
            raise SettingsError("a client certificate is of no use without …_TLS_CA; set that, or unset …_TLS_CERT")
        return None
    authority = _read_authority(ca)
    if certificate is None and key is None:
        return ClientTls(authority)
    server_context(certificate, key)
    assert certificate is not None and key is not None
    return ClientTls(authority, _read(certificate), _read(key))


def server_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext:
    """Return a server's context for TLS 1.2 and later, with a certificate and its key.

    Raises:
        SettingsError: one of both is not set or cannot be read, or they do not belong together.
    """
    if certificate is None or key is None:
        raise SettingsError("…_TLS_CERT and …_TLS_KEY belong together; set both or neither")
    for path in (certificate, key):
        _read(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    def refuse_password() -> str:
        # OpenSSL would ask for it on the terminal otherwise.
        raise SettingsError(f"TLS key {key} is encrypted; give it as PEM without a password")

    try:
        context.load_cert_chain(certificate, key, refuse_password)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"TLS certificate {certificate} and key {key} cannot be used ({_cause(error)});"
            " give a PEM certificate with its chain, and its own key as PEM"
        ) from error
    return context


def explain_failure(text: str) -> str:
    """Return gRPC's text of a failed connection with what to do about it, where TLS is what failed."""
    if not text.startswith("failed to connect"):
        return text
    return next((f"{advice} ({text})" for sign, advice in _ADVICE if sign in text), text)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"TLS file {path} cannot be read: {error.strerror}; name a PEM file") from error


def _read_authority(path: Path) -> bytes:
    content = _read(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content.decode("ascii"))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"TLS authority {path} cannot be used ({_cause(error)}); give its certificate as a PEM file"
        ) from error
    return content


def _cause(error: Exception) -> str:
    return " ".join(str(error).split())
