"""Noise at scale: what notebook 80 does not write out itself."""
