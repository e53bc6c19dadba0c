"""Traversal of trees: orders of visiting bodies, and the tables that they need."""
