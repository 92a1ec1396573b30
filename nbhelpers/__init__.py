"""Noisebook's helper library: measure, trace, replay and explain the variability of parallel programs.

Each folder is a stage and imports only from the stages before it; CONTRIBUTING.md has the order and the agreements.
"""

__version__ = "0.1.0"
