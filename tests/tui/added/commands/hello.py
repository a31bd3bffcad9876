"""Greets whoever reads this."""

NAME = "hello"
HELP = "greets whoever reads this"


def options(parser):
    parser.add_argument("--loud", action="store_true")


def run(options):
    print("HELLO" if options.loud else "hello")
    return 0
