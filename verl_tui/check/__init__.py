"""One look at runs without a screen: as data for programs, as a note for people, as an exit code
for cron.
"""
