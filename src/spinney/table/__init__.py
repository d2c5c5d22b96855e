"""What the data is: columns and their kinds, vocabularies, values, codes."""
