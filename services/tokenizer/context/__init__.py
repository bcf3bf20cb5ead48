"""Conversations that are too long for a model's context: what is left out, and what stands for it."""
