"""Prometheus' text format: pages of `/metrics`, saved or served, and the figures that scrapes
give.
"""
