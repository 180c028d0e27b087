"""Inbox: stores documents that arrive one by one, and joins them to shards."""
