"""Greets whoever reads this."""

HELP = "greets whoever reads this"
OPTIONS = "--loud  in capitals"


def run(options):
    print("HELLO" if options.loud else "hello")
    return 0
