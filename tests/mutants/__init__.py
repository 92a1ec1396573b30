"""How many small mistakes in the modules that decide would be noticed by their tests."""
