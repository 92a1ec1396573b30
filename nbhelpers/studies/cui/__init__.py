"""The study of Cui et al. 2023: how much the operations of the OpenMP runtime vary."""
