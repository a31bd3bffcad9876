"""Devices as rows: bars, a matrix of many nodes, and remarks on what stands out."""
