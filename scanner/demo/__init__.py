"""A small collection of made-up models, to try Capscan on without downloading anything."""
