"""The frontend tier: HTTP, SSE and OpenAI's JSON over text services."""
