"""Owns myppo.yml, the tuned hyperparameters; must hold no code.

A package of its own so that `importlib.resources` finds the file in a wheel and in an editable install.
"""
