"""Speaking to a running service over HTTP, as any OpenAI client would."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx

from services.cli.answer_stream import Piece, pieces_of
from services.cli.service_failure import ServiceFailure, Unreachable, one_line, refusal, request_mark

# The service sends a comment every 15 s while it has nothing to say.
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How to answer; what is None or empty is left to the service.

    Args:
        model: the model's name.
        temperature: 0 for the likeliest answer, more for more variety.
        max_tokens: most tokens of an answer.
        context_policy: what to do when the conversation does not fit: "error", "sliding_window" or "summarize".
        preset: name of a task's template.
        preset_variables: values for its variables.
    """

    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    context_policy: str | None = None
    preset: str | None = None
    preset_variables: Mapping[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Return the request's fields for them."""
        given = {
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "context_policy": self.context_policy,
            "preset": self.preset,
            "preset_variables": dict(self.preset_variables) if self.preset and self.preset_variables else None,
        }
        return {name: value for name, value in given.items() if value is not None}


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
        content = await self.ask("GET", "/v1/models")
        try:
            return [str(entry["id"]) for entry in content["data"]]
        except (KeyError, TypeError) as error:
            raise ServiceFailure(f"{self.url}/v1/models gives no list of models; is this the service's URL?") from error

    async def ask(
        self, method: str, path: str, body: object = None, params: Mapping[str, str | int] | None = None
    ) -> dict[str, Any]:
        """Send one request and return the JSON object that answers it; `{}` for an answer without a body.

        Args:
            method: GET, POST, PATCH or DELETE.
            path: begins with `/v1/`.
            body: is sent as JSON; None sends none.
            params: the query.

        Raises:
            Unreachable: nothing answers there.
            Refused: the answer is an error.
            ServiceFailure: the answer is no JSON object.
        """
        try:
            async with self._open() as http:
                content = None if body is None else json.dumps(body).encode()
                headers = {} if body is None else {"content-type": "application/json"}
                response = await http.request(method, path, content=content, headers=headers, params=params)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self._unreachable(error) from error
        if not response.is_success:
            raise refusal(response)
        if not response.content:
            return {}
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            where = f"{self.url}{path}"
            raise ServiceFailure(
                f"{where} answers with no JSON object; is this the service's URL?{request_mark(response)}"
            )
        return answer

    async def chat(self, turn: Mapping[str, Any], options: ChatOptions) -> AsyncGenerator[Piece, None]:
        """Yield the answer as it comes. Closing the generator closes the connection, which ends the generation.

        Args:
            turn: the request's fields that say what to answer: `messages`, or those of a session.
            options: how to answer.

        Raises:
            Unreachable: nothing answers there.
            Refused: the request was refused, or the stream ended in an error.
            ServiceFailure: the answer broke off.
        """
        body = {**options.fields(), **turn, "stream": True, "stream_options": {"include_usage": True}}
        try:
            async with self._open() as http, http.stream("POST", "/v1/chat/completions", json=body) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise refusal(response)
                async with aclosing(pieces_of(response)) as pieces:
                    async for piece in pieces:
                        yield piece
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except httpx.TransportError as error:
            raise ServiceFailure(f"the connection to {self.url} broke: {one_line(error)}") from error

    def _open(self) -> httpx.AsyncClient:
        # A proxy from the environment has no business on the way to this machine itself.
        url = httpx.URL(self.url)
        return httpx.AsyncClient(
            base_url=self.url,
            headers=self._headers,
            timeout=_TIMEOUT,
            trust_env=url.host not in _LOOPBACK,
            # Reading the authorities takes 20 ms, which plain HTTP can do without.
            verify=self._trusted if url.scheme == "https" else False,
        )

    def _unreachable(self, error: Exception) -> Unreachable:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return Unreachable(
                f"the certificate of {self.url} is not trusted here ({one_line(error)});"
                " name its authority's PEM file with --tls-ca"
            )
        return Unreachable(
            f"no service answers at {self.url} ({one_line(error)});"
            " start one with stream-omni up, or name it with --url"
        )
