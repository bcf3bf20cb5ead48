"""The name of the model that a request asks for."""

from __future__ import annotations

from services.chassis.errors import InvalidRequest
from services.frontend.fields import Fields

MAX_MODEL_CHARS = 512


def parse_model(fields: Fields) -> str:
    """Read `model`. Whether there is such a model is for the text service to say.

    Raises:
        InvalidRequest: it is missing, empty or too long.
    """
    model = fields.string("model", MAX_MODEL_CHARS)
    if not model:
        raise InvalidRequest("model is required; GET /v1/models lists the names", param="model")
    return model
