"""vLLM behind the engine port: the only package that knows vLLM and torch.

It uses internal interfaces of vLLM, so the version is pinned and the contract
suite (`tests/contracts`) holds what is assumed here.
"""
