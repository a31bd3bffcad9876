"""Greets whoever reads this."""

HELP = """
Greets whoever reads this.

--loud  in capitals

exit codes: 0 done
"""


def run(options):
    print("HELLO" if options.loud else "hello")
    return 0
