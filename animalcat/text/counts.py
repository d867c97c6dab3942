"""Numbers of things in sentences."""


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: "1 arena", "2 arenas", "3 pictures of a sign".

    Args:
        number: How many.
        noun: One of them; its head, which stands before an "of", takes the s.
    """
    head, of, rest = noun.partition(" of ")
    return f"{number} {head}{'s' * (number != 1)}{of}{rest}"
