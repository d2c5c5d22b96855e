"""What was learnt, without how: prediction from trees."""
