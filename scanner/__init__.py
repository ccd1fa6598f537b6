"""Capscan: what llama.cpp will believe about chat templates, why, and what is really true."""

__version__ = "0.1.0"
