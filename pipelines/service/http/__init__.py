"""HTTP: the calls of the service, what they take and answer, and their server."""
