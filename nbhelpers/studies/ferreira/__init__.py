"""The study of Ferreira, Bridges and Brightwell (SC 2008): is the noise that was asked for the
noise that is there, and what it costs. `noises` is stage 70's, `ranks` and `traced` are stage 75's.
"""
