"""Every jitted function and nothing else: on arrays, without classes, exceptions or allocation."""
