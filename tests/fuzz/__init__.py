"""Inputs that a fuzzer makes, guided by what they reach: readers in Python, and the C parts."""
