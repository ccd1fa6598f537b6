"""Tests of `scanner.store`, on real databases."""
