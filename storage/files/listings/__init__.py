"""Listings: yield the files below a folder one by one; S3 lists one page at a time."""
