"""Classifiers: what judges a model's text sentence by sentence, beside the filters' lists."""
