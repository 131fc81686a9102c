"""Ability, fluctuation and grades of the models in a cube, each with its uncertainty."""
