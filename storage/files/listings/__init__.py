"""Listings: yield the files below a folder one by one, without a list of all in memory."""
