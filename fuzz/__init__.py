"""Damaged model files by the million: none may crash, hang, fill the memory, or fail but by a clear error."""
