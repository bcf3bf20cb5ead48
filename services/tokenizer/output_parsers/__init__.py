"""Output parsers: what of a model's text is content, reasoning or a tool call."""
