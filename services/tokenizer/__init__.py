"""The tokenizer tier: all text work, on CPU alone."""
