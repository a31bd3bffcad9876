"""Small answers on one run for programs: its state, findings, numbers, samples and log.

Each answer is a mapping ready for JSON and lines of text for a terminal. Of long logs only the end
is read where that is enough.
"""
