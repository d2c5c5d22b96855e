"""Send rows down finished trees, and check that trees can be walked."""
