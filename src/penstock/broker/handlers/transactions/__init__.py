"""Transactions: their coordinators' APIs, and the markers; `refusing` tells old clients errors in words they know."""
