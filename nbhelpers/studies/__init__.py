"""The studies: what several cells or pages need of them, where cells do not say it themselves.

`persson` and `ferreira` repeat papers on one node, `scale` brings noise to many ranks,
`planted_anomalies` tests the replay, `trials` the mitigations; `program_study` studies a program of
the user's. `design`, `findings`, `known` and `replays` are shared.
A notebook imports from its own study, so that a change in one study runs no other notebook again.
"""
