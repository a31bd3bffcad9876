"""Writes a postcard."""

HELP = "writes a postcard"
OPTIONS = "--loud  in capitals"


def run(options):
    print("DEAR ALL" if options.loud else "dear all")
    return 0
