"""Checks of a text's form while it comes."""
