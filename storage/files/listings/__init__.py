"""Listings: yield the files below a folder one by one; S3 is asked for one page at a time."""
