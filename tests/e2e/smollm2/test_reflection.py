"""gRPC clients without our protos."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.e2e.service import Service


def test_client_by_reflection(service: Service) -> None:
    """A client that knows only the service's name finds its methods and has a text tokenized."""
    with grpc.insecure_channel(service.tokenizer) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert "streamomni.text.v1.TextService" in database.get_services()
        method = (
            DescriptorPool(database).FindServiceByName("streamomni.text.v1.TextService").FindMethodByName("Tokenize")
        )
        request = GetMessageClass(method.input_type)(text="Hello world")
        call: Any = channel.unary_unary(
            "/streamomni.text.v1.TextService/Tokenize",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        assert len(call(request).token_ids) == 2
