"""The web page in a real browser, over all tiers and a scripted engine."""
