"""The service: documents in over HTTP, topics out; jobs and nights do the counting."""
