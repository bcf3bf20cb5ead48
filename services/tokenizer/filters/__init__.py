"""Output filters: word and pattern lists that a model's text is checked against before it leaves."""
