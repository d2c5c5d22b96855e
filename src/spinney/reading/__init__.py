"""Trees for people: text, rules, pictures, and the path of a row in words. A tree is known here by its arrays alone."""
