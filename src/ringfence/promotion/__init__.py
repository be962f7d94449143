"""Promotion gates: whether an agent's change may go to a person's review, decided from git objects and signed evidence."""
