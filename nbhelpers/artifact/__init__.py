"""Sharing a study: one zip (an RO-Crate) that holds what was measured, computed and shown.

Owns the zip's contents, the aliases of host and user names in it, the rules that it is checked
by, and the reading of such a zip as the data of a study that was measured elsewhere.
"""
