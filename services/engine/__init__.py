"""The engine tier: token ids in, token ids out. It knows no text and no HTTP."""
