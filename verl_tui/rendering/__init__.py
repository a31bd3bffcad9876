"""From runs to rows of styled text: pure functions that import no Textual, so that they are tested
without an app.
"""
