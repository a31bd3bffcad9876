"""The state of one session with the app: what is on the screen, selected, acknowledged and
preferred.
"""
