"""Stream-Omni's services, one package a tier, on one shared chassis."""
