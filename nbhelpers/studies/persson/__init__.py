"""The study of Persson et al. 2025: programs × models × configurations, undisturbed, under replayed
worst cases, and the questions of fairness.
"""
