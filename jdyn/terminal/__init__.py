"""What people type and read at a terminal."""
