"""The referee: is one of two builds, commands or settings faster, and when is that known?

`duel` measures the two sides in turn, `ruling` says what is known.
"""
