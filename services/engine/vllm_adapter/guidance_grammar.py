"""vLLM's guidance grammar, mended so that an output that a limit cut off is a failure.

Where llguidance reaches a limit of its own, vLLM lets the end token through and
the output counts as finished, though it does not conform.
"""

from __future__ import annotations

from vllm.v1.structured_output import backend_guidance


class CheckedGrammar(backend_guidance.GuidanceGrammar):
    """A grammar whose failures end the request with an error."""

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance by these tokens; false where the output does not conform."""
        return super().accept_tokens(request_id, tokens) and not self.ll_matcher.is_error()


def use_checked_grammars() -> None:
    """Make vLLM's guidance backend compile to these in this process."""
    # The backend names the class itself, so that none can be given.
    backend_guidance.GuidanceGrammar = CheckedGrammar  # type: ignore[misc]
