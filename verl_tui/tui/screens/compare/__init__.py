"""Compare runs, side by side; without a selection the shown one and those next to it in the list,
twelve at most.
"""
