"""Injection on every node that an MPI program runs on: agents that its launcher starts, which begin
together.

`nbhelpers.nodes.head.run_on_nodes` is for users; a package that imports nothing lets ranks start
quickly.
"""
