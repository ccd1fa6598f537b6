"""Stores of models, laid out as the tools lay them out."""
