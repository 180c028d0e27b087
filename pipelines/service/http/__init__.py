"""HTTP: the calls of the service, their input and answers, and their server."""
