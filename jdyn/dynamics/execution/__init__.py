"""The seam to XLA: how recursions become programs. Recursions say what is computed, this folder how."""
