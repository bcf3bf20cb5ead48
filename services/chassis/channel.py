"""Outgoing gRPC channels."""

from __future__ import annotations

import grpc.aio

from services.chassis.tls import ClientTls

# Links carry whole prompts and one frame for all generations of a step.
MESSAGE_LIMIT_BYTES = 64 * 1024 * 1024

_OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    # A peer that vanished without a word is noticed within 30 s.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # The default backs off to two minutes, long after the peer is up again.
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Also the shortest time that an attempt to connect gets.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Two channels to one address are two connections.
    ("grpc.use_local_subchannel_pool", 1),
]


def open_channel(target: str, tls: ClientTls | None = None) -> grpc.aio.Channel:
    """Open a channel to `host:port`, in plain text unless `tls` is given. Use it as an async context."""
    if tls is None:
        return grpc.aio.insecure_channel(target, options=_OPTIONS)
    return grpc.aio.secure_channel(target, tls.credentials(), options=_OPTIONS)
