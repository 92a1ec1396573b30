"""Tests of agents on several nodes: groups of ranks of this machine stand for them."""
