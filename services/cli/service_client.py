"""Speaking to a running service over HTTP, as any OpenAI client would."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx

from services.cli.sse import event_texts

# The service sends a comment every 15 s while it has nothing to say.
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Message = Mapping[str, str]


class ServiceFailure(Exception):
    """The service did not do what it was asked. The text is one line, with the request's id where there is one."""


class Unreachable(ServiceFailure):
    """Nothing answers at the service's address."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How to answer; what is None is left to the service.

    Args:
        model: the model's name.
        temperature: 0 for the likeliest answer, more for more variety.
        max_tokens: most tokens of an answer.
    """

    model: str
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer.

    Args:
        text: what comes next.
        finish_reason: given once, with the last piece.
    """

    text: str
    finish_reason: str | None


class ServiceClient:
    """One service.

    Args:
        url: where it is, with or without `/v1` at its end.
        api_key: is sent with each request, in visible ASCII; None or empty sends none.
        trusted: holds the authorities that may have signed its certificate; None trusts the usual ones.
    """

    def __init__(self, url: str, api_key: str | None = None, trusted: ssl.SSLContext | None = None) -> None:
        self.url = url.rstrip("/").removesuffix("/v1").rstrip("/")
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._trusted = trusted or True

    async def model_names(self) -> Sequence[str]:
        """Return the names of the models that are served.

        Raises:
            Unreachable: nothing answers there.
            ServiceFailure: the answer is no list of models.
        """
        try:
            async with self._open() as http:
                response = await http.get("/v1/models")
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error
        if response.status_code != httpx.codes.OK:
            raise _refusal(response)
        try:
            return [str(entry["id"]) for entry in response.json()["data"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ServiceFailure(f"{self.url}/v1/models gives no list of models; is this the service's URL?") from error

    async def chat(self, messages: Sequence[Message], options: ChatOptions) -> AsyncGenerator[Piece, None]:
        """Yield the answer as it comes. Closing the generator closes the connection, which ends the generation.

        Raises:
            Unreachable: nothing answers there.
            ServiceFailure: the request was refused, or the answer broke off.
        """
        body: dict[str, Any] = {"model": options.model, "messages": list(messages), "stream": True}
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.max_tokens is not None:
            body["max_tokens"] = options.max_tokens
        try:
            async with self._open() as http, http.stream("POST", "/v1/chat/completions", json=body) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise _refusal(response)
                async with aclosing(_pieces(response)) as pieces:
                    async for piece in pieces:
                        yield piece
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except httpx.TransportError as error:
            raise ServiceFailure(f"the connection to {self.url} broke: {_reason(error)}") from error

    def _open(self) -> httpx.AsyncClient:
        # A proxy from the environment has no business on the way to this machine itself.
        is_local = httpx.URL(self.url).host in _LOOPBACK
        return httpx.AsyncClient(
            base_url=self.url,
            headers=self._headers,
            timeout=_TIMEOUT,
            trust_env=not is_local,
            verify=self._trusted,
        )

    def _unreachable(self, error: Exception) -> Unreachable:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Unreachable(
                f"the certificate of {self.url} is not trusted here ({_reason(error)});"
                " name its authority's PEM file with --tls-ca"
            )
        return Unreachable(
            f"no service answers at {self.url} ({_reason(error)}); start one with stream-omni up, or name it with --url"
        )


async def _pieces(response: httpx.Response) -> AsyncGenerator[Piece, None]:
    async with aclosing(event_texts(response.aiter_bytes())) as events:
        async for event in events:
            if event == "[DONE]":
                return
            content = _json_object(event)
            if not content:
                raise ServiceFailure(f"the service sent an event that is no JSON object{_request(response)}")
            if "error" in content:
                raise ServiceFailure(_told(content, "the service failed", response))
            for choice in content.get("choices") or []:
                yield Piece((choice.get("delta") or {}).get("content") or "", choice.get("finish_reason"))
    raise ServiceFailure(f"the answer broke off{_request(response)}")


def _refusal(response: httpx.Response) -> ServiceFailure:
    content = _json_object(response.text)
    told = _told(content, f"the service answered {response.status_code}", response)
    if response.status_code == httpx.codes.UNAUTHORIZED:
        told += "; a key is taken from --api-key or OMNI_API_KEY"
    return ServiceFailure(told)


def _told(content: Mapping[str, Any], otherwise: str, response: httpx.Response) -> str:
    error = content.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return f"{' '.join(str(message or otherwise).split())}{_request(response)}"


def _request(response: httpx.Response) -> str:
    request_id = response.headers.get("x-request-id")
    return f" (request {request_id})" if request_id else ""


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
