"""The studies, one package or module each: what is run, its tables, and what it says in sentences.

`persson` and `cui` repeat the two papers on one node, `scale` brings noise to many ranks.
`planted_anomalies` and `worst` test the replay, `trials` the mitigations; `program_study` studies a
program of the user's.
`design`, `findings`, `known` and `replays` are shared. A notebook imports from its own study, so
that a change in one study runs no other notebook again.
"""
