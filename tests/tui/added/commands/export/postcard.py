"""Writes a postcard."""

HELP = """
Writes a postcard.

--loud  in capitals

exit codes: 0 done
"""


def run(options):
    print("DEAR ALL" if options.loud else "dear all")
    return 0
