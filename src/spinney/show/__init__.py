"""What a study found, to be seen: charts, and one page that holds them all. Plain data comes in, text goes out."""
