"""The classes users meet: scikit-learn's contract, parameters, checks, errors."""
