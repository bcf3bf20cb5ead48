"""Which prompt prefixes a scripted engine has computed before."""

from __future__ import annotations

from services.engine.port import EngineRequest

_BLOCK_TOKENS = 16
_MOST_BLOCKS = 65536


class PrefixCache:
    """Whole blocks of prompts by their contents, all that precedes them and the request's salt."""

    def __init__(self) -> None:
        self._blocks: dict[int, None] = {}

    def take(self, request: EngineRequest) -> int:
        """Count the leading prompt tokens that are known, and keep the prompt's blocks.

        The last token is always computed anew, since its output is wanted.
        """
        prompt = request.prompt_token_ids
        block = hash(request.cache_salt)
        cached, hit = 0, True
        for begin in range(0, len(prompt) - _BLOCK_TOKENS + 1, _BLOCK_TOKENS):
            block = hash((block, *prompt[begin : begin + _BLOCK_TOKENS]))
            hit = hit and block in self._blocks
            if hit and begin + _BLOCK_TOKENS < len(prompt):
                cached = begin + _BLOCK_TOKENS
            self._blocks[block] = None
        while len(self._blocks) > _MOST_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
        return cached
