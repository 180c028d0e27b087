"""The service: accepts documents over HTTP, counts them by jobs, and answers with topics."""
