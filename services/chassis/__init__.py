"""Plumbing that all tiers stand on. It knows no word of the domain."""
