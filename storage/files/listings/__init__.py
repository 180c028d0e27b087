"""Listings: any number of files below a folder, one by one, and of S3 a page at a time."""
