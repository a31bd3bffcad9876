"""Writes a postcard."""

NAME = "postcard"
HELP = "writes a postcard"


def options(parser):
    parser.add_argument("--loud", action="store_true")


def run(options):
    print("DEAR ALL" if options.loud else "dear all")
    return 0
