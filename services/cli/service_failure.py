"""What goes wrong between a command and the service, each as one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from services.cli.control_text import printable_line


class ServiceFailure(Exception):
    """The service did not do what it was asked. The text is one line, with the request's id where there is one."""


class Unreachable(ServiceFailure):
    """Nothing answers at the service's address."""


class Refused(ServiceFailure):
    """The service answered with an error.

    Args:
        text: the line.
        status: the HTTP status; 200 for an error within a stream.
    """

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def refusal(response: httpx.Response) -> Refused:
    """Return what a response with an error status, read to its end, tells."""
    told = _told(json_object(response.text), f"the service answered {response.status_code}", response)
    if response.status_code == httpx.codes.UNAUTHORIZED:
        told += "; a key is taken from --api-key or OMNI_API_KEY"
    return Refused(told, response.status_code)


def broken_stream(response: httpx.Response, event: Mapping[str, Any]) -> Refused:
    """Return what an error event of a stream tells."""
    return Refused(_told(event, "the service failed", response), response.status_code)


def request_mark(response: httpx.Response) -> str:
    """Return the request's id as errors end with it, or nothing."""
    request_id = response.headers.get("x-request-id")
    return f" (request {request_id})" if request_id else ""


def one_line(error: object) -> str:
    """Return an error's text as one printable line, or its kind where it has none."""
    return printable_line(error) or type(error).__name__


def json_object(text: str) -> Mapping[str, Any]:
    """Return the JSON object that a text is, or an empty one where it is none."""
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def _told(content: Mapping[str, Any], otherwise: str, response: httpx.Response) -> str:
    error = content.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return f"{one_line(message or otherwise)}{request_mark(response)}"
